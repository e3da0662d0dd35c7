/* lib/measure/device/series.h - how a device's steps went over the run, in bounded room.
 *
 * As of measure/steps/series.h: a row per step until there are PKI_DEVICE_SERIES_MOST, then rows of
 * two, four, eight ... steps.
 */
#ifndef PKI_MEASURE_DEVICE_SERIES_H
#define PKI_MEASURE_DEVICE_SERIES_H

#include "measure/summary.h"

#define PKI_DEVICE_SERIES_MOST 512

typedef struct pki_device_series {
    uint64_t stride; /* steps per row; 0 is 1 */
    size_t used, room;
    pki_gpu_series_row *rows;
} pki_device_series;

/* All zero is an empty series, too. */
void pki_device_series_finish(pki_device_series *series);

/* A row of one step. False without memory for it. */
bool pki_device_series_add(pki_device_series *series, const pki_gpu_series_row *step);

/* Indexes count from `first` on. False without memory. */
bool pki_device_series_fill(const pki_device_series *series, uint64_t first, pki_gpu_row *row);

#endif
