#include "measure/window/merge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/map.h"
#include "base/memory.h"
#include "core/names.h"
#include "measure/fold/fold.h"
#include "measure/machine/roofline.h"
#include "measure/memory/gpu.h"
#include "measure/overhead.h"
#include "measure/shape.h"
#include "measure/shape_words.h"
#include "measure/steps/stages.h"
#include "measure/thinning.h"
#include "measure/verdict/verdict.h"
#include "measure/whole_run.h"
#include "measure/window/seal.h"
#include "measure/window/sum.h"
#include "measure/window/window.h"
#include "stats/buckets.h"
#include "stats/series.h"
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

static void pki_counts_add(pk_counts *into, const pk_counts *more)
{
    into->size = sizeof *into;
    into->threads += more->threads;
    for (size_t i = 0; i < WORDS; i++)
        (&into->begun)[i] += (&more->begun)[i];
    into->memory_bytes = more->memory_bytes;
}

/* ---- the steps' operations of a window, and of windows together ---- */

/* The last peak that a window has named: it is of the process, and not added up. False without
 * memory. */
static bool pki_peak_update(pki_utilisation *kept, const pki_window *window)
{
    const pki_utilisation *u = &window->steps.utilisation;
    if (!u->steps || !u->source || !u->precision)
        return true;
    pki_shape_finish(&pki_utilisation_shape, kept);
    *kept = (pki_utilisation){
        .peak = u->peak, .precision = strdup(u->precision), .source = strdup(u->source)};
    return kept->precision && kept->source;
}

/* Into the sums of all windows. False without memory. */
static bool pki_peak_apply(const pki_utilisation *kept, pki_utilisation *sums)
{
    pki_peak peak = {.flops = kept->peak};
    if (!kept->source)
        return true;
    snprintf(peak.precision, sizeof peak.precision, "%s", kept->precision);
    snprintf(peak.source, sizeof peak.source, "%s", kept->source);
    return pki_utilisation_fill(sums, &peak);
}

/* ---- durations as they can be added up without loss ---- */

static const pki_member bucket_members[] = {
    PLAINS(pki_tally_bucket, key, count),
};
static const pki_shape bucket = {SHAPE(pki_tally_bucket, bucket_members)};

static const pki_member thinned_members[] = {
    PLAINS(pki_window_thinned, untimed, spread),
};
static const pki_shape thinned = {SHAPE(pki_window_thinned, thinned_members)};

static const pki_member sum_members[] = {
    PLAINS(pki_window_sum, count, sum, min, max),
    {HEX(pki_window_sum, squares_high)},
    {HEX(pki_window_sum, squares_low)},
    {OPTIONAL(pki_window_sum, thinned, thinned)},
    {TABLE("buckets", pki_window_sum, buckets.buckets, buckets.used, bucket)},
};
const pki_shape pki_window_sum_shape = {SHAPE(pki_window_sum, sum_members)};

static bool make_room(pki_window_sum *sum, size_t count)
{
    return pki_array_fit(&sum->buckets.buckets, &sum->buckets.room, count + 1,
                         sizeof *sum->buckets.buckets);
}

bool pki_window_sum_of_stats(const pk_stats *stats, pki_window_sum *out)
{
    *out = (pki_window_sum){.count = stats->count,
                            .sum = stats->sum,
                            .min = stats->min,
                            .max = stats->max,
                            .squares_low = stats->spare[0],
                            .squares_high = stats->spare[1],
                            .thinned = {stats->untimed, stats->spare[2]}};
    uint16_t used[PK_STATS_BUCKETS];
    size_t count = pki_stats_used(stats, used);
    if (!make_room(out, count))
        return false;
    for (size_t i = 0; i < count; i++)
        out->buckets.buckets[i] = (pki_tally_bucket){stats->buckets[used[i]], used[i]};
    out->buckets.used = count;
    return true;
}

/* A duration that a file may have made anything of. */
static uint64_t ns_of_sum(double ns)
{
    return ns > 0 && ns < 0x1p63 ? (uint64_t)ns : 0;
}

