/* lib/measure/fold/order.h - a ring's records stand in the order in which they were written.
 *
 * The fast path stores `state` as it has computed it. A signal handler that interrupts it between
 * reading state and storing it, and records, is undone by that store: the head steps back, and what
 * the handler has recorded will be overwritten. If it has been folded by then, the head lies behind
 * what has been folded, which in a ring looks as if the ring were nearly full, of records of the
 * round before. These are recognised by their time. In a segment, and in a ring until its owner
 * comes round in it, nothing lies ahead but zeros (core/spare.h). So it is with a turn's end. If it
 * steps on again before the next round, a record of two slots may lie across the place where
 * folding goes on, or ends: the slot that is met there is no record (pki_is_record), and no region
 * either.
 *
 * An owner that has stepped back in its ring goes on as before, since it has been told how far it
 * may (`stop`). If it looks again before it has come to where folding stands, that is as good as
 * the ring's end: all ahead is free, and looks as if nothing were. So who folds tells it up to
 * where it has been undone (`undone_until`), and it goes on there (core/ring.c, catch_up).
 */
#pragma once

#include "core/cursor.h"

/* Up to where there are records that have not been folded. Under the fold lock. */
uint64_t pki_fold_head(const pki_thread *t);

/* Of a turn whose owner is at `head`, or was as it left, and of which `at` has been folded: where
 * the records end. ring: the owner's, of whose turns there are others to be read. */
uint32_t pki_fold_bound(const pki_thread *t, const pki_record *ring, uint32_t turn, uint32_t at,
                        uint32_t head);

/* Nothing is left to be folded: notes for an owner that has stepped back how far it has. */
void pki_fold_note_undone(pki_thread *t);

/* The same of a turn that the owner has left, if folding stands at `at` in it: other readers of a
 * turn in the ring find that end from then on. */
uint32_t pki_fold_end(pki_thread *t, uint32_t turn, uint32_t at);

/* Folded up to there, so many bytes; the last record of them, NULL for none, and how many slots
 * were no regions. */
void pki_fold_note(pki_thread *t, const pki_record *last, uint64_t at, uint64_t bytes,
                   uint64_t others);

/* With everything folded, and an owner that is gone or not seen any more: what its counts say
 * beyond what was in the ring has been undone as above. Such points are dropped ones. */
void pki_fold_settle(pki_thread *t);
