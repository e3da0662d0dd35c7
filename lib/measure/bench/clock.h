/* lib/measure/bench/clock.h - the clocks that benchmarks are timed by, and what using them costs.
 *
 * The engine reads time through a table, so that tests run it on a clock of their own making.
 */
#ifndef PKI_MEASURE_BENCH_CLOCK_H
#define PKI_MEASURE_BENCH_CLOCK_H

#include <stdint.h>

typedef struct pki_bench_clock {
    uint64_t (*now)(void *self); /* ns */
    uint64_t (*cpu)(void *self); /* ns of the calling thread's CPU time */
    void *self;
} pki_bench_clock;

/* CLOCK_MONOTONIC, whose reading is ordered with the work around it, and
 * CLOCK_THREAD_CPUTIME_ID. */
extern const pki_bench_clock pki_bench_system_clock;

/* What the harness itself takes; ns. The loops are measured empty, where nothing hides them, and
 * beside a chain of dependent multiplications of some nanoseconds, where an out-of-order processor
 * runs them on the side. */
typedef struct pki_bench_overhead {
    double clock;             /* between two readings with nothing in between */
    double cpu_clock;         /* of that, in CPU time: what the readings inside cost */
    double step;              /* the smallest difference that the clock shows */
    double loop, loop_beside; /* an iteration of PK_BENCH_LOOP */
    double call, call_beside; /* of pk_bench's loop around a function */
} pki_bench_overhead;

/* Takes some milliseconds; the least of several tries counts. */
void pki_bench_overhead_measure(pki_bench_overhead *overhead, const pki_bench_clock *clock);

/* What remains of an iteration that took so long with the loop around it. Between once and twice
 * the empty loop's time the cost slides from that of the empty one to that beside work, so the
 * result never jumps and never falls as the time rises. */
double pki_bench_without(double taken, double empty, double beside);

#endif
