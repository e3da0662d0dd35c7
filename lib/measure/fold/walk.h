/* lib/measure/fold/walk.h - a walk through a thread's records, in the order of writing */
#pragma once

#include "core/ring.h"
#include "core/thread.h"
#include "measure/fold/fold.h"

/* ---- a ring's records stand in the order in which they were written ---- */

/*
 * The fast path reads `state`, writes a record, and stores the new `state`. A signal handler may
 * interrupt it in between, and record, too. Then the interrupted store undoes the handler's
 * records:
 *
 *     slots       a  b  c  .  .  .  .
 *                          ^ state             an end has read it...
 *                 a  b  c  h  h  h  .
 *                                   ^ state    ...a handler records three calls...
 *                 a  b  c  d  h  h  .
 *                             ^ state          ...the end writes d, and stores what it had computed
 *
 * Usually no reader has seen the h's, and the owner overwrites them. If the fold has read them, its
 * place lies ahead of `state`. In a ring that looks as if nearly all of it were unread: the records
 * of the lap before. The fold recognises those by their time: they are older than the last one it
 * has folded. In zeroed memory (a segment, a ring before its owner's second lap) zeros lie there,
 * and a zero is no record. The end of a turn is found in the same way. A record of two slots may
 * lie across the place where folding goes on; the slot met there is no record (pki_is_record).
 *
 * The owner writes on from where it was put back, up to `stop`, as before. Nobody reads what it
 * writes before the fold's place. If it looks for room there, all of the ring is free and looks
 * full. So the fold tells it the place (`undone_until`), and the owner goes on from that
 * (core/ring.c, catch_up).
 */

/* Up to where there are records that have not been folded. Under the fold lock. */
uint64_t pki_fold_head(const pki_thread *t);

/* Of a turn whose owner is at `head`, or was as it left, and of which `at` has been folded: where
 * the records end. ring: the owner's, of whose turns there are others to be read. */
uint32_t pki_fold_bound(const pki_thread *t, const pki_record *ring, uint32_t turn, uint32_t at,
                        uint32_t head);

/* With everything folded, and an owner that is gone or not seen any more: what its counts say
 * beyond what was in the ring has been undone as above. Such points are dropped ones. */
void pki_fold_settle(pki_thread *t);

/* ---- self time, from records alone ---- */

/*
 * A ring holds regions in the order of their ends, each with its depth: what lies inside a region
 * comes before it. So one sum per depth is what of a region's time belongs to others, and who
 * records keeps no account of it. Calls without a record would be missing in these sums:
 *
 * - A lost call's time is kept by the region around it and comes with its record (PKI_FLAG_LOST).
 * - Of a lost call that may have recorded ones inside it, a pki_loss says where in the ring it
 *   ended. Its self time is in no table before the fold has come there.
 * - A timed call that stands for w takes w times its own time off the region around it, since the
 *   others lie in there, too, on average (core/thin.h). That may be more than the region around has
 *   in this very call: the slot keeps the rest as a debt, which the region's next calls pay.
 *
 * All of it in nanoseconds, each end of a region through the clock map as in the trace. All under
 * the fold lock.
 */

/* Of a call that took so many ns, in which none was lost; what is negative has been claimed for
 * calls inside it. */
static inline int64_t pki_self_of_plain(pki_thread *t, uint64_t what, uint64_t ns)
{
    uint64_t *inside = &t->inside[pki_what_depth(what)];
    uint64_t own = ns - inside[1];
    inside[1] = 0;
    inside[0] += ns;
    return (int64_t)own;
}

static inline int64_t pki_self_of_call(pki_thread *t, const pki_record *r, uint64_t ns)
{
    return pki_self_of_plain(t, r->what, ns) - (int64_t)pki_record_lost(r);
}

/* Of a region that stays open (PKI_RECORD_STEP_OPEN). At its end only the rest is its own. */
static inline int64_t pki_self_so_far(pki_thread *t, const pki_record *r)
{
    uint64_t *inside = &t->inside[pki_what_depth(r->what) + 1], before = *inside;
    *inside = r->value - r->extra;
    return (int64_t)(*inside - before);
}

/* Of a lost call, without the recorded ones inside it. */
static inline uint64_t pki_self_of_loss(pki_thread *t, const pki_loss *loss)
{
    uint64_t *inside = &t->inside[loss->depth + 1];
    uint64_t ns = loss->own - PKI_MIN(pki_not_negative(*inside), loss->own);
    *inside = 0;
    return ns;
}

/* ---- what nearly all records are ---- */

/* A call of which there is nothing to say but its time, of a region that has its slots. As
 * records.c would fold it, with all that is the same for many in a row looked up once. */

static inline pki_spans *pki_fold_memory(const pki_fold *fold)
{
    return &fold->registry->arena->spans;
}

static inline const pki_clock_map *pki_fold_clock(const pki_fold *fold)
{
    return &fold->registry->arena->header->clock;
}
