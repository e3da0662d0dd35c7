#include "measure/window/window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/names.h"
#include "measure/fold/fold.h"
#include "measure/machine/roofline.h"
#include "measure/shape.h"
#include "measure/shape_words.h"
#include "measure/window/seal.h"
#include "stats/slot.h"

/* ---- what a region or a counter has more than at the last cut ---- */

/* Beside each distribution stands what it held when it was cut last; the difference becomes a
 * window's row. Only the extremes cannot be subtracted: tables keep those since the last cut apart.
 *
 * Under the fold lock. Threads enter the calls that they lose meanwhile, each in the sums first and
 * in its bucket last (stats/slot.h), so a row may have one half of such a call and a later row the
 * other. The rows' sum is exact all the same, but for a thread that is still losing a call when the
 * last window is cut: the report, made a moment later, may have more of it. */

/* What a name's distribution held at the last cut. */
typedef struct pki_held {
    uint64_t count, sum, min, max, squares_low, squares_high, self, bytes, flops, untimed, spread;
    uint64_t in_table; /* of count, in the table of all: the rest is lost calls' */
    uint64_t merged;   /* of these, calls that threads which have ended had lost */
    bool waited;       /* last time there were only halves of lost calls */
    pki_tally buckets; /* of a counter: all of it */
} pki_held;

/* ---- of a region ---- */

/* Nothing has come since then. any_lost: threads have counted lost calls, of whatever name. */
/* Without a call since then, and without lost ones that might have come, there is nothing to do. */
static bool pki_held_is_idle_region(const pki_held *h, const pki_slot *slot, bool any_lost)
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

/* The row, and from now on what is in it is held. Where there are only halves of lost calls the row
 * is empty, once, unless it is the last: the other halves should be there at the next cut. False:
 * no memory; the row is to be finished, and what is in it comes with a later window. slot, values:
 * in the fold's table of all; NULL: not there. */
