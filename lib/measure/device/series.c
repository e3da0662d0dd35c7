#include "measure/device/series.h"

#include "base/compiler.h"

#include <stdlib.h>
#include <string.h>

static void join(void *into, const void *from)
{
    pki_gpu_series_row *row = into;
    const pki_gpu_series_row *next = from;
    if (row->steps == 0) {
        *row = *next;
        return;
    }
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

static const pki_series_kind steps = {.row_bytes = sizeof(pki_gpu_series_row),
                                      .first_room = 32,
                                      .most = PKI_DEVICE_SERIES_MOST,
                                      .first_stride = 1,
                                      .join = join};

bool pki_device_series_add(pki_series *s, const pki_gpu_series_row *step)
{
    pki_gpu_series_row *row = pki_series_next(s, &steps);
    if (row)
        join(row, step);
    return row != NULL;
}

bool pki_device_series_fill(const pki_series *s, pki_gpu_row *row)
{
    row->series_count = 0;
    row->series = malloc(PKI_MAX(s->used, (size_t)1) * sizeof *row->series);
    if (!row->series)
        return false;
    if (s->used)
        memcpy(row->series, s->rows, s->used * sizeof *row->series);
    row->series_count = s->used;
    return true;
}
