#include "measure/fold/plain.h"

#include "core/cursor.h"
#include "measure/fold/self_time.h"

/* The owner wrote them on another processor: asked for so far ahead, they are here in time. */
#define AHEAD 16 /* records */

/* Region records without flags, but for the one that matters to traces alone. */
#define PLAIN_MASK                                                                                 \
    ((uint64_t)(0xFFu & ~PKI_FLAG_TOUCHES) << 56 | (uint64_t)(PKI_PLACE_STEP - 1) << 32)
#define PLAIN ((uint64_t)PKI_RECORD_REGION << 32)

/* Where one call goes. */
typedef struct targets {
    pki_slot *all;
    uint64_t *step; /* the self time of whoever makes steps */
} targets;

static inline bool find_targets(const pki_fold *fold, const pki_thread_fold *alone, uint32_t id,
                                targets *to)
{
    static uint64_t nowhere;
    to->all = pki_table_slot(&fold->totals, id);
    to->step = &nowhere;
    if (PKI_UNLIKELY(!to->all))
        return false;
    if (!alone->tracked)
        return true;
    pki_slot *mine = pki_table_slot(&alone->calls, id);
    to->step = mine ? &mine->self : NULL;
    return mine;
}

static inline void count(pki_fold *fold, pki_thread_fold *alone, const targets *to, uint64_t ns,
                         uint64_t own)
{
    pki_slot *slot = to->all;
    pki_bump(&slot->self, own);
    pki_table_count(pki_fold_memory(fold), &fold->totals, slot, ns);
    if (PKI_LIKELY(slot->kind < PKI_KINDS))
        alone->kinds[slot->kind] += own;
    pki_bump(to->step, own);
}

/* Both ends, each as in the trace. False: they are not in one stretch. */
static inline bool duration_in(const pki_clock_stretch *s, const pki_record *r, uint64_t *ns)
{
    uint64_t start = r->start, ticks = pki_not_negative(r->value);
    if (PKI_UNLIKELY(!pki_clock_stretch_has(s, start, ticks)))
        return false;
    *ns = pki_clock_stretch_ns(s, start + ticks) - pki_clock_stretch_ns(s, start);
    return true;
}

static uint64_t duration_of(const pki_clock_map *map, const pki_record *r, pki_clock_stretch *s)
{
    *s = pki_clock_stretch_at(map, r->start);
    return pki_clock_span_ns(map, r->start, pki_not_negative(r->value));
}

/* Up to where records follow each other with no lost call among them. */
static uint32_t straight_until(const pki_thread *t, uint32_t at, uint32_t head, uint32_t loss)
{
    uint32_t until = at < head ? head : t->ring_bytes;
    return loss > at ? PKI_MIN(until, loss) : until;
}

uint32_t pki_fold_plain(pki_fold *fold, pki_thread_fold *alone, pki_thread *t,
                        const pki_record *records, uint32_t at, uint32_t head, uint32_t loss)
{
    const pki_clock_map *map = pki_fold_clock(fold);
    const pki_record *first = pki_record_in(records, at), *r = first,
                     *end = pki_record_in(records, straight_until(t, at, head, loss));
    pki_clock_stretch stretch = {0};
    targets to;
    uint64_t ns;
    if (fold->thinned || fold->per_thread)
        return at;
    for (; r < end; r++) {
        __builtin_prefetch((const char *)r + AHEAD * sizeof *r);
        uint64_t what = pki_load(&r->what); /* once: what is undone may change meanwhile */
        if (PKI_UNLIKELY((what & PLAIN_MASK) != PLAIN) ||
            PKI_UNLIKELY(!find_targets(fold, alone, pki_what_id(what), &to)))
            break;
        if (PKI_UNLIKELY(!duration_in(&stretch, r, &ns)))
            ns = duration_of(map, r, &stretch);
        count(fold, alone, &to, ns, pki_not_negative((uint64_t)pki_self_of_plain(t, what, ns)));
    }
    pki_bump(&t->recorded, (uint64_t)(r - first));
    return at + (uint32_t)((const char *)r - (const char *)first);
}
