#include "measure/steps/series.h"

#include "base/compiler.h"

#include <stdlib.h>

#define ROOM_FIRST 64

void pki_series_finish(pki_series *series)
{
    free(series->rows);
    free(series->some);
    *series = (pki_series){0};
}

static void add_to(pki_series_row *row, const pki_series_row *next)
{
    row->steps += next->steps;
    row->duration += next->duration;
    row->items += next->items;
    row->longest = PKI_MAX(row->longest, next->longest);
    row->shortest = PKI_MIN(row->shortest, next->shortest);
    for (int k = 0; k < PKI_SHARES; k++)
        row->kinds[k] += next->kinds[k];
}

static void halve(pki_series *series)
{
    size_t kept = 0;
    for (size_t i = 0; i < series->used; i += 2) {
        pki_series_row row = series->rows[i];
        series->some[kept] = series->some[i];
        if (i + 1 < series->used) {
            series->some[kept] = pki_some_join(&series->some[i], &series->some[i + 1], row.steps);
            add_to(&row, &series->rows[i + 1]);
        }
        series->rows[kept++] = row;
    }
    series->used = kept;
    series->stride *= 2;
}

static bool grow(pki_series *series)
{
    size_t room = series->room ? 2 * series->room : ROOM_FIRST;
    if (room > PKI_SERIES_MOST)
        return false;
    pki_series_row *rows = realloc(series->rows, room * sizeof *rows);
    if (!rows)
        return false;
    series->rows = rows;
    pki_some *some = realloc(series->some, room * sizeof *some);
    if (!some)
        return false;
    series->some = some;
    series->room = room;
    return true;
}

static void start_row(pki_series *series, const pki_series_row *step)
{
    series->rows[series->used++] = *step;
    series->last = (pki_medians){0};
}

bool pki_series_add(pki_series *series, const pki_series_row *step)
{
    if (series->stride == 0)
        series->stride = 1;
    /* Full, or no memory to be had: coarser. */
    if (series->used == series->room && !grow(series)) {
        if (series->room == 0)
            return false;
        if (series->rows[series->used - 1].steps >= series->stride)
            halve(series);
    }
    pki_series_row *last = series->used ? &series->rows[series->used - 1] : NULL;
    if (last && last->steps < series->stride)
        add_to(last, step);
    else
        start_row(series, step);
    pki_medians_add(&series->last, step->duration);
    if (series->rows[series->used - 1].steps == series->stride)
        series->some[series->used - 1] = pki_medians_some(&series->last, series->stride);
    return true;
}

void pki_series_rows(const pki_series *series, pki_series_row *rows)
{
    for (size_t i = 0; i < series->used; i++) {
        rows[i] = series->rows[i];
        rows[i].median = rows[i].steps == series->stride
                             ? pki_some_median(&series->some[i], rows[i].steps)
                             : pki_medians_median(&series->last);
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_step(const pki_series_row *rows, size_t count)
{
    double times[PKI_SERIES_MOST / 3];
    for (size_t i = 0; i < count; i++)
        times[i] = (double)rows[i].duration / (double)rows[i].steps;
    qsort(times, count, sizeof *times, by_size);
    return count % 2 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2;
}

bool pki_series_thirds(const pki_series *series, uint64_t skip, double *first, double *last)
{
    /* An entry that holds a step to skip is skipped whole. */
    size_t from = 0;
    for (uint64_t passed = 0; from < series->used && passed < skip; from++)
        passed += series->rows[from].steps;
    size_t left = series->used - from, third = left / 3;
    if (left < PKI_THIRDS_LEAST)
        return false;
    *first = median_step(series->rows + from, third);
    *last = median_step(series->rows + series->used - third, third);
    return true;
}
