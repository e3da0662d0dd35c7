/* lib/bench/overhead.h - what the harness itself takes.
 *
 * A loop around work costs less than an empty one: an out-of-order processor runs it beside the
 * work. So an empty loop's time must not be subtracted; what may be is what the loop adds to a
 * chain of dependent multiplications, as far as that is certain. On most processors it is nothing.
 *
 * How long a short loop takes depends on where its code lies and on what else its core runs. Each
 * is measured at several places, many times in alternation, and an interval of the differences says
 * what is certain; where they disagree, `unsure` says by how much.
 */
#pragma once

#include "bench/counters.h"

/* All in ns. */
typedef struct pki_bench_overhead {
    double clock;             /* between two readings with nothing in between */
    double cpu_clock;         /* of that, in CPU time: what the readings inside cost */
    double step;              /* the smallest difference that the clock shows */
    double loop, loop_beside; /* an iteration of PK_BENCH_LOOP: empty; beside work, at least */
    double call, call_beside; /* of pk_bench's loop around a function: stated, not subtracted, since
                                 the call is a part of what pk_bench measures */
    double unsure;            /* how wide the interval of loop_beside is */
} pki_bench_overhead;

/* Wider than this it is said that the calibration disagrees with itself. */
#define PKI_BENCH_UNSURE 0.1

/* What takes so many times as long as the empty loop, or less, has no work in it. The shortest
 * work, one cycle, takes four times as long; half that where a busy sibling slowed the empty loop
 * down. */
#define PKI_BENCH_NO_WORK 1.75

typedef enum pki_bench_loop {
    PKI_BENCH_LOOP_EMPTY,
    PKI_BENCH_LOOP_CHAIN,
    PKI_BENCH_CHAIN, /* as many links, without the loop */
    PKI_BENCH_CALL_EMPTY,
    PKI_BENCH_CALL_CHAIN,
    PKI_BENCH_CHAIN_IN_MEMORY, /* what a called function does, without the call */
    PKI_BENCH_LOOPS
} pki_bench_loop;

#define PKI_BENCH_PLACES 4

/* Each runs so many iterations. */
typedef struct pki_bench_loops {
    void (*run[PKI_BENCH_LOOPS][PKI_BENCH_PLACES])(uint64_t turns);
} pki_bench_loops;

extern const pki_bench_loops pki_bench_own_loops; /* a quarter of a cache line apart */

/* Takes some milliseconds. */
void pki_bench_overhead_measure(pki_bench_overhead *overhead, const pki_bench_clock *clock,
                                const pki_bench_loops *loops);

/* What remains of an iteration that took so long with the loop around it. */
double pki_bench_subtract_loop(double taken, double beside);