bool pki_window_sum_of_tally(const pki_tally *tally, pki_window_sum *out)
{
    const pki_moments *m = &tally->moments;
    double squares = (double)m->count * (pki_moments_mean(m) * pki_moments_mean(m) +
                                         pki_moments_deviation(m, 0) * pki_moments_deviation(m, 0));
    *out = (pki_window_sum){.count = m->count,
                            .sum = ns_of_sum(pki_moments_sum(m)),
                            .min = ns_of_sum(m->min),
                            .max = ns_of_sum(m->max)};
    if (squares >= 0 && squares < 0x1p127) {
        out->squares_high = (uint64_t)(squares / 0x1p64);
        out->squares_low = (uint64_t)(squares - (double)out->squares_high * 0x1p64);
    }
    bool fits = make_room(out, tally->used);
    /* From 128 on both numberings have the same bounds, and below each value is its own bucket. */
    for (size_t i = 0; fits && i < tally->used; i++)
        fits = pki_tally_count(&out->buckets,
                               pki_bucket(ns_of_sum(pki_key_begin(tally->buckets[i].key))),
                               tally->buckets[i].count);
    return fits;
}

static uint32_t joined(uint32_t key, unsigned shift)
{
    return ((key >> shift) << shift) + (shift ? 1u << (shift - 1) : 0);
}

static size_t used_with(const pki_tally *t, unsigned shift)
{
    size_t used = 0;
    for (size_t i = 0; i < t->used; i++)
        used += !i || joined(t->buckets[i].key, shift) != joined(t->buckets[i - 1].key, shift);
    return used;
}

void pki_window_sum_narrow(pki_window_sum *sum, size_t most)
{
    pki_tally *t = &sum->buckets;
    unsigned shift = 0;
    size_t used = 0;
    while (shift < 16 && used_with(t, shift) > most)
        shift++;
    if (!shift)
        return;
    for (size_t i = 0; i < t->used; i++) {
        pki_tally_bucket next = {t->buckets[i].count, joined(t->buckets[i].key, shift)};
        if (used && t->buckets[used - 1].key == next.key)
            t->buckets[used - 1].count += next.count;
        else
            t->buckets[used++] = next;
    }
    t->used = used;
}

/* ---- how the steps went from window to window ---- */

/* The series of a report that is made of windows, with a row for each of them, or for two, four,
 * eight ... */

/* All zero is empty. */
typedef struct pki_course {
    size_t used, room;
    uint64_t stride, count; /* windows in a row; windows with steps in all */
    pki_series_row *rows;
    pki_tally *times; /* of the steps of each row */
    size_t time_room;
} pki_course;

#define MOST PKI_STEP_SERIES_MOST

/* The median of both is not known; it lies between theirs. */
static void join(pki_series_row *into, const pki_series_row *next)
{
    double steps = (double)into->steps + (double)next->steps;
    into->median = (uint64_t)(((double)into->median * (double)into->steps +
                               (double)next->median * (double)next->steps) /
                              steps);
    pki_series_row_join(into, next);
}

/* False without memory: what could not be joined is left out of the medians. */
static bool halve(pki_course *c)
{
    bool whole = true;
    for (size_t i = 0; i < c->used / 2; i++) {
        pki_tally times = c->times[2 * i], *next = &c->times[2 * i + 1];
        c->rows[i] = c->rows[2 * i];
        join(&c->rows[i], &c->rows[2 * i + 1]);
        whole &= pki_tally_merge(&times, next);
        pki_tally_finish(next);
        c->times[2 * i] = (pki_tally){0};
        c->times[i] = times;
    }
    c->used /= 2;
    c->stride *= 2;
    return whole;
}

static pki_series_row row_of(const pki_window *w)
{
    const pki_window_steps *s = &w->steps;
    pki_series_row row = {.index = s->first,
                          .start = w->start,
                          .steps = s->count,
                          .duration = (uint64_t)s->time.sum,
                          .longest = (uint64_t)s->time.max,
                          .shortest = (uint64_t)s->time.min,
                          .median = (uint64_t)s->time.p50,
                          .items = s->items};
    memcpy(row.kinds, s->kinds, sizeof row.kinds);
    return row;
}

/* How long its steps took; of a file that does not say so, its median for each of them. */
static bool add_times(pki_tally *into, const pki_window *w)
{
    pki_tally times = {0};
    bool done = pki_steps_part_durations(&w->steps.exact, &times);
    if (done && times.moments.count)
        done = pki_tally_merge(into, &times);
    else if (done)
        done = pki_tally_add(into, w->steps.time.p50, w->steps.count);
    pki_tally_finish(&times);
    return done;
}

