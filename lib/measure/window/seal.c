#include "measure/window/seal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/names.h"

#define WAITING_MOST 64u                      /* windows */
#define WAITING_BYTES_MOST ((size_t)16 << 20) /* of them all, about; but one may always wait */

/* What a name's distribution held at the last cut. */
typedef struct held {
    uint64_t count, sum, min, max, squares_low, squares_high, self, bytes, flops, untimed, spread;
    uint64_t in_table; /* of count, in the table of all: the rest is lost calls' */
    pki_tally buckets; /* of a counter: all of it */
} held;

typedef struct waiting {
    struct waiting *next;
    size_t bytes;
    pki_window window;
} waiting;

static struct {
    pki_fold *fold; /* NULL: no windows */
    uint64_t steps, ns;
    uint64_t index, start;
    size_t held_count;
    held *held; /* by id */
    waiting *first, **end;
    size_t count, bytes;
    pk_stats stats; /* scratch */
} seal;

/* ---- the difference of one region ---- */

/* Without a call since then, and without lost ones that might have come, there is nothing to do. */
static bool is_idle(const pki_slot *slot, const held *h, bool any_lost)
{
    return !any_lost && (!slot || (slot->count == h->in_table && slot->self == h->self &&
                                   slot->bytes == h->bytes && slot->flops == h->flops));
}

static size_t count_used(const pk_stats *stats)
{
    size_t used = 0;
    for (uint32_t i = 0; i < PK_STATS_BUCKETS; i++)
        used += stats->buckets[i] != 0;
    return used;
}

static uint64_t held_at(const pki_tally *buckets, uint32_t key, size_t *at)
{
    while (*at < buckets->used && buckets->buckets[*at].key < key)
        ++*at;
    return *at < buckets->used && buckets->buckets[*at].key == key ? buckets->buckets[*at].count
                                                                   : 0;
}

/* What is in the buckets now, and what of it is new. Both are as large as need be. */
static void split_buckets(const pk_stats *stats, const pki_tally *before, pki_tally *now,
                          pki_tally *more)
{
    size_t at = 0;
    for (uint32_t i = 0; i < PK_STATS_BUCKETS; i++) {
        uint64_t count = stats->buckets[i];
        if (!count)
            continue;
        uint64_t fresh = count - held_at(before, i, &at);
        now->buckets[now->used++] = (pki_tally_bucket){count, i};
        if (fresh)
            more->buckets[more->used++] = (pki_tally_bucket){fresh, i};
    }
}

static bool make_room(pki_tally *tally, size_t count)
{
    *tally = (pki_tally){0};
    return pki_array_fit(&tally->buckets, &tally->room, count + 1, sizeof *tally->buckets);
}

/* The table of all tells the extremes since the last cut. Of lost calls, which their threads count,
 * those of all time are known: exactly where they are new, else to a bucket. */
static void find_extremes(const pki_slot *slot, const held *h, const pk_stats *stats,
                          pki_window_sum *out)
{
    uint64_t own = slot ? slot->count - h->in_table : 0;
    out->min = own ? slot->min : UINT64_MAX;
    out->max = own ? slot->max : 0;
    if (out->count <= own || !out->buckets.used)
        return;
    const pki_tally_bucket *b = out->buckets.buckets;
    uint64_t low = (uint64_t)pki_bucket_begin(b[0].key);
    uint64_t high = (uint64_t)pki_bucket_begin(b[out->buckets.used - 1].key + 1) - 1;
    bool lower = !h->count || stats->min<h->min, higher = stats->max> h->max;
    out->min = PKI_MIN(out->min, lower ? stats->min : PKI_MAX(low, stats->min));
    out->max = PKI_MAX(out->max, higher ? stats->max : PKI_MIN(high, stats->max));
}

static void difference(const pk_stats *stats, const held *h, pki_window_sum *out)
{
    out->count = stats->count - h->count;
    out->sum = stats->sum - h->sum;
    out->thinned = (pki_window_thinned){stats->untimed - h->untimed, stats->spare[2] - h->spread};
    out->squares_low = stats->spare[0] - h->squares_low;
    out->squares_high = stats->spare[1] - h->squares_high - (stats->spare[0] < h->squares_low);
}

/* Self time may go down for a while, where a lost call is found to have had others in it; then what
 * it has to make up for comes with a later window. */
static uint64_t more_self(const pk_stats *stats, held *h)
{
    uint64_t self = stats->self - h->self;
    if (self >> 63)
        return 0;
    h->self = stats->self;
    return self;
}

static void hold(held *h, const pk_stats *stats, const pki_slot *slot, pki_tally *buckets)
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
    h->bytes = stats->bytes;
    h->flops = stats->flops;
    h->in_table = slot ? slot->count : 0;
}

