/* lib/session/captures/captures.h - selections from the history, each a trace of its own.
 *
 *     a step has ended -> is it wanted (lib/capture) -> queue -> a round later: written
 *
 * Decisions are made where rings are emptied, under the drain lock; they take some hundred
 * nanoseconds a step. Captures are written by a thread of their own, which is made with the first
 * of them, has the lowest priority, and takes the drain lock only to begin and to end one. What it
 * reads is pinned meanwhile; if the history becomes full, what is newer is lost to it and counted.
 */
#pragma once

#include "session/captures/capture_job.h"

/* All but the last three: under the drain lock. */

/* With a history. */
void pki_captures_open(pki_session *session);

/* Its records have been taken. */
void pki_captures_step(pki_session *session, const pki_record *record, const pki_record *more,
                       uint32_t kind);

/* What is being written waits, too. */
pki_capture_counts pki_captures_counted(void);

void pki_captures_forget(void);