static bool is_time(double ns)
{
    return ns >= 0 && ns < 0x1p63;
}

/* A window without steps has no row. False without memory. */
static bool pki_course_add(pki_course *c, const pki_window *w)
{
    const pki_dist *time = &w->steps.time;
    if (w->steps.count == 0 || !is_time(time->sum) || !is_time(time->max) || !is_time(time->min) ||
        !is_time(time->p50))
        return true;
    c->stride = c->stride ? c->stride : 1;
    if (c->used == MOST && c->count % c->stride == 0 && !halve(c))
        return false;
    pki_series_row row = row_of(w);
    if (c->count % c->stride) {
        join(&c->rows[c->used - 1], &row);
    } else if (pki_array_fit(&c->rows, &c->room, c->used + 1, sizeof *c->rows) &&
               pki_array_fit(&c->times, &c->time_room, c->used + 1, sizeof *c->times)) {
        c->times[c->used] = (pki_tally){0};
        c->rows[c->used++] = row;
    } else {
        return false;
    }
    c->count++;
    return add_times(&c->times[c->used - 1], w);
}

static void pki_course_finish(pki_course *c)
{
    for (size_t i = 0; i < c->used; i++)
        pki_tally_finish(&c->times[i]);
    free(c->times);
    free(c->rows);
    *c = (pki_course){0};
}

/* ---- into the summary ---- */

/* False without memory. */
static bool median_step(const pki_tally *times, size_t count, double *median)
{
    pki_tally all = {0};
    bool done = true;
    for (size_t i = 0; done && i < count; i++)
        done = pki_tally_merge(&all, &times[i]);
    *median = pki_tally_quantile(&all, 0.5);
    pki_tally_finish(&all);
    return done;
}

/* As measure/steps/stages.c: a row that holds a step to skip is skipped whole. */
static bool fill_thirds(const pki_course *c, pki_step_summary *out)
{
    size_t from = 0;
    for (uint64_t passed = 0; from < c->used && passed < out->warmup; from++)
        passed += c->rows[from].steps;
    size_t left = c->used - from, third = left / 3;
    out->first_third = out->last_third = out->drift = 0;
    if (left < PKI_THIRDS_LEAST)
        return true;
    bool done = median_step(c->times + from, third, &out->first_third) &&
                median_step(c->times + c->used - third, third, &out->last_third);
    if (out->first_third > 0)
        out->drift = out->last_third / out->first_third - 1;
    return done;
}

/* Replaces out->series, and with them both thirds and the drift. False without memory. */
static bool pki_course_fill(const pki_course *c, pki_step_summary *out)
{
    pki_series_row *rows = malloc((c->used + 1) * sizeof *rows);
    if (!rows)
        return false;
    if (c->used)
        memcpy(rows, c->rows, c->used * sizeof *rows);
    free(out->series);
    out->series = rows;
    out->series_count = c->used;
    return fill_thirds(c, out);
}

/* ---- what windows cost beside time, taken apart and added up again ---- */

bool pki_window_costs_more(const pki_window_costs *now, const pki_window_costs *before,
                           pki_window_costs *out)
{
    out->io = pki_io_sums_more(&now->io, &before->io);
    out->io.why_not = now->io.why_not ? strdup(now->io.why_not) : NULL;
    out->memory = now->memory;
    out->memory.looks -= before->memory.looks;
    out->memory.minor_faults -= before->memory.minor_faults;
    out->memory.major_faults -= before->memory.major_faults;
    out->goodput = now->goodput;
    return (out->io.why_not || !now->io.why_not) &&
           (!now->gpu_memory.asked ||
            pki_gpu_sums_more(&now->gpu_memory, &before->gpu_memory, &out->gpu_memory)) &&
           (!now->energy.asked || pki_energy_more(&now->energy, &before->energy, &out->energy));
}

static bool add_io(pki_io_summary *into, const pki_io_summary *more)
{
    char *why = more->why_not ? strdup(more->why_not) : NULL;
    pki_io_sums_add(into, more);
    if (!more->why_not)
        return true;
    free(into->why_not);
    into->why_not = why;
    return why;
}

