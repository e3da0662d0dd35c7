/* lib/stats/dist.h - what is said of a distribution. */
#pragma once

#include <stdint.h>

/* Quantiles within 1 %, the rest exact. Zero when count is 0. */
typedef struct pki_dist {
    uint64_t count;
    double sum, min, max, mean, stddev;
    double p50, p90, p95, p99;
} pki_dist;
