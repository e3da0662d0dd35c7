/* lib/measure/shape_thinned.c - what overhead_max has done, in the report file. */
#include "measure/shape_words.h"

#define RANGE(m)                                                                                   \
    PLAIN_AS(#m "_low", pki_region_thinned, m[0]), PLAIN_AS(#m "_high", pki_region_thinned, m[1])
static const pki_member region_thinned_members[] = {
    PLAINS(pki_region_thinned, calls, untimed, untraced, error, sum_error, call_error),
    RANGE(p50),
    RANGE(p90),
    RANGE(p95),
    RANGE(p99),
};
const pki_shape pki_region_thinned_shape = {SHAPE(pki_region_thinned, region_thinned_members)};

static const pki_member thinned_members[] = {
    PLAINS(pki_thinned, regions, untimed, untraced, overhead_max, beyond),
};
const pki_shape pki_thinned_shape = {SHAPE(pki_thinned, thinned_members)};
