/* bench/harness.h - how the programs in this folder measure.
 *
 * A case is a benchmark of pk/bench.h. A round takes one sample of every case, so what changes from
 * second to second changes all of them alike. Printed are medians over the rounds: of the time, of
 * the ratio to the first case in the same round, and of the difference to it. Time is the thread's
 * CPU time: on a shared core the wall's is somebody else's too. Nothing is asserted; the bars and
 * what was found are in docs/internals/overhead.md.
 */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <stddef.h>
#include <stdint.h>

/* What has been stored is in memory, what is read next is read from there. */
#define bench_barrier() __asm__ volatile("" : : : "memory")

enum { BENCH_ROUNDS_MAX = 1000, BENCH_CASES_MAX = 16 };

typedef struct bench_case {
    const char *name;
    void (*run)(uint64_t n); /* n operations, timed */
    uint64_t n;
    void (*before)(void), (*after)(void); /* a batch, not timed; NULL: nothing */

    double ns;                     /* per operation */
    double ratio, low, high, more; /* to the first case: 10 % and 90 % of the rounds too */
    double rounds[BENCH_ROUNDS_MAX];
} bench_case;

/* The number that follows the option on the command line, else the standard. */
unsigned long bench_number(int argc, char **argv, const char *option, unsigned long standard);

/* Keeps the calling thread on one of the processors that it may use: the last, the one before, ...
 */
void bench_pin(unsigned from_last);

/* Nanoseconds: of this thread's and this process's CPU time, and of the wall. */
uint64_t bench_thread_ns(void);
uint64_t bench_process_ns(void);
uint64_t bench_wall_ns(void);

/* Sorts the values; q is from 0 to 1. */
double bench_quantile(double *values, size_t n, double q);

/* Round after round, one batch of each case, after one that is not counted. */
void bench_rounds(bench_case *cases, size_t count, unsigned long rounds);

void bench_print(const char *title, const bench_case *cases, size_t count);

/* A benchmark that cannot run has no result: ends the program. */
_Noreturn void bench_fail(const char *what);

#endif
