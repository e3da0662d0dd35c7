/* lib/comm/live/progress.h - how far each communicator has come, for whoever looks at a run that
 * was killed because it hung: the last operations enqueued, started and completed.
 *
 * The collector keeps these numbers in the arena, from round to round; `pk recover` writes them
 * behind the events. And when a communicator has had something under way and nothing has happened
 * on it for PKI_PROGRESS_STALL_NS, it writes them into the trace: once, until something happens.
 */
#pragma once

#include "session/session.h"

#define PKI_PROGRESS_STALL_NS 1000000000u

/* In each round; under the drain lock. What finds no room in the arena is not there. */
void pki_progress_round(pki_session *s);

/* A session begins, or a child does. */
void pki_progress_reset(void);