/* A window in which nobody has looked knows nothing. */
static void add_memory(pki_memory_sum *into, const pki_memory_sum *more)
{
    if (!more->looks)
        return;
    into->looks += more->looks;
    into->resident = more->resident;
    into->most_resident = PKI_MAX(into->most_resident, more->most_resident);
    into->most_private = PKI_MAX(into->most_private, more->most_private);
    into->minor_faults += more->minor_faults;
    into->major_faults += more->major_faults;
}

bool pki_window_costs_add(pki_window_costs *into, const pki_window_costs *more)
{
    add_memory(&into->memory, &more->memory);
    if (more->goodput.up)
        into->goodput = more->goodput;
    return (!more->io.asked || add_io(&into->io, &more->io)) &&
           pki_gpu_sums_add(&into->gpu_memory, &more->gpu_memory) &&
           pki_energy_add(&into->energy, &more->energy);
}

static bool fill_memory(const pki_memory_sum *m, pki_memory_summary *out)
{
    if (!m->looks)
        return true;
    *out = (pki_memory_summary){.looks = m->looks,
                                .resident = m->resident,
                                .most_resident = m->most_resident,
                                .most_private = m->most_private,
                                .minor_faults = m->minor_faults,
                                .major_faults = m->major_faults,
                                .limit_of = strdup(""),
                                .allocator = strdup(""),
                                .uncounted = strdup("")};
    return out->limit_of && out->allocator && out->uncounted;
}

bool pki_window_costs_fill(const pki_window_costs *costs, pki_summary *out)
{
    out->io = costs->io;
    out->io.why_not = costs->io.asked ? strdup(costs->io.why_not ? costs->io.why_not : "") : NULL;
    out->goodput = costs->goodput;
    return (out->io.why_not || !costs->io.asked) && fill_memory(&costs->memory, &out->memory) &&
           pki_gpu_sums_summarise(&costs->gpu_memory, &out->gpu_memory) &&
           pki_energy_fill(&costs->energy, &out->energy);
}

void pki_window_costs_finish(pki_window_costs *costs)
{
    free(costs->io.why_not);
    pki_energy_sums_finish(&costs->energy);
    pki_gpu_sums_finish(&costs->gpu_memory);
    *costs = (pki_window_costs){0};
}

/* ---- what a window cannot be, whatever its file says ---- */

/* What is not finite has been written as null, and read as NaN. */
static bool is_sane(pki_tally *t)
{
    pki_moments *m = &t->moments;
    if (isnan(m->squares.high))
        m->squares = (pki_pair){INFINITY, 0};
    return isfinite(m->first) && isfinite(m->min) && isfinite(m->max) && isfinite(m->apart.high) &&
           isfinite(m->apart.low) && !isnan(m->squares.low);
}

static bool are_rows(const pki_whole_step *steps, size_t count, size_t rows)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < steps[i].bit_count; k++)
            if (steps[i].bits[k].id >= rows)
                return false;
    return true;
}

static bool refers_to_its_rows(const pki_window *w)
{
    const pki_steps_part *part = &w->steps.exact;
    bool known = are_rows(part->head, part->head_count, w->region_count) &&
                 are_rows(part->slow, part->slow_count, w->region_count);
    for (size_t i = 0; known && i < part->region_count; i++)
        known = part->regions[i].id < w->region_count;
    return known;
}

static bool has_sane_tallies(pki_window *w)
{
    pki_steps_part *part = &w->steps.exact;
    bool sane =
        is_sane(&part->tail.durations) && is_sane(&part->untracked) && is_sane(&part->late_warmup);
    sane = is_sane(&part->between.durations) && sane;
    for (size_t i = 0; i < part->other_count; i++)
        sane = is_sane(&part->others[i].totals.durations) && sane;
    for (size_t i = 0; i < part->region_count; i++)
        sane = is_sane(&part->regions[i].self) && sane;
    for (size_t i = 0; i < w->counter_count; i++)
        sane = is_sane(&w->counters[i].exact) && sane;
    return sane;
}

