/* lib/bench/rounds.h - several benchmarks measured in turns. */
#pragma once

#include "bench/case.h"

#define PKI_BENCH_TURN 5000000u /* ns of a benchmark's turn, one sample at least */
#define PKI_BENCH_SETTLE                                                                           \
    1000000u /* ns: samples below that are preceded by one that does not count,                    \
                                     since whoever had the processor before left it his caches */

/* What is going on, for whoever shows it: c is NULL when all is done. */
typedef void pki_bench_progress(void *user, const pki_bench_case *c, size_t done, size_t count);

/* Opens, warms, measures in rounds and closes them all; `together` false: one after the other, so
 * that only one is set up at a time. What is skipped or fails does not keep the others. */
pk_status pki_bench_run_rounds(pki_bench_case *cases, size_t count, bool together, uint64_t seed,
                               pki_bench_progress *progress, void *user);
