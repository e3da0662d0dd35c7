/* lib/measure/device/steps.h - a device's operations by steps */
#pragma once

#include "measure/summary.h"
#include "stats/series.h"

/* ---- how a device's steps went over the run, in bounded room ---- */

/* A row per step (stats/series.h) until there are PKI_DEVICE_SERIES_MOST, then rows of two, four,
 * eight ... */

#define PKI_DEVICE_SERIES_MOST 512

/* A row of one step. False without memory for it. */
bool pki_device_series_add(pki_series *series, const pki_gpu_series_row *step);

/* False without memory. */
bool pki_device_series_fill(const pki_series *series, pki_gpu_row *row);