static bool seal_region(uint32_t id, held *h, pki_slot *slot, pki_window_region *row)
{
    pk_stats *stats = &seal.stats;
    pki_tally now;
    pki_stats_begin(stats);
    pki_fold_stats(seal.fold, id, stats);
    size_t used = count_used(stats);
    *row = (pki_window_region){.id = id, .kind = pki_name_kind(id)};
    if (!make_room(&now, used) || !make_room(&row->exact.buckets, used)) {
        pki_tally_finish(&now);
        return false;
    }
    difference(stats, h, &row->exact);
    split_buckets(stats, &h->buckets, &now, &row->exact.buckets);
    find_extremes(slot, h, stats, &row->exact);
    if (row->exact.count == 0)
        row->exact.min = row->exact.max = 0;
    row->bytes = stats->bytes - h->bytes;
    row->flops = stats->flops - h->flops;
    row->self = more_self(stats, h);
    hold(h, stats, slot, &now);
    if (slot)
        pki_slot_seal(slot);
    return true;
}

/* ---- and of a counter ---- */

static void find_value_extremes(const pki_values *v, const held *h, const pki_value_stats *now,
                                pki_tally *out)
{
    uint64_t own = v ? v->moments.count - h->in_table : 0;
    double min = own ? v->min_since : INFINITY, max = own ? v->max_since : -INFINITY;
    const pki_moments *all = &now->tally.moments, *before = &h->buckets.moments;
    if (out->moments.count > own && out->used) {
        double low = pki_key_begin(out->buckets[0].key);
        double high = pki_key_begin(out->buckets[out->used - 1].key + 1);
        bool lower = !before->count || all->min < before->min;
        bool higher = !before->count || all->max > before->max;
        min = PKI_MIN(min, lower ? all->min : PKI_MAX(low, all->min));
        max = PKI_MAX(max, higher ? all->max : PKI_MIN(high, all->max));
    }
    out->moments.min = min;
    out->moments.max = max;
}

static bool seal_counter(uint32_t id, held *h, pki_values *v, pki_window_counter *row)
{
    pki_value_stats now = {0};
    *row = (pki_window_counter){.id = id};
    if (!pki_fold_values(seal.fold, id, &now) ||
        !pki_tally_difference(&now.tally, &h->buckets, &row->exact)) {
        pki_tally_finish(&now.tally);
        return false;
    }
    row->last = now.last;
    find_value_extremes(v, h, &now, &row->exact);
    pki_tally_finish(&h->buckets);
    h->buckets = now.tally;
    h->in_table = v ? v->moments.count : 0;
    if (v)
        pki_values_seal(v);
    return true;
}

/* ---- all of them ---- */

static bool any_lost(void)
{
    uint32_t used = 0;
    pki_registry_lock();
    for (uint32_t i = 0; i < pki_registry_blocks(seal.fold->registry); i++) {
        const pki_thread *t = pki_registry_block(seal.fold->registry, i);
        used += pki_load(&t->lost.used) + (pki_load(&t->last_resort.count) > 0);
    }
    pki_registry_unlock();
    return used > 0;
}

typedef struct rows {
    pki_window *to;
    size_t region_room, counter_room;
    bool lost;
} rows;

static void add_region(rows *r, uint32_t id, held *h)
{
    pki_window *w = r->to;
    pki_slot *slot = pki_table_slot(&seal.fold->totals, id);
    if (is_idle(slot, h, r->lost) ||
        !pki_array_fit(&w->regions, &r->region_room, w->region_count + 1, sizeof *w->regions))
        return;
    pki_window_region *row = &w->regions[w->region_count];
    if (!seal_region(id, h, slot, row))
        pki_shape_finish(&pki_window_region_shape, row);
    else if (row->exact.count || row->self || row->bytes || row->flops)
        w->region_count++;
    else
        pki_shape_finish(&pki_window_region_shape, row);
}

static void add_counter(rows *r, uint32_t id, held *h)
{
    pki_window *w = r->to;
    pki_values *v = (pki_values *)pki_table_slot(&seal.fold->totals, id);
    if ((!r->lost && (!v || v->moments.count == h->in_table)) ||
        !pki_array_fit(&w->counters, &r->counter_room, w->counter_count + 1, sizeof *w->counters))
        return;
    pki_window_counter *row = &w->counters[w->counter_count];
    if (seal_counter(id, h, v, row) && row->exact.moments.count)
        w->counter_count++;
    else
        pki_shape_finish(&pki_window_counter_shape, row);
}

