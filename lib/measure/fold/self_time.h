/* lib/measure/fold/self_time.h - self time, from records alone.
 *
 * A ring holds regions in the order of their ends, each with its depth: what lies inside a region
 * comes before it. So one sum per depth is what of a region's time belongs to others, and who
 * records keeps no account of it. Calls without a record would be missing in these sums:
 *
 * - A lost call's time is kept by the region around it and comes with its record (PKI_FLAG_LOST).
 * - Of a lost call that may have recorded ones inside it, a pki_loss says where in the ring it
 * ended. Its self time is in no table before the fold has come there.
 *
 * - A timed call that stands for w takes w times its own time off the region around it, since the
 *   others lie in there, too, on average (core/thin.h). That may be more than the region around has
 *   in this very call: the slot keeps the rest as a debt, which the region's next calls pay.
 *
 * All of it in nanoseconds, each end of a region through the clock map as in the trace. All under
 * the fold lock.
 */
#pragma once

#include "core/thread.h"

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

/* The next lost call that has to be looked at; NULL: there is none. */
static inline const pki_loss *pki_next_loss(const pki_thread *t)
{
    bool more = t->losses_folded != pki_load_acquire(&t->losses_made); /* pairs with note_loss */
    return more ? &t->losses[t->losses_folded % PKI_LOSSES] : NULL;
}

static inline void pki_loss_folded(pki_thread *t)
{
    pki_store_release(&t->losses_folded,
                      t->losses_folded + 1); /* pairs with the acquire in ring.c */
}
