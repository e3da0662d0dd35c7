#include "measure/window/difference.h"

#include <math.h>

#include "base/memory.h"
#include "core/names.h"

/* ---- of a region ---- */

/* Without a call since then, and without lost ones that might have come, there is nothing to do. */
bool pki_held_is_idle_region(const pki_held *h, const pki_slot *slot, bool any_lost)
{
    return !any_lost && (!slot || (slot->count == h->in_table && slot->self == h->self &&
                                   slot->bytes == h->bytes && slot->flops == h->flops));
}

static uint64_t held_at(const pki_tally *buckets, uint32_t key, size_t *at)
{
    while (*at < buckets->used && buckets->buckets[*at].key < key)
        ++*at;
    return *at < buckets->used && buckets->buckets[*at].key == key ? buckets->buckets[*at].count
                                                                   : 0;
}

static bool make_room(pki_tally *tally, size_t count)
{
    return pki_array_fit(&tally->buckets, &tally->room, count + 1, sizeof *tally->buckets);
}

/* What is in the buckets now, and what of it is new; both are empty. False without memory. */
static bool split_buckets(const pk_stats *stats, const pki_tally *before, pki_tally *now,
                          pki_tally *more)
{
    uint16_t used[PK_STATS_BUCKETS];
    size_t count = pki_stats_used(stats, used), at = 0;
    if (!make_room(now, count) || !make_room(more, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        uint64_t calls = stats->buckets[used[i]], fresh = calls - held_at(before, used[i], &at);
        now->buckets[now->used++] = (pki_tally_bucket){calls, used[i]};
        if (fresh)
            more->buckets[more->used++] = (pki_tally_bucket){fresh, used[i]};
    }
    return true;
}

static uint64_t calls_in(const pki_tally *tally)
{
    uint64_t calls = 0;
    for (size_t i = 0; i < tally->used; i++)
        calls += tally->buckets[i].count;
    return calls;
}

/* own: calls that were folded, which are whole. A lost call may never get its bucket, for want of
 * memory: it waits once. */
static bool must_wait(pki_held *h, uint64_t own, uint64_t count, const pki_tally *buckets)
{
    h->waited = !h->waited && own == 0 && (count == 0) != (buckets->used == 0);
    return h->waited;
}

/* The table of all has the extremes since the last cut. Of lost calls, which their threads count,
 * those of all time are known: exactly where they are new, else to a bucket. */
static void find_extremes(const pki_slot *slot, uint64_t own, const pki_held *h,
                          const pk_stats *stats, pki_window_sum *out)
{
    bool lower = !h->count || stats->min < h->min, higher = !h->count || stats->max > h->max;
    out->min = own ? slot->min : UINT64_MAX;
    out->max = own ? slot->max : 0;
    if (calls_in(&out->buckets) > own) {
        const pki_tally_bucket *b = out->buckets.buckets;
        uint64_t low = (uint64_t)pki_bucket_begin(b[0].key);
        uint64_t high = (uint64_t)pki_bucket_begin(b[out->buckets.used - 1].key + 1) - 1;
        out->min = PKI_MIN(out->min, PKI_MAX(low, stats->min));
        out->max = PKI_MAX(out->max, PKI_MIN(high, stats->max));
    }
    bool unknown = out->min > out->max; /* lost calls without a bucket */
    out->min = lower || unknown ? stats->min : out->min;
    out->max = higher || unknown ? stats->max : out->max;
}

static void difference(const pk_stats *stats, const pki_held *h, pki_window_sum *out)
{
    out->count = stats->count - h->count;
    out->sum = stats->sum - h->sum;
    out->thinned = (pki_window_thinned){stats->untimed - h->untimed, stats->spare[2] - h->spread};
    out->squares_low = stats->spare[0] - h->squares_low;
    out->squares_high = stats->spare[1] - h->squares_high - (stats->spare[0] < h->squares_low);
}

/* Calls that were folded since the last cut: nobody enters them meanwhile. */
static uint64_t own_calls(const pki_held *h, const pki_slot *slot)
{
    return slot ? slot->count - h->in_table - (slot->merged - h->merged) : 0;
}

/* It goes down only where the calls of a thread that has ended find no memory in the table of all
 * (fold/fold.c). */
static uint64_t more_self(const pk_stats *stats, pki_held *h)
{
    uint64_t self = stats->self - h->self;
    if (self >> 63)
        return 0;
    h->self = stats->self;
    return self;
}

/* What is there whether or not there was a call. */
static void take_work(pki_held *h, const pk_stats *stats, const pki_slot *slot,
                      pki_window_region *row)
{
    row->self = more_self(stats, h);
    row->bytes = stats->bytes - h->bytes;
    row->flops = stats->flops - h->flops;
    h->bytes = stats->bytes;
    h->flops = stats->flops;
    h->in_table = slot ? slot->count : 0;
    h->merged = slot ? slot->merged : 0;
}

static void hold(pki_held *h, const pk_stats *stats, pki_tally *buckets)
{
    pki_tally_finish(&h->buckets);
    h->buckets = *buckets;
    h->count = stats->count;
    h->sum = stats->sum;
    h->min = stats->min;
    h->max = stats->max;
    h->squares_low = stats->spare[0];
    h->squares_high = stats->spare[1];
    h->spread = stats->spare[2];
    h->untimed = stats->untimed;
}

bool pki_held_cut_region(pki_held *h, pki_fold *fold, uint32_t id, pki_slot *slot, bool last,
                         pki_window_region *row)
{
    static pk_stats scratch; /* large, so emptied where it was used alone; under the fold lock */
    pk_stats *stats = &scratch;
    pki_tally now = {0};
    pki_stats_again(stats);
    pki_fold_stats(fold, id, stats);
    *row = (pki_window_region){.id = id, .kind = pki_name_kind(id)};
    difference(stats, h, &row->exact);
    if (!split_buckets(stats, &h->buckets, &now, &row->exact.buckets)) {
        pki_tally_finish(&now);
        return false;
    }
    uint64_t own = own_calls(h, slot);
    bool wait = must_wait(h, own, row->exact.count, &row->exact.buckets) && !last;
    wait |= stats->count < h->count; /* calls have moved to "too many names" (fold/fold.c) */
    if (wait || (!row->exact.count && !row->exact.buckets.used)) {
        pki_tally_finish(&now);
        pki_tally_finish(&row->exact.buckets);
        row->exact = (pki_window_sum){0}; /* nor is what there is of its sums held */
    } else {
        find_extremes(slot, own, h, stats, &row->exact);
        hold(h, stats, &now);
        if (slot)
            pki_slot_seal(slot);
    }
    if (!wait)
        take_work(h, stats, slot, row);
    return true;
}

/* ---- of a counter ---- */

static void find_value_extremes(const pki_values *v, uint64_t own, const pki_held *h,
                                const pki_value_stats *now, pki_tally *out)
{
    double min = own ? v->min_since : INFINITY, max = own ? v->max_since : -INFINITY;
    const pki_moments *all = &now->tally.moments, *before = &h->buckets.moments;
    if (calls_in(out) > own) {
        double low = pki_key_begin(out->buckets[0].key);
        double high = pki_key_begin(out->buckets[out->used - 1].key + 1);
        min = PKI_MIN(min, PKI_MAX(low, all->min));
        max = PKI_MAX(max, PKI_MIN(high, all->max));
    }
    bool unknown = min > max;
    out->moments.min = unknown || !before->count || all->min < before->min ? all->min : min;
    out->moments.max = unknown || !before->count || all->max > before->max ? all->max : max;
}

bool pki_held_is_idle_counter(const pki_held *h, const pki_values *v, bool any_lost)
{
    return !any_lost && (!v || v->moments.count == h->in_table);
}

bool pki_held_cut_counter(pki_held *h, pki_fold *fold, uint32_t id, pki_values *v, bool last,
                          pki_window_counter *row)
{
    pki_value_stats now = {0};
    uint64_t own = v ? v->moments.count - h->in_table - (v->merged - h->merged) : 0;
    *row = (pki_window_counter){.id = id};
    if (!pki_fold_values(fold, id, &now) ||
        !pki_tally_difference(&now.tally, &h->buckets, &row->exact)) {
        pki_tally_finish(&now.tally);
        return false;
    }
    bool wait = must_wait(h, own, row->exact.moments.count, &row->exact) && !last;
    wait |= now.tally.moments.count < h->buckets.moments.count; /* as above, and they are gone */
    h->in_table = v ? v->moments.count : 0;
    h->merged = v ? v->merged : 0;
    if (wait || (!row->exact.moments.count && !row->exact.used)) {
        pki_tally_finish(&now.tally);
        pki_tally_finish(&row->exact);
        return true;
    }
    row->last = now.last;
    find_value_extremes(v, own, h, &now, &row->exact);
    if (row->exact.moments.count == 0) { /* of sums without a count nothing is held */
        row->exact.moments = (pki_moments){0};
        now.tally.moments = h->buckets.moments;
    }
    pki_tally_finish(&h->buckets);
    h->buckets = now.tally;
    if (v)
        pki_values_seal(v);
    return true;
}

void pki_held_finish(pki_held *h)
{
    pki_tally_finish(&h->buckets);
}
