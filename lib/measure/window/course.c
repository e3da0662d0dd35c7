#include "measure/window/course.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/compiler.h"

#define MOST PKI_STEP_SERIES_MOST

/* The median of both is not known; it lies between theirs. */
static void join(pki_series_row *into, const pki_series_row *next)
{
    double steps = (double)into->steps + (double)next->steps;
    into->median = (uint64_t)(((double)into->median * (double)into->steps +
                               (double)next->median * (double)next->steps) /
                              steps);
    into->steps += next->steps;
    into->duration += next->duration;
    into->items += next->items;
    into->longest = PKI_MAX(into->longest, next->longest);
    into->shortest = PKI_MIN(into->shortest, next->shortest);
    for (int k = 0; k < PKI_SHARES; k++)
        into->kinds[k] += next->kinds[k];
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

bool pki_course_add(pki_course *c, const pki_window *w)
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

void pki_course_finish(pki_course *c)
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

/* As measure/steps/series.c: a row that holds a step to skip is skipped whole. */
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

bool pki_course_fill(const pki_course *c, pki_step_summary *out)
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
