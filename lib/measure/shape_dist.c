/* lib/measure/shape_dist.c - what is said of a distribution, in the report file. */
#include "measure/shape_words.h"

static const pki_member dist_members[] = {
    PLAINS(pki_dist, count, sum, min, max, mean, stddev, p50, p90, p95, p99),
};
const pki_shape pki_dist_shape = {SHAPE(pki_dist, dist_members)};
