/* lib/bench/plan.h - how many iterations a sample has, when a benchmark is warm, and when
 * enough has been seen.
 *
 * Warm-up: samples of one iteration first, ten times as many each time until a sample takes as long
 * as it should; then windows of PKI_BENCH_WINDOW samples, until one's median is not below the
 * one's before by more than PKI_BENCH_FASTER: it no longer gets faster. (Slower is not warmer:
 * that is a drift, and the verdict's.) At least PKI_BENCH_WARM_LEAST ns, at most max_warmup. What
 * is measured cold runs once. A device's clock has to have risen, too (bench/clocks.h), cold or
 * not.
 *
 * A device's sample is so long that its marks, which are off by a step of their clock each, are
 * within the precision that is wanted, and has no more iterations than its queue takes
 * (bench/queue.h).
 *
 * Stop: after each turn, when a tenth more samples are there than at the last look. The interval is
 * the sign test's, widened where neighbours depend on each other; the one that is reported at the
 * end is the bootstrap's.
 */
#pragma once

#include "bench/case.h"

#define PKI_BENCH_WINDOW 5
#define PKI_BENCH_FASTER 0.02
#define PKI_BENCH_WARM_LEAST 10000000u /* ns */
#define PKI_BENCH_SAMPLE_TIME 200000u  /* ns */
#define PKI_BENCH_FINENESS 1000.0      /* a sample in steps or readings of the clock */
#define PKI_BENCH_MARKS 2              /* a device's marks around a sample */
#define PKI_BENCH_ITERATIONS_MOST ((uint64_t)1 << 40)

/* What a sample of this benchmark should take, ns. */
double pki_bench_sample_time(const pki_bench_case *c);

/* Finds c->iterations, unless they are given, and warms up. False if it was skipped or failed. */
bool pki_bench_warm(pki_bench_case *c);

/* Only the iterations, one sample after the other until it is long enough. */
bool pki_bench_calibrate(pki_bench_case *c);

/* One iteration, before any that counts: what is loaded at first use is there. */
bool pki_bench_touch(pki_bench_case *c);

/* One more sample, kept. False when there are enough, and c->result.stopped says why, or when it
 * was skipped or failed. */
bool pki_bench_sample_case(pki_bench_case *c);
