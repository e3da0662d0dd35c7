/* bench/harness.h - how the programs in this folder measure */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/clock.h"
#include "core/record.h"

/* ---- what nobody who knows when a region began and ended can undercut ---- */

/* Two clock reads and one 32-byte record into a ring of 1 MiB that has been written before. */

enum { BENCH_FLOOR_RECORDS = 32768 };

_Static_assert(BENCH_FLOOR_RECORDS * sizeof(pki_record) == 1 << 20, "the floor's ring has 1 MiB");

/* Gives the calling thread its ring. */
pki_record *bench_floor_prepare(void);

static inline void bench_floor_pair(pki_record *ring, uint64_t at)
{
    uint64_t start = pki_cycle_counter();
    uint64_t end = pki_cycle_counter();
    ring[at % BENCH_FLOOR_RECORDS] = (pki_record){start, end - start, 1, 0};
}

/* n of these, on the calling thread's ring. */
void bench_floor_run(uint64_t n);

/* Nothing: the loop. */
void bench_loop_run(uint64_t n);

/* ---- a folder for the traces that are written while measuring ---- */

/* Gone with the program. Where TMPDIR says; else in memory (/dev/shm) if there is room for them, so
 * that no disk is measured; else in /tmp. */

/* The path of a file in it. Valid until the next call. */
const char *bench_scratch(const char *name);

/* Its files go. */
void bench_scratch_empty(void);

/* pk_options.tuning, for one pk_start: valid until the next call. */
const char *bench_tuning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A measurement in a process of its own, so that what it leaves is not the next one's: bench_fork()
 * is 0 in it, it ends with bench_leave, and whoever made it calls bench_join, which removes its
 * traces, and ends the program if it was not good. used: what it took; NULL: nobody asks. */
pid_t bench_fork(void);
void bench_leave(bool good) __attribute__((noreturn));
void bench_join(pid_t pid, const char *what, struct rusage *used);

/* ---- how the programs in this folder measure ---- */

/* A case is a benchmark of pk/bench.h. A round takes one sample of every case, so what changes from
 * second to second changes all of them alike. Printed are medians over the rounds: of the time, of
 * the ratio to the first case in the same round, and of the difference to it. Time is the thread's
 * CPU time: on a shared core the wall's is somebody else's too. Nothing is asserted; the bars and
 * what was found are in docs/internals/overhead.md. */

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

/* Several benchmarks in one program: the first word of the command line says which, the others are
 * its.
 */
typedef struct bench_program {
    const char *name;
    int (*run)(int argc, char **argv);
} bench_program;

int bench_programs(const bench_program *programs, size_t count, int argc, char **argv);

/* A benchmark that cannot run has no result: ends the program. */
_Noreturn void bench_fail(const char *what);

/* ---- many regions, each with its own call sites, as in a program ---- */

/* n pairs of begin and end, of 64 regions in turn; n is a multiple of 64. */
void bench_64_run(uint64_t n);

/* One pair of each of the first so many regions, 256 at most. */
void bench_many_pairs(unsigned regions);

/* ---- C++'s scopes, for the tables in C (scope.cpp) ---- */

void bench_cpp_scope_run(uint64_t n);
