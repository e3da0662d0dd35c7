#include "measure/device/series.h"

#include "base/compiler.h"

#include <stdlib.h>

#define ROOM_FIRST 32

void pki_device_series_finish(pki_device_series *series)
{
    free(series->rows);
    *series = (pki_device_series){0};
}

static void join(pki_gpu_series_row *row, const pki_gpu_series_row *next)
{
    row->steps += next->steps;
    row->step += next->step;
    row->busy += next->busy;
    row->gaps += next->gaps;
    row->longest_gap = PKI_MAX(row->longest_gap, next->longest_gap);
    row->copy_alone += next->copy_alone;
    row->sync_gaps += next->sync_gaps;
    row->launch_gaps += next->launch_gaps;
    row->kernels += next->kernels;
    row->comm_hidden += next->comm_hidden;
    row->comm_exposed += next->comm_exposed;
}

static void halve(pki_device_series *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->used; i += 2) {
        pki_gpu_series_row row = s->rows[i];
        if (i + 1 < s->used)
            join(&row, &s->rows[i + 1]);
        s->rows[kept++] = row;
    }
    s->used = kept;
    s->stride *= 2;
}

static bool grow(pki_device_series *s)
{
    size_t room = s->room ? 2 * s->room : ROOM_FIRST;
    pki_gpu_series_row *rows =
        room <= PKI_DEVICE_SERIES_MOST ? realloc(s->rows, room * sizeof *rows) : NULL;
    if (!rows)
        return false;
    s->rows = rows;
    s->room = room;
    return true;
}

bool pki_device_series_add(pki_device_series *s, const pki_gpu_series_row *step)
{
    s->stride = PKI_MAX(s->stride, 1u);
    pki_gpu_series_row *last = s->used ? &s->rows[s->used - 1] : NULL;
    if (last && last->steps < s->stride) {
        join(last, step);
        return true;
    }
    if (s->used == s->room && !grow(s)) {
        if (s->room == 0)
            return false;
        halve(s);
    }
    s->rows[s->used++] = *step;
    return true;
}

bool pki_device_series_fill(const pki_device_series *s, uint64_t first, pki_gpu_row *row)
{
    row->series_count = 0;
    row->series = malloc(PKI_MAX(s->used, (size_t)1) * sizeof *row->series);
    if (!row->series)
        return false;
    for (size_t i = 0; i < s->used; i++) {
        row->series[i] = s->rows[i];
        row->series[i].index += first;
    }
    row->series_count = s->used;
    return true;
}
