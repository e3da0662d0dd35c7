/* lib/session/captures/captures.h - selections from the history, each a trace of its own */
#pragma once

#include "capture/capture.h"
#include "session/captures/capture_file.h"
#include "session/options/config.h"
#include "session/session.h"

/* ---- captures that are asked for ---- */

/* By the program (pk_capture), and from outside, through words in the arena's header (pk capture).
 */

/* For the program or the watchdog. Any thread; a lock that is held for some instructions. PK_EOFF,
 * PK_EBUSY or PK_OK. */
pk_status pki_requests_call(pki_capture_reason reason, const char *text, uint32_t steps);

/* ---- the session's history: what of its last steps is kept, unformatted ---- */

/* All of it under the drain lock. Without history_steps there is none. */

/* Without room for it there is none, which is said. */
void pki_session_history_open(pki_session *session);
void pki_session_history_close(pki_session *session);

/* What has been taken out of a ring. */
void pki_session_history_record(pki_session *session, uint32_t tid, const pki_record *record,
                                const pki_record *more);

/* ---- captures and a backend that records devices only on request ---- */

/* CUPTI cannot look back at what it has not recorded. Where it does not record all the time, this
 * is where captures say when it is to:
 *
 *     a slow step              from then on, for so many steps, and for a second
 *     steps known beforehand   ahead of them by half a second, or a step, which taking CUPTI takes;
 *                              a cycle's from its warm-up on
 *
 * and up to which moment they wait for what is still on its way.
 *
 * Threads: what a backend asks for, any; all else under the drain lock. */

/* ---- for the backend ---- */

/* It follows requests, or could not the last time: then slow steps are captured without those
 * behind them. */
void pki_arming_listen(bool yes);

bool pki_arming_now(void);
uint64_t pki_arming_awaited(void);

/* ---- selections from the history, each a trace of its own ---- */

/* A step has ended -> is it wanted (lib/capture) -> queue -> a round later: written
 *
 * Decisions are made where rings are emptied, under the drain lock; they take some hundred
 * nanoseconds a step. Captures are written by a thread of their own, which is made with the first
 * of them, has the lowest priority, and takes the drain lock only to begin and to end one. What it
 * reads is pinned meanwhile; if the history becomes full, what is newer is lost to it and counted.
 */

/* All but the last three: under the drain lock. */

/* What is being written waits, too. */
pki_capture_counts pki_captures_counted(void);

/* ---- when the threads that make steps had no processor ---- */

/* This thread has made a step, from and until CLOCK_MONOTONIC, ns: what switches it off its
 * processor is in the history from the first one on. longer: than the median of like ones, if it
 * was slow; 0: it was not. */
void pki_states_step(pki_session *session, uint32_t tid, uint64_t from, uint64_t until,
                     uint64_t longer);

/* While one of them was late: who had its processor for so long, or a quota kept it from one. */
void pki_states_neighbour(const char *who, uint64_t ns);

/* ---- a step that is late is looked at while it is ---- */

/* The next step of this thread is late when it has lasted so many ns; 0: that is not known. */
void pki_looks_expect(uint32_t tid, uint64_t late_after);
