/* lib/core/thin.h - thinned regions: of their calls one of n is timed, the others are counted.
 *
 * One word per name, `pki_thin`, goes from who decides (session/collector) to who calls. It needs
 * no ordering: a thread that sees it late times, or counts, a few calls more.
 *
 *     calls of one thread      . . . . . w T . . . w T . . . . . . . w T
 *                              \_______/   \___/   \___________/
 *                                 gap      gap         gap
 *     .   untimed: counted; no clock, no record, no frame
 *     w   timed, stands for itself: it brings code and branches back into the caches
 *     T   timed, stands for itself and the gap; its record says so (PKI_FLAG_THINNED)
 *
 * Each gap is drawn evenly from 1 to 2n - 1. A fixed length, or one with little spread, would meet
 * a loop's own rhythm. Without w, the time of T would be that of a cold call.
 *
 * An untimed call opens no frame. So what begins inside it lies in the nearest timed call, in
 * records, self times and traces. A list of the thread's keeps untimed calls, so that their ends
 * are known.
 *
 * The fast path knows nothing of it. A thread that calls a thinned pk_region moves its id aside
 * (from `id` to `reserved`). From then on its calls leave the fast path as those of a region that
 * was never used. Threads that are on the fast path already have to notice: for a moment no block
 * has a limit (pki_thin_watch).
 */
#pragma once

#include <stdbool.h>

#include <pk/region.h>

#include "core/names.h"
#include "core/thread.h"

struct pki_registry;

/* What pki_thin holds: below 2 each call is timed. */
#define PKI_THIN_UNTRACED 1u /* but has no event in the trace */
#define PKI_THIN_MOST 4096u
#define PKI_THIN_PER_GAP 2        /* timed calls: one for itself, one for the gap */
#define PKI_THIN_NEVER UINT32_MAX /* each is timed, and that stays: operations end in it */

extern uint32_t pki_thin[PKI_NAMES_MAX];

static inline bool pki_thin_skips_calls(uint32_t thin)
{
    return thin >= 2 && thin != PKI_THIN_NEVER;
}

/* One region's calls on one thread. The owner's, but read when the thread or session has ended. */
struct pki_counted {
    uint32_t n;       /* pki_thin when the gap was drawn; 0: none has been */
    uint32_t left;    /* calls to be counted before the next one that is timed */
    uint32_t drawn;   /* what `left` began as */
    uint32_t carries; /* the record of the timed call that is open, or next, counts the others */
    uint64_t before;  /* counted calls of earlier gaps that no record carries */
    uint64_t last;    /* ticks of the last timed call */
    uint64_t bytes, flops; /* of untimed calls, and in no record yet */
    uint64_t reserved[2];
};

/* Counted, and in no record yet. A reader who meets the owner amid a new gap misses some. */
static inline uint64_t pki_counted_pending(const pki_counted *e)
{
    uint32_t left = pki_load(&e->left), drawn = pki_load(&e->drawn);
    return pki_load(&e->before) + (drawn > left ? drawn - left : 0);
}

/* NULL: none of its calls has been counted on this thread. */
static inline pki_counted *pki_counted_at(const pki_thread *t, uint32_t id)
{
    return id < t->counted_size ? &t->counted[id] : NULL;
}

/* Counts a call, if its turn to be timed has not come. */
static inline bool pki_count_call(pki_thread *t, uint32_t id, uint64_t state)
{
    if (PKI_UNLIKELY(id >= t->counted_size))
        return false;
    pki_counted *e = &t->counted[id];
    uint32_t left = e->left, open = t->untimed_open;
    if (left <= 1 || open == PKI_UNTIMED_MOST || e->n != pki_load(&pki_thin[id]))
        return false;
    pki_store(&t->untimed[open].id, id);
    pki_store(&t->untimed[open].place, (uint32_t)state);
    pki_store(&t->untimed[open].start, pki_top_frame(t, state)->start);
    pki_store(&e->left, left - 1);
    pki_store(&t->untimed_open, open + 1);
    return true;
}

/* Is the innermost thing that is open this untimed call? */
static inline bool pki_is_innermost_untimed(pki_thread *t, uint32_t id, uint64_t state)
{
    if (!t->untimed_open)
        return false;
    const pki_untimed *u = &t->untimed[t->untimed_open - 1];
    return u->id == id && u->place == (uint32_t)state && u->start == pki_top_frame(t, state)->start;
}

/* Under the registry's lock: all begins take the slow path, where they learn what is thinned; or do
 * so no longer. */
void pki_thin_watch(const struct pki_registry *registry, bool on);

/* An operation ends in it: each of its calls has to have a record. */
static inline void pki_thin_never(const pk_region *region)
{
    uint32_t id = pki_load(&region->id);
    id = id ? id : pki_load(&region->reserved);
    if (pki_load(&pki_thin[id]) != PKI_THIN_NEVER)
        pki_store(&pki_thin[id], PKI_THIN_NEVER);
}

/* Moves the id to where the fast path does not find it, or back. */
void pki_thin_mark(pk_region *region, uint32_t id, bool aside);

/* Sets a region's word, unless it is PKI_THIN_NEVER. */
void pki_thin_set(uint32_t id, uint32_t thin);

/* No name is thinned. */
void pki_thin_reset(void);