static bool pki_held_cut_region(pki_held *h, pki_fold *fold, uint32_t id, pki_slot *slot, bool last,
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

static bool pki_held_is_idle_counter(const pki_held *h, const pki_values *v, bool any_lost)
{
    return !any_lost && (!v || v->moments.count == h->in_table);
}

static bool pki_held_cut_counter(pki_held *h, pki_fold *fold, uint32_t id, pki_values *v, bool last,
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

static void pki_held_finish(pki_held *h)
{
    pki_tally_finish(&h->buckets);
}

/* ---- cutting a run's figures into windows, while it goes on ---- */

#define WAITING_MOST 64u                      /* windows */
#define WAITING_BYTES_MOST ((size_t)16 << 20) /* of them all, about; but one may always wait */

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
    pki_held *held; /* by id */
    waiting *first, **end;
    size_t count, bytes;
} seal;

/* ---- a window's rows ---- */

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

typedef struct row_sums {
    pki_window *to;
    size_t region_room, counter_room;
    bool lost;
} row_sums;

static void add_region(row_sums *r, uint32_t id, pki_held *h)
{
    pki_window *w = r->to;
    pki_slot *slot = pki_table_slot(&seal.fold->totals, id);
    if (pki_held_is_idle_region(h, slot, r->lost) ||
        !pki_array_fit(&w->regions, &r->region_room, w->region_count + 1, sizeof *w->regions))
        return;
    pki_window_region *row = &w->regions[w->region_count];
    const pki_window_sum *sum = &row->exact;
    if (pki_held_cut_region(h, seal.fold, id, slot, w->last, row) &&
        (sum->count || sum->buckets.used || row->self || row->bytes || row->flops))
        w->region_count++;
    else
        pki_shape_finish(&pki_window_region_shape, row);
}

static void add_counter(row_sums *r, uint32_t id, pki_held *h)
{
    pki_window *w = r->to;
    pki_values *v = (pki_values *)pki_table_slot(&seal.fold->totals, id);
    if (pki_held_is_idle_counter(h, v, r->lost) ||
        !pki_array_fit(&w->counters, &r->counter_room, w->counter_count + 1, sizeof *w->counters))
        return;
    pki_window_counter *row = &w->counters[w->counter_count];
    if (pki_held_cut_counter(h, seal.fold, id, v, w->last, row) &&
        (row->exact.moments.count || row->exact.used))
        w->counter_count++;
    else
        pki_shape_finish(&pki_window_counter_shape, row);
}

static void add_rows(pki_window *window)
{
    row_sums r = {.to = window, .lost = any_lost()};
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

void pki_seal_poll(pki_fold *fold, uint64_t now_ns)
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

bool pki_seal_pop(pki_window *window)
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
        pki_held_finish(&seal.held[i]);
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

/* ---- from what was sealed to what is written ---- */

/* ---- what a line of windows consists of, in that order ---- */

/* ---- what can be added up exactly ---- */

static const pki_member bucket_members[] = {
    PLAINS(pki_tally_bucket, key, count),
};
static const pki_shape bucket = {SHAPE(pki_tally_bucket, bucket_members)};

#define MOMENT(name, m) PLAIN_AS(name, pki_tally, moments.m)
static const pki_member tally_members[] = {
    MOMENT("count", count),
    MOMENT("first", first),
    MOMENT("min", min),
    MOMENT("max", max),
    MOMENT("apart_high", apart.high),
    MOMENT("apart_low", apart.low),
    MOMENT("squares_high", squares.high),
    MOMENT("squares_low", squares.low),
    {TABLE("buckets", pki_tally, buckets, used, bucket)},
};
static const pki_shape tally_shape = {SHAPE(pki_tally, tally_members)};

/* ---- steps ---- */

static const pki_member bit_members[] = {
    PLAINS(pki_step_bit, id, self),
};
static const pki_shape bit = {SHAPE(pki_step_bit, bit_members)};

static const pki_member work_members[] = {
    PLAINS(pki_step_work, steps, time, model, hardware),
};
static const pki_shape work = {SHAPE(pki_step_work, work_members)};

#define STEP(name, m) PLAIN_AS(name, pki_whole_step, step.m)
static const pki_member whole_members[] = {
    STEP("index", index),
    STEP("start", start),
    STEP("duration", duration),
    STEP("items", items),
    STEP("broken_down", broken_down),
    {.key = "work",
     .type = PKI_OBJECT,
     AT(pki_whole_step, step.work),
     .shape = &work,
     .optional = true},
    {KINDS(pki_whole_step, PKI_SHARES)},
    {TABLE("parts", pki_whole_step, bits, bit_count, bit)},
};
static const pki_shape whole_shape = {SHAPE(pki_whole_step, whole_members)};

static const pki_member totals_members[] = {
    PLAINS(pki_step_totals, items, broken_down),
    {OPTIONAL(pki_step_totals, work, work)},
    {KINDS(pki_step_totals, PKI_SHARES)},
    {OBJECT(pki_step_totals, durations, tally_shape)},
};
static const pki_shape totals = {SHAPE(pki_step_totals, totals_members)};

static const pki_member self_members[] = {
    PLAIN_AS("region", pki_steps_part_region, id),
    {OBJECT(pki_steps_part_region, self, tally_shape)},
};
static const pki_shape self_shape = {SHAPE(pki_steps_part_region, self_members)};

static const pki_member other_members[] = {
    PLAIN_AS("name", pki_steps_part_kind, kind),
    {OBJECT(pki_steps_part_kind, totals, totals)},
};
static const pki_shape other = {SHAPE(pki_steps_part_kind, other_members)};

static const pki_member part_members[] = {
    {ROWS("first", pki_steps_part, head, head_count, whole_shape), .optional = true},
    {ROWS("slowest", pki_steps_part, slow, slow_count, whole_shape), .optional = true},
    {OBJECT(pki_steps_part, tail, totals)},
    {OBJECT(pki_steps_part, untracked, tally_shape)},
    {OBJECT(pki_steps_part, late_warmup, tally_shape)},
    {ROWS("kinds", pki_steps_part, others, other_count, other), .optional = true},
    {OBJECT(pki_steps_part, between, totals)},
    {ROWS("selves", pki_steps_part, regions, region_count, self_shape), .optional = true},
};
static const pki_shape part_shape = {SHAPE(pki_steps_part, part_members)};

static const pki_member steps_members[] = {
    PLAINS(pki_window_steps, count, of_all_kinds, first, last),
    {OBJECT(pki_window_steps, time, pki_dist_shape)},
    PLAINS(pki_window_steps, items, items_per_second),
    {KINDS(pki_window_steps, PKI_SHARES)},
    PLAIN(pki_window_steps, broken_down),
    {OPTIONAL(pki_window_steps, processor, pki_processor_shape)},
    {OPTIONAL(pki_window_steps, utilisation, pki_utilisation_shape)},
    {OBJECT(pki_window_steps, exact, part_shape)},
};
static const pki_shape steps_shape = {SHAPE(pki_window_steps, steps_members)};

/* ---- all of it ---- */

static const pki_member region_members[] = {
    PLAIN(pki_window_region, name),
    {CHOICE("kind", pki_window_region, kind, pki_kind_choice)},
    {OBJECT(pki_window_region, time, pki_dist_shape)},
    PLAINS(pki_window_region, self, bytes, flops),
    {OPTIONAL(pki_window_region, step_self, pki_dist_shape)},
    {OPTIONAL(pki_window_region, thinned, pki_region_thinned_shape)},
    {OBJECT(pki_window_region, exact, pki_window_sum_shape)},
};
const pki_shape pki_window_region_shape = {SHAPE(pki_window_region, region_members)};

static const pki_member counter_members[] = {
    PLAINS(pki_window_counter, name, unit),
    {OBJECT(pki_window_counter, value, pki_dist_shape)},
    PLAIN(pki_window_counter, last),
    {OBJECT(pki_window_counter, exact, tally_shape)},
};
const pki_shape pki_window_counter_shape = {SHAPE(pki_window_counter, counter_members)};

#define COST(m, of)                                                                                \
    {                                                                                              \
        .key = #m, .type = PKI_OBJECT, AT(pki_window, costs.m), .shape = &(of), .optional = true   \
    }

/* Regions and counters last: they are written piece by piece. */
static const pki_member window_members[] = {
    PLAIN_AS("window", pki_window, index),
    PLAINS(pki_window, start, end, last, warmup_steps),
    {OBJECT(pki_window, run, pki_run_shape)},
    {ROWS("verdicts", pki_window, verdicts, verdict_count, pki_verdict_shape)},
    {OBJECT(pki_window, counts, pki_counts_shape)},
    {OBJECT(pki_window, overhead, pki_overhead_shape)},
    {ROWS("threads", pki_window, threads, thread_count, pki_thread_shape)},
    {OBJECT(pki_window, steps, steps_shape)},
    COST(io, pki_io_sums_shape),
    COST(energy, pki_energy_sums_shape),
    COST(memory, pki_memory_sum_shape),
    COST(gpu_memory, pki_gpu_memory_sums_shape),
    COST(goodput, pki_goodput_shape),
    {ROWS("regions", pki_window, regions, region_count, pki_window_region_shape)},
    {ROWS("counters", pki_window, counters, counter_count, pki_window_counter_shape)},
};
const pki_shape pki_window_shape = {SHAPE(pki_window, window_members)};

/* ---- from what was sealed to what is written ---- */

/* ---- ids to rows ---- */

/* Rows by id, counted from 1; and how many rows there is room for. */
typedef struct finder {
    pki_window *window;
    uint32_t *rows;
    uint32_t ids;
    size_t room;
} finder;

static bool open_finder(finder *f, pki_window *w)
{
    *f = (finder){.window = w, .ids = pki_name_count(), .room = w->region_count};
    f->rows = calloc(f->ids, sizeof *f->rows);
    for (size_t i = 0; f->rows && i < w->region_count; i++)
        f->rows[w->regions[i].id] = (uint32_t)i + 1;
    return f->rows;
}

/* A step that was cut in two by time has self time of calls that are in the window before. */
static bool add_row(finder *f, uint32_t id)
{
    pki_window *w = f->window;
    if (w->region_count == f->room) {
        size_t room = 2 * f->room + 16;
        pki_window_region *more = realloc(w->regions, room * sizeof *more);
        if (!more)
            return false;
        w->regions = more;
        f->room = room;
    }
    w->regions[w->region_count] = (pki_window_region){.id = id, .kind = pki_name_kind(id)};
    f->rows[id] = (uint32_t)++w->region_count;
    return true;
}

static bool to_row(finder *f, uint32_t *id)
{
    if (!f->rows[*id] && !add_row(f, *id))
        return false;
    *id = f->rows[*id] - 1;
    return true;
}

static bool bits_to_rows(finder *f, pki_whole_step *steps, size_t count)
{
    bool fits = true;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; fits && k < steps[i].bit_count; k++)
            fits = to_row(f, &steps[i].bits[k].id);
    return fits;
}

static bool ids_to_rows(pki_window *w)
{
    finder f;
    pki_steps_part *part = &w->steps.exact;
    bool fits = open_finder(&f, w) && bits_to_rows(&f, part->head, part->head_count) &&
                bits_to_rows(&f, part->slow, part->slow_count);
    for (size_t i = 0; fits && i < part->region_count; i++)
        fits = to_row(&f, &part->regions[i].id);
    free(f.rows);
    return fits;
}

/* ---- the steps ---- */

static void add_head_steps(pki_window_steps *steps)
{
    for (size_t i = 0; i < steps->exact.head_count; i++) {
        const pki_whole_step *whole = &steps->exact.head[i];
        steps->items += whole->step.items;
        steps->broken_down += whole->step.broken_down;
        for (int k = 0; k < PKI_SHARES; k++)
            steps->kinds[k] += whole->kinds[k];
    }
}

/* Of a window whose exact figures are there: the sums, without a peak. */
static void pki_window_work(pki_window_steps *steps)
{
    pki_step_work all = steps->exact.tail.work;
    for (size_t i = 0; i < steps->exact.head_count; i++)
        pki_step_work_add(&all, &steps->exact.head[i].step.work);
    steps->utilisation = (pki_utilisation){
        .steps = all.steps, .time = all.time, .model = all.model, .hardware = all.hardware};
}

static bool complete_steps(pki_window_steps *steps)
{
    pki_tally durations;
    bool fits = pki_steps_part_durations(&steps->exact, &durations);
    const pki_step_totals *tail = &steps->exact.tail;
    steps->count = steps->exact.span.count;
    steps->of_all_kinds = steps->exact.span.all;
    steps->first = steps->exact.span.first;
    steps->last = steps->exact.span.last;
    steps->time = pki_tally_dist(&durations);
    steps->items = tail->items;
    steps->broken_down = tail->broken_down;
    memcpy(steps->kinds, tail->kinds, sizeof steps->kinds);
    add_head_steps(steps);
    pki_window_work(steps);
    if (steps->time.sum > 0)
        steps->items_per_second = (double)steps->items / (steps->time.sum / 1e9);
    pki_tally_finish(&durations);
    return fits;
}

/* Of the steps behind the run's first ones, which stand in `exact` one by one. */
static void complete_selves(pki_window *w)
{
    const pki_steps_part *part = &w->steps.exact;
    for (size_t i = 0; i < part->region_count; i++)
        w->regions[part->regions[i].id].step_self = pki_tally_dist(&part->regions[i].self);
}

/* ---- names ---- */

static bool name_rows(pki_window *w)
{
    bool fits = true;
    for (size_t i = 0; i < w->region_count; i++) {
        const pki_name *name = pki_name_at(w->regions[i].id);
        w->regions[i].name = strndup(name->name, name->length);
        fits = w->regions[i].name && fits;
    }
    for (size_t i = 0; i < w->counter_count; i++) {
        const pki_name *name = pki_name_at(w->counters[i].id);
        w->counters[i].name = strndup(name->name, name->length);
        w->counters[i].unit = strndup(name->key, name->key_length);
        fits = w->counters[i].name && w->counters[i].unit && fits;
    }
    return fits;
}

bool pki_window_complete(pki_window *w)
{
    if (!ids_to_rows(w) || !complete_steps(&w->steps) || !name_rows(w))
        return false;
    complete_selves(w);
    return true;
}
