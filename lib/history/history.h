/* lib/history/history.h - keeps what the last steps left, whole and unformatted.
 *
 *     pki_history_round(h);                  // the collector begins to empty the rings
 *     pki_history_thread(h, thread);         // of this one
 *     pki_history_record(h, tid, r, slots);
 *     pki_history_activity(h, activity);
 *     pki_history_step_ended(h, r, more, kind);    // a step has ended: the oldest may go
 *
 * Who made the step is one thread; what others did in it may be taken a round earlier or later. So
 * a step begins, in the history, a round before its first record was taken.
 *
 * Room: chunks are claimed from the arena as they are needed, up to the bound; then the oldest
 * steps go, and where one step is larger than all of it, its beginning.
 *
 * Threads: one at a time (the drain lock). Everything takes NULL and then does nothing.
 * Failure: what finds no room is not kept, and counted.
 */
#pragma once

#include "core/arena.h"
#include "core/thread.h"
#include "history/layout.h"

#define PKI_HISTORY_FREE UINT64_MAX

typedef struct pki_history pki_history;

/* NULL without memory, or room for the first chunk. steps > 0. */
pki_history *pki_history_create(pki_arena *arena, uint32_t steps, uint64_t bytes);
void pki_history_destroy(pki_history *history);

void pki_history_round(pki_history *history);
void pki_history_thread(pki_history *history, const pki_thread *thread);
void pki_history_record(pki_history *history, uint32_t tid, const pki_record *record,
                        const pki_record *more);
/* n regions' records of one slot each, one behind the other. */
void pki_history_regions(pki_history *history, uint32_t tid, const pki_record *records, uint32_t n);
void pki_history_step_ended(pki_history *history, const pki_record *record, const pki_record *more,
                            uint32_t kind);
void pki_history_activity(pki_history *history, const pki_activity *activity,
                          const pki_track *track);
void pki_history_measures(pki_history *history, uint64_t ns, bool on);

/* What is there now; what comes later changes nothing of it. */
bool pki_history_view_now(pki_history *history, pki_history_view *view);

/* Behind the last piece. */
uint64_t pki_history_end(const pki_history *history);

/* Rounds begun so far. */
uint64_t pki_history_rounds(const pki_history *history);

/* Nothing from this position on is given up, PKI_HISTORY_FREE: all may be. */
void pki_history_pin(pki_history *history, uint64_t position);
