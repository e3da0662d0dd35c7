/* lib/bench/counted.h - what is counted, not timed: hardware counters and allocations, in a
 * few samples of their own, since counting costs time. */
#pragma once

#include "bench/case.h"

#define PKI_BENCH_COUNTED_SAMPLES 5

/* After the last timed sample, while the case is open. What is unavailable goes into
 * c->result.note. */
void pki_bench_count_events(pki_bench_case *c);