/* Why its figures cannot be: a sentence without a subject; NULL: they can. */
static const char *pki_window_objection(pki_window *w)
{
    if (w->end < w->start || w->steps.count < w->steps.exact.head_count)
        return "has times or steps that cannot be";
    if (!refers_to_its_rows(w))
        return "refers to a region that it does not have";
    return has_sane_tallies(w) ? NULL : "has a distribution that is not finite";
}

/* ---- windows added up again: the report of the run, or of a part of it ---- */

typedef struct region {
    uint32_t kind;
    uint64_t self, bytes, flops;
    pki_window_sum sum;
} region;

typedef struct counter {
    char *unit;
    double last;
    pki_tally values;
    size_t point_count, point_room;
    pki_counter_point *points; /* one a window */
} counter;

struct pki_windows {
    bool light; /* no distributions of regions and counters */
    size_t count, missing;
    uint64_t first, last; /* windows */
    uint64_t start, end;
    bool ended;
    pki_texts region_names; /* behind a letter for their kinds */
    pki_texts counter_names;
    size_t region_room, counter_room;
    region *regions;
    counter *counters;
    pki_steps *steps;
    uint32_t warmup_steps;
    pki_course course;
    pki_utilisation peak;
    pki_window_costs costs;
    pki_run run;
    pki_toll toll;
    pk_counts counts;
    size_t thread_count;
    pki_thread_row *threads;
    pk_stats stats; /* scratch */
};

pki_windows *pki_windows_create(bool light)
{
    pki_windows *w = pki_mem_zeroed(sizeof *w);
    if (w)
        w->steps = pki_steps_create();
    if (w && w->steps) {
        w->light = light;
        return w;
    }
    free(w);
    return NULL;
}

void pki_windows_destroy(pki_windows *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->region_names.count; i++)
        pki_tally_finish(&w->regions[i].sum.buckets);
    for (size_t i = 0; i < w->counter_names.count; i++) {
        pki_tally_finish(&w->counters[i].values);
        free(w->counters[i].unit);
        free(w->counters[i].points);
    }
    free(w->regions);
    free(w->counters);
    pki_texts_finish(&w->region_names);
    pki_texts_finish(&w->counter_names);
    pki_steps_destroy(w->steps);
    pki_course_finish(&w->course);
    pki_shape_finish(&pki_utilisation_shape, &w->peak);
    pki_window_costs_finish(&w->costs);
    pki_shape_finish(&pki_run_shape, &w->run);
    pki_shape_finish_rows(&pki_thread_shape, w->threads, w->thread_count);
    free(w);
}

size_t pki_windows_count(const pki_windows *w)
{
    return w->count;
}

/* ---- is it one? ---- */

static bool is_of_this_run(const pki_windows *all, const pki_run *run)
{
    return all->count == 0 || (all->run.pid == run->pid && all->run.start_unix == run->start_unix);
}

static const char *objection(const pki_windows *all, pki_window *w)
{
    if (!is_of_this_run(all, &w->run))
        return "is of another run than the windows before it";
    if (all->count && w->index <= all->last)
        return "does not follow the window before it";
    return pki_window_objection(w);
}

/* ---- adding ---- */

static uint32_t number_of(pki_texts *names, uint32_t kind, const char *name)
{
    char *key;
    if (asprintf(&key, "%c%s", (int)(1 + kind % 255), name) < 0)
        return PKI_TEXTS_NONE;
    uint32_t at = pki_texts_add(names, key);
    free(key);
    return at;
}

/* The region's own number, among those of all windows. UINT32_MAX without memory. There is room for
 * it before it has a number. */
static uint32_t add_region(pki_windows *all, const pki_window_region *row)
{
    if (!pki_array_fit(&all->regions, &all->region_room, all->region_names.count + 1,
                       sizeof *all->regions))
        return UINT32_MAX;
    uint32_t at = number_of(&all->region_names, row->kind, row->name);
    if (at == UINT32_MAX)
        return UINT32_MAX;
    region *r = &all->regions[at];
    r->kind = row->kind;
    r->self += row->self;
    r->bytes += row->bytes;
    r->flops += row->flops;
    bool fits = (all->light || pki_window_sum_add(&r->sum, &row->exact)) &&
                pki_steps_region(all->steps, at, row->kind);
    return fits ? at : UINT32_MAX;
}

