/* bench_sum.c - a program of benchmarks: parameters, rates, barriers, threads.
 *
 *     cc -O2 bench_sum.c $(pkg-config --cflags --libs pk) -o bench_sum && ./bench_sum
 *     ./bench_sum --filter strided --histogram
 *     ./bench_sum --repetitions 9 --json sum.json --markdown sum.md
 */
#include <pk/bench.h>
#include <stdlib.h>

static float *numbers(size_t n)
{
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; x && i < n; i++)
        x[i] = (float)(i % 7);
    return x;
}

static float sum(const float *x, size_t n, size_t stride)
{
    float all = 0;
    for (size_t start = 0; start < stride; start++)
        for (size_t i = start; i < n; i += stride)
            all += x[i];
    return all;
}

/* What stands before and after the loop is not timed. */
PK_BENCH(contiguous)
{
    size_t n = (size_t)pk_bench_arg(bench, 0);
    float *x = numbers(n);
    if (!x)
        pk_bench_give_up(bench, PK_BENCH_OUTCOME_SKIPPED, "no memory");
    pk_bench_set_work(bench, n * sizeof *x, n, 0);
    PK_BENCH_LOOP {
        pk_keep(sum(x, n, 1)); /* else the compiler would see that nobody wants it */
    }
    free(x);
}
PK_BENCH_RANGE(contiguous, "n", 1 << 10, 1 << 20, 32)

/* Two parameters: every pair of them. */
PK_BENCH(strided)
{
    size_t n = (size_t)pk_bench_arg(bench, 0), stride = (size_t)pk_bench_arg(bench, 1);
    float *x = numbers(n);
    if (!x)
        pk_bench_give_up(bench, PK_BENCH_OUTCOME_SKIPPED, "no memory");
    pk_bench_set_work(bench, n * sizeof *x, 0, 0);
    PK_BENCH_LOOP {
        pk_keep(sum(x, n, stride));
    }
    free(x);
}
PK_BENCH_ARGS(strided, "n", 1 << 16)
PK_BENCH_ARGS(strided, "stride", 1, 16, 64)

/* The same on several threads at once, each with numbers of its own; they start together. */
PK_BENCH(together)
{
    enum { N = 1 << 14 };
    float *x = numbers(N);
    if (!x)
        pk_bench_give_up(bench, PK_BENCH_OUTCOME_SKIPPED, "no memory");
    pk_bench_set_work(bench, N * sizeof *x, 0, 0);
    PK_BENCH_LOOP {
        pk_keep(sum(x, N, 1));
    }
    free(x);
}
PK_BENCH_THREADS(together, 1, 2)

/* What a first call costs, when nothing is in the caches. */
PK_BENCH(cold)
{
    static float x[4096];
    PK_BENCH_LOOP {
        pk_keep(sum(x, 4096, 1));
    }
}
PK_BENCH_OPTIONS(cold)
{
    options->cold = 1;
    options->max_samples = 50;
}

PK_BENCH_COUNT_ALLOCATIONS /* ./bench_sum --allocations */

    PK_BENCH_MAIN
