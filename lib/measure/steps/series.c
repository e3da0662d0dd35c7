#include "measure/steps/series.h"

#include "base/compiler.h"

#include <stdlib.h>

typedef struct series_row {
    pki_series_row row; /* but for its median */
    pki_some some;      /* if it is full */
} series_row;

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

/* Two full rows. */
static void join(void *into, const void *from)
{
    series_row *row = into;
    const series_row *next = from;
    row->some = pki_some_join(&row->some, &next->some, row->row.steps);
    add_to(&row->row, &next->row);
}

static const pki_series_kind steps = {.row_bytes = sizeof(series_row),
                                      .first_room = 64,
                                      .most = PKI_STEP_SERIES_MOST,
                                      .first_stride = 1,
                                      .join = join};

bool pki_step_series_add(pki_step_series *series, const pki_series_row *step)
{
    series_row *at = pki_series_next(&series->rows, &steps);
    if (!at)
        return false;
    if (at->row.steps) {
        add_to(&at->row, step);
    } else {
        at->row = *step;
        series->last = (pki_medians){0};
    }
    pki_medians_add(&series->last, step->duration);
    if (at->row.steps == series->rows.stride)
        at->some = pki_medians_some(&series->last, series->rows.stride);
    return true;
}

void pki_step_series_rows(const pki_step_series *series, pki_series_row *rows)
{
    const series_row *from = series->rows.rows;
    for (size_t i = 0; i < series->rows.used; i++) {
        rows[i] = from[i].row;
        rows[i].median = rows[i].steps == series->rows.stride
                             ? pki_some_median(&from[i].some, rows[i].steps)
                             : pki_medians_median(&series->last);
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_step(const series_row *rows, size_t count)
{
    double times[PKI_STEP_SERIES_MOST / 3];
    for (size_t i = 0; i < count; i++)
        times[i] = (double)rows[i].row.duration / (double)rows[i].row.steps;
    qsort(times, count, sizeof *times, by_size);
    return count % 2 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2;
}

bool pki_step_series_thirds(const pki_step_series *series, uint64_t skip, double *first,
                            double *last)
{
    /* An entry that holds a step to skip is skipped whole. */
    const series_row *rows = series->rows.rows;
    size_t used = series->rows.used, from = 0;
    for (uint64_t passed = 0; from < used && passed < skip; from++)
        passed += rows[from].row.steps;
    size_t left = used - from, third = left / 3;
    if (left < PKI_THIRDS_LEAST)
        return false;
    *first = median_step(rows + from, third);
    *last = median_step(rows + used - third, third);
    return true;
}