static bool add_counter(pki_windows *all, const pki_window *w, const pki_window_counter *row)
{
    const pki_moments *m = &row->exact.moments;
    if (!pki_array_fit(&all->counters, &all->counter_room, all->counter_names.count + 1,
                       sizeof *all->counters))
        return false;
    uint32_t at = pki_texts_add(&all->counter_names, row->name);
    if (at == UINT32_MAX)
        return false;
    counter *c = &all->counters[at];
    if (!c->unit && !(c->unit = strdup(row->unit)))
        return false;
    c->last = row->last;
    if (!pki_array_fit(&c->points, &c->point_room, c->point_count + 1, sizeof *c->points))
        return false;
    if (m->count)
        c->points[c->point_count++] =
            (pki_counter_point){w->start, m->count, m->min, pki_moments_mean(m), m->max};
    return pki_tally_merge(&c->values, &row->exact);
}

static void renumber(pki_whole_step *steps, size_t count, const uint32_t *numbers)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < steps[i].bit_count; k++)
            steps[i].bits[k].id = numbers[steps[i].bits[k].id];
}

/* From the window's rows to our numbers. */
static void renumber_part(pki_steps_part *part, const uint32_t *numbers)
{
    renumber(part->head, part->head_count, numbers);
    renumber(part->slow, part->slow_count, numbers);
    for (size_t i = 0; i < part->region_count; i++)
        part->regions[i].id = numbers[part->regions[i].id];
}

static bool add_regions(pki_windows *all, const pki_window *w, uint32_t *numbers)
{
    for (size_t i = 0; i < w->region_count; i++) {
        numbers[i] = add_region(all, &w->regions[i]);
        if (numbers[i] == UINT32_MAX)
            return false;
    }
    return true;
}

/* What is of the process, and not added up, is the last window's. */
static void swap_facts(pki_windows *all, pki_window *w)
{
    pki_run run = w->run;
    pki_thread_row *threads = w->threads;
    size_t count = w->thread_count;
    w->run = all->run;
    w->threads = all->threads;
    w->thread_count = all->thread_count;
    all->run = run;
    all->threads = threads;
    all->thread_count = count;
}

/* Of a file anything may be said; as nanoseconds. */
static uint64_t ns_of(double ns)
{
    return ns > 0 && ns < 0x1p63 ? (uint64_t)ns : 0;
}

static void add_toll(pki_toll *toll, const pki_window *w)
{
    const pki_processor *p = &w->steps.processor;
    toll->region_ns = w->overhead.region_ns;
    toll->counted_ns = w->overhead.counted_ns;
    toll->process += w->run.cpu;
    toll->collector += ns_of(w->overhead.collector);
    toll->callers += ns_of(w->overhead.callers);
    toll->captures += ns_of(w->overhead.captures);
    toll->readings += ns_of(w->overhead.readings);
    toll->backends += ns_of(w->overhead.backends);
    toll->stepper.observed += p->observed;
    toll->stepper.running += p->running;
    toll->stepper.ready += p->ready;
}

static void note_position(pki_windows *all, const pki_window *w)
{
    if (all->count == 0) {
        all->first = w->index;
        all->start = w->start;
        all->warmup_steps = w->warmup_steps;
        pki_steps_expect_warmup(all->steps, w->warmup_steps);
        if (w->index)
            pki_steps_without_beginning(all->steps);
    } else {
        all->missing += w->index - all->last - 1;
    }
    all->last = w->index;
    all->end = w->end;
    all->ended = w->last;
    all->count++;
}

static bool add_steps(pki_windows *all, pki_window *w, const uint32_t *numbers)
{
    pki_steps_part *part = &w->steps.exact;
    part->span.count = w->steps.count;
    part->span.all = w->steps.of_all_kinds;
    renumber_part(part, numbers);
    return pki_peak_update(&all->peak, w) && pki_course_add(&all->course, w) &&
           pki_steps_join(all->steps, part);
}

static bool add(pki_windows *all, pki_window *w)
{
    uint32_t *numbers = malloc((w->region_count + 1) * sizeof *numbers);
    note_position(all, w);
    add_toll(&all->toll, w);
    pki_counts_add(&all->counts, &w->counts);
    bool fits = numbers && add_regions(all, w, numbers) && add_steps(all, w, numbers) &&
                pki_window_costs_add(&all->costs, &w->costs);
    for (size_t i = 0; fits && !all->light && i < w->counter_count; i++)
        fits = add_counter(all, w, &w->counters[i]);
    swap_facts(all, w);
    free(numbers);
    return fits;
}

