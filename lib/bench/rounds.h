/* lib/bench/rounds.h - when which benchmark is measured, by how many threads, and for how long */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bench/case.h"

/* ---- plan ---- */

/* How many iterations a sample has, when a benchmark is warm, and when
 * enough has been seen.
 *
 * Warm-up: samples of one iteration first, ten times as many each time until a sample takes as long
 * as it should; then windows of PKI_BENCH_WINDOW samples, until one's median is not below the
 * one's before by more than PKI_BENCH_FASTER: it no longer gets faster. (Slower is not warmer:
 * that is a drift, and the verdict's.) At least PKI_BENCH_WARM_LEAST ns, at most max_warmup. What
 * is measured cold runs once. A device's clock has to have risen, too (bench/counters.h), cold or
 * not.
 *
 * A device's sample is so long that its marks, which are off by a step of their clock each, are
 * within the precision that is wanted, and has no more iterations than its queue takes
 * (bench/queue.h).
 *
 * Stop: after each round, when a tenth more samples are there than at the last look. The interval
 * is the sign test's, widened where neighbours depend on each other; the one that is reported at
 * the end is the bootstrap's. */

#define PKI_BENCH_WINDOW 5
#define PKI_BENCH_FASTER 0.02
#define PKI_BENCH_WARM_LEAST 10000000u /* ns */
#define PKI_BENCH_SAMPLE_TIME 200000u  /* ns */
#define PKI_BENCH_FINENESS 1000.0      /* a sample in steps or readings of the clock */
#define PKI_BENCH_MARKS 2              /* a device's marks around a sample */
#define PKI_BENCH_ITERATIONS_MOST ((uint64_t)1 << 40)

/* ---- threads that run the same thing at once, over and over, and start it together ---- */

typedef struct pki_bench_team pki_bench_team;

/* The job on all of them; returns when all are done. */
void pki_bench_team_run(pki_bench_team *team);

/* Inside the job, once per thread and run: returns when all have come here. */
void pki_bench_team_meet(pki_bench_team *team);

/* ---- several benchmarks measured in alternation ---- */

/* What is going on, for whoever shows it: c is NULL when all is done. */
typedef void pki_bench_progress(void *user, const pki_bench_case *c, size_t done, size_t count);

/* Opens, warms, measures in rounds and closes them all; `together` false: one after the other, so
 * that only one is set up at a time. What is skipped or fails does not keep the others. */
pk_status pki_bench_run_rounds(pki_bench_case *cases, size_t count, bool together, uint64_t seed,
                               pki_bench_progress *progress, void *user);

/* ---- one line on a terminal while benchmarks run ---- */

typedef struct pki_bench_line {
    bool on; /* stderr is a terminal */
    uint32_t repetition, repetitions;
    uint64_t last; /* when it was written, ns */
} pki_bench_line;

/* The line's text: "[3/12] sum/n:1024  123.4 ns  +- 0.8 %". For tests, too. */
void pki_bench_line_text(const pki_bench_line *line, const pki_bench_case *c, size_t done,
                         size_t count, char *text, size_t size);
