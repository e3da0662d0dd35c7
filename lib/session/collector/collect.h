/* lib/session/collector/collect.h - one thread that empties the rings now and then, and what it
 * takes */
#pragma once

#include "session/backend.h"
#include "session/session.h"

/* ---- what perfkit itself takes of the processors, while the session runs ---- */

/* Recording is measured once and multiplied out by who reports it (measure/overhead.h): reading a
 * clock twice more at each region would cost more than the region. All that is done between the
 * rings and the file is measured, in CPU time of the threads that do it. */

/* CPU time of the calling thread, ns: before work that pki_toll_of_caller counts. */
uint64_t pki_toll_begin(void);

/* All below: under the drain lock. */

/* A thread of the program has done the collector's work since then. */
void pki_toll_of_caller(pki_session *session, uint64_t since);

/* Since then the thread has written captures. */
void pki_toll_of_captures(pki_session *session, uint64_t since);

/* As of now. */
pki_toll pki_toll_now(const pki_session *session);

/* The same, into the arena. */
void pki_toll_publish(pki_session *session);

/* ---- whether the thread that makes steps has a processor ---- */

/* The kernel counts for each thread how long it has run and how long it was ready to run while
 * others had the processors (/proc/self/task/TID/schedstat). The collector reads that now and then:
 * the thread itself pays nothing. Where the kernel has no such figures, nothing is known. */

/* The two figures in the text of such a file. False if it has none. */
bool pki_stepper_parse(const char *text, uint64_t *running, uint64_t *ready);

/* What was seen since the look before. The kernel enters a wait when it is over and running at its
 * next tick, so that a look may find what was before it, up to the first one: nobody has had more
 * than there was since then, and what is beyond that is left out. No figure gets smaller. */
void pki_stepper_add(pki_processor *sum, const pki_processor *more);

/* ---- the collector: one thread that empties the rings now and then ---- */

/* PK_ETHREAD. */
pk_status pki_collect_start(pki_session *session);

/* Waits until the thread has ended, unless it is the caller. */
void pki_collect_stop(pki_session *session);

/* Has the thread do this, and end. False: it is not done, and for so long the thread has done
 * nothing at all. */
bool pki_collect_finish(pki_session *session, void (*job)(pki_session *), uint64_t patience_ns);

/* Compares the clocks if it is time to. Under the drain lock. */
void pki_collect_check_clock(pki_session *session, bool now);

/* By a thread that has left its block: sees to it that others find it free, at once if that takes
 * neither long nor waiting. Threads may follow each other faster than the collector is woken. */
void pki_collect_ended(void);

/* The next round begins within so many nanoseconds, once. In one. */
void pki_collect_within(uint64_t ns);

/* ---- the asker: one thread that waits for drivers, so that the collector does not ---- */

/* Once the backends have started, if any has something to be asked. Without the thread the
 * collector asks, between its rounds. */
void pki_asker_start(pki_session *session);

/* Has the thread flush the backends and ask them, for pk_flush or as the last thing that it does,
 * and waits for that, but not for ever: a call of a driver's in trouble never comes back. Without
 * the thread it is done here. False: it has not come back, and is still in a call. */
extern uint64_t pki_asker_patience_ns; /* 5 s; tests have less */
bool pki_asker_do(pki_session *session, pki_flush why);

/* Behind the last: waits until the thread has ended, or goes on without one that has not come back.
 * That has its memory for itself, hands over nothing more, and if ever it comes back it gives the
 * libraries back and ends. */
void pki_asker_stop(pki_session *session);

/* The next time to ask is within so many nanoseconds, once. By who asks. */
void pki_asker_within(uint64_t ns);

void pki_collect_after_fork(void);