const char *pki_windows_add(pki_windows *all, pki_window *window)
{
    const char *why = objection(all, window);
    return why || add(all, window) ? why : "is more than fits into memory";
}

/* ---- the summary ---- */

static bool fill_regions(pki_windows *all, pki_summary *out)
{
    size_t count = all->region_names.count;
    out->regions = calloc(count + 1, sizeof *out->regions);
    for (size_t i = 0; out->regions && i < count; i++) {
        const region *r = &all->regions[i];
        if (r->sum.count == 0 && !all->light)
            continue;
        pki_region_row *row = &out->regions[out->region_count++];
        *row = (pki_region_row){.name = strdup(all->region_names.texts[i] + 1),
                                .kind = r->kind,
                                .time = pki_window_sum_dist(&r->sum, &all->stats),
                                .self = r->self,
                                .bytes = r->bytes,
                                .flops = r->flops};
        row->thinned =
            pki_region_thinned_of(&all->stats, 0, out->run.clock_step_ns, all->toll.region_ns);
        if (!row->name || !pki_histogram_of_times(&r->sum.buckets, &row->histogram) ||
            !pki_window_sum_add(&row->exact, &r->sum))
            return false;
    }
    if (out->regions)
        pki_regions_sort(out->regions, out->region_count);
    return out->regions;
}

static bool fill_counters(const pki_windows *all, pki_summary *out)
{
    size_t count = all->counter_names.count;
    out->counters = calloc(count + 1, sizeof *out->counters);
    for (size_t i = 0; out->counters && i < count; i++) {
        const counter *c = &all->counters[i];
        pki_counter_row *row = &out->counters[out->counter_count++];
        *row = (pki_counter_row){.name = strdup(all->counter_names.texts[i]),
                                 .unit = strdup(c->unit),
                                 .value = pki_tally_dist(&c->values),
                                 .last = c->last};
        row->points = malloc((c->point_count + 1) * sizeof *row->points);
        if (!row->name || !row->unit || !row->points)
            return false;
        memcpy(row->points, c->points, c->point_count * sizeof *row->points);
        row->point_count = c->point_count;
    }
    return out->counters;
}

static char *source_of(const pki_windows *all)
{
    char text[128];
    size_t n = (size_t)snprintf(text, sizeof text, "windows %llu to %llu",
                                (unsigned long long)all->first, (unsigned long long)all->last);
    if (all->missing)
        snprintf(text + n, sizeof text - n, " (%zu of them are missing)", all->missing);
    return strdup(text);
}

/* The facts and threads move: a summary is made once. */
static bool move_run(pki_windows *all, pki_summary *out)
{
    out->run = all->run;
    out->threads = all->threads;
    out->thread_count = all->thread_count;
    all->run = (pki_run){0};
    all->threads = NULL;
    all->thread_count = 0;
    out->run.wall = all->end - all->start;
    out->run.complete = all->ended || all->light; /* a window says nothing of the run's end */
    free(out->run.source);
    out->run.source = source_of(all);
    return out->run.source;
}

static const char *name_of(void *user, uint32_t id)
{
    const pki_windows *all = user;
    return id < all->region_names.count ? all->region_names.texts[id] + 1 : NULL;
}

bool pki_windows_summary(pki_windows *all, pki_summary *out)
{
    pki_summary_init(out);
    out->counts = all->counts;
    out->counts.size = sizeof out->counts;
    bool fits = move_run(all, out) && fill_regions(all, out) && fill_counters(all, out) &&
                pki_steps_fill(all->steps, all->warmup_steps, name_of, all, out) &&
                pki_peak_apply(&all->peak, &out->steps.utilisation) &&
                pki_window_costs_fill(&all->costs, out) &&
                (!out->steps.count || pki_course_fill(&all->course, &out->steps));
    if (fits) {
        pki_overhead_fill(&all->toll, out);
        fits = pki_whole_run_fill(out) && pki_verdicts_fill(out);
    }
    if (!fits)
        pki_summary_finish(out);
    return fits;
}