static void add_rows(pki_window *window)
{
    rows r = {.to = window, .lost = any_lost()};
    uint32_t names = pki_name_count();
    if (!pki_array_fit(&seal.held, &seal.held_count, names, sizeof *seal.held))
        names = (uint32_t)PKI_MIN(names, seal.held_count);
    for (uint32_t id = PKI_NAME_TOO_MANY; id < names; id++)
        if (pki_name_kind(id) == PKI_KIND_COUNTER)
            add_counter(&r, id, &seal.held[id]);
        else if (pki_name_kind(id) <= PK_WAIT)
            add_region(&r, id, &seal.held[id]);
}

/* About what it takes: to bound the queue, not to the byte. */
static size_t bytes_of(const pki_window *w)
{
    size_t bytes = sizeof *w + w->region_count * 2 * sizeof *w->regions;
    for (size_t i = 0; i < w->region_count; i++)
        bytes += w->regions[i].exact.buckets.room * sizeof(pki_tally_bucket);
    for (size_t i = 0; i < w->counter_count; i++)
        bytes += w->counters[i].exact.room * sizeof(pki_tally_bucket);
    for (size_t i = 0; i < w->steps.exact.region_count; i++)
        bytes += w->steps.exact.regions[i].self.room * sizeof(pki_tally_bucket);
    for (size_t i = 0; i < w->steps.exact.head_count; i++)
        bytes += sizeof(pki_whole_step) + w->steps.exact.head[i].bit_count * sizeof(pki_step_bit);
    return bytes;
}

static void enqueue(waiting *w)
{
    w->bytes = bytes_of(&w->window);
    *seal.end = w;
    seal.end = &w->next;
    seal.count++;
    seal.bytes += w->bytes;
}

static bool has_room(void)
{
    return seal.count == 0 || (seal.count < WAITING_MOST && seal.bytes < WAITING_BYTES_MOST);
}

/* The steps first: without memory for them the window goes on, with all that is in it. */
static bool cut(uint64_t end, bool last)
{
    waiting *w = calloc(1, sizeof *w);
    if (!w || !pki_steps_cut(seal.fold->steps, &w->window.steps.exact)) {
        free(w);
        return false;
    }
    w->window.index = seal.index++;
    w->window.start = seal.start;
    w->window.end = PKI_MAX(end, seal.start);
    w->window.last = last;
    add_rows(&w->window);
    seal.start = w->window.end;
    enqueue(w);
    return true;
}

/* By the steps' own numbers, so that all ranks cut at the same ones. */
static bool is_due(const pki_step *step, const pki_steps_span *span)
{
    bool by_steps = seal.steps && (step->index + 1) / seal.steps != span->first / seal.steps;
    return by_steps || (seal.ns && span->end >= seal.start + seal.ns);
}

static void see_step(pki_fold *fold, const pki_step *step)
{
    if (is_due(step, &fold->steps->span) && has_room())
        cut(fold->steps->span.end, false);
}

void pki_seal_look(pki_fold *fold, uint64_t now_ns)
{
    if (!seal.ns || seal.fold != fold || !has_room())
        return;
    /* A loop's next step ends soon. */
    uint64_t patience = fold->steps->count ? 2 * seal.ns : seal.ns;
    if (now_ns >= seal.start + patience)
        cut(now_ns, false);
}

void pki_seal_last(pki_fold *fold, uint64_t now_ns)
{
    if (seal.fold == fold)
        cut(now_ns, true);
    fold->on_step = NULL;
}

static waiting *dequeue(void)
{
    waiting *w = seal.first;
    if (!w)
        return NULL;
    seal.first = w->next;
    seal.end = w->next ? seal.end : &seal.first;
    seal.count--;
    seal.bytes -= w->bytes;
    return w;
}

bool pki_seal_take(pki_window *window)
{
    pki_fold_lock();
    waiting *w = dequeue();
    pki_fold_unlock();
    if (!w)
        return false;
    *window = w->window;
    free(w);
    return true;
}

static void forget(void)
{
    waiting *w;
    while ((w = dequeue())) {
        pki_window_finish(&w->window);
        free(w);
    }
    for (size_t i = 0; i < seal.held_count; i++)
        pki_tally_finish(&seal.held[i].buckets);
    free(seal.held);
    memset(&seal, 0, sizeof seal);
    seal.end = &seal.first;
}

void pki_seal_start(pki_fold *fold, uint64_t steps, uint64_t ns)
{
    seal.end = seal.first ? seal.end : &seal.first;
    forget();
    if (!steps && !ns)
        return;
    seal.fold = fold;
    seal.steps = steps;
    seal.ns = ns;
    fold->on_step = see_step;
}

/* What is there may be half of something. */
void pki_seal_after_fork(void)
{
    memset(&seal, 0, sizeof seal);
    seal.end = &seal.first;
}
