#include "measure/window/window.h"

#include <stdlib.h>
#include <string.h>

#include "core/names.h"
#include "measure/shape_words.h"
#include "measure/window/seal.h"
#include "stats/slot.h"

/* ---- a part of a run in numbers: what is new since the window before ---- */

void pki_window_finish(pki_window *window)
{
    pki_shape_finish(&pki_window_shape, window);
    *window = (pki_window){0};
}

/* As pki_stats_add_slot leaves them: the squares travel in the spare words. */
pki_dist pki_window_sum_dist(const pki_window_sum *sum, pk_stats *stats)
{
    pki_stats_again(stats);
    stats->count = sum->count;
    stats->sum = sum->sum;
    stats->min = sum->min;
    stats->max = sum->max;
    stats->spare[0] = sum->squares_low;
    stats->spare[1] = sum->squares_high;
    stats->spare[2] = sum->thinned.spread;
    stats->untimed = sum->thinned.untimed;
    for (size_t i = 0; i < sum->buckets.used; i++)
        if (sum->buckets.buckets[i].key < PK_STATS_BUCKETS)
            pki_stats_count(stats, sum->buckets.buckets[i].key, sum->buckets.buckets[i].count);
    pki_stats_finish(stats, 1);
    return pki_stats_dist(stats);
}

/* A bucket may be all there is of a call that was dropped (difference.h). */
static bool has_any(const pki_window_sum *sum)
{
    return sum->count || sum->buckets.used;
}

bool pki_window_sum_add(pki_window_sum *into, const pki_window_sum *from)
{
    bool fits = true;
    if (has_any(from))
        into->min = has_any(into) ? PKI_MIN(into->min, from->min) : from->min;
    uint64_t low = into->squares_low + from->squares_low;
    into->squares_high += from->squares_high + (low < from->squares_low);
    into->squares_low = low;
    into->max = PKI_MAX(into->max, from->max);
    into->count += from->count;
    into->sum += from->sum;
    into->thinned.untimed += from->thinned.untimed;
    into->thinned.spread += from->thinned.spread;
    for (size_t i = 0; fits && i < from->buckets.used; i++)
        fits = pki_tally_count(&into->buckets, from->buckets.buckets[i].key,
                               from->buckets.buckets[i].count);
    return fits;
}

/* Counts of 64 bits, one after the other, behind size and threads. */
#define FIRST offsetof(pk_counts, begun)
#define WORDS ((sizeof(pk_counts) - FIRST) / sizeof(uint64_t))

pk_counts pki_counts_difference(const pk_counts *now, const pk_counts *before)
{
    pk_counts out = {.size = sizeof out, .threads = now->threads - before->threads};
    for (size_t i = 0; i < WORDS; i++) {
        uint64_t a = (&now->begun)[i], b = (&before->begun)[i];
        (&out.begun)[i] = pki_saturating_sub(a, b);
    }
    out.memory_bytes = now->memory_bytes;
    return out;
}

void pki_counts_add(pk_counts *into, const pk_counts *more)
{
    into->size = sizeof *into;
    into->threads += more->threads;
    for (size_t i = 0; i < WORDS; i++)
        (&into->begun)[i] += (&more->begun)[i];
    into->memory_bytes = more->memory_bytes;
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
static const pki_shape tally = {SHAPE(pki_tally, tally_members)};

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
    {OBJECT(pki_step_totals, durations, tally)},
};
static const pki_shape totals = {SHAPE(pki_step_totals, totals_members)};

static const pki_member self_members[] = {
    PLAIN_AS("region", pki_steps_part_region, id),
    {OBJECT(pki_steps_part_region, self, tally)},
};
static const pki_shape self = {SHAPE(pki_steps_part_region, self_members)};

static const pki_member other_members[] = {
    PLAIN_AS("name", pki_steps_part_kind, kind),
    {OBJECT(pki_steps_part_kind, totals, totals)},
};
static const pki_shape other = {SHAPE(pki_steps_part_kind, other_members)};

static const pki_member part_members[] = {
    {ROWS("first", pki_steps_part, head, head_count, whole_shape), .optional = true},
    {ROWS("slowest", pki_steps_part, slow, slow_count, whole_shape), .optional = true},
    {OBJECT(pki_steps_part, tail, totals)},
    {OBJECT(pki_steps_part, untracked, tally)},
    {OBJECT(pki_steps_part, late_warmup, tally)},
    {ROWS("kinds", pki_steps_part, others, other_count, other), .optional = true},
    {OBJECT(pki_steps_part, between, totals)},
    {ROWS("selves", pki_steps_part, regions, region_count, self), .optional = true},
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
    {OBJECT(pki_window_counter, exact, tally)},
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
