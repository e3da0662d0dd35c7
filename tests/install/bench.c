/* A program of benchmarks: it has to build against the installed tree, and to measure. */
#include <pk/bench.h>

PK_BENCH(add)
{
    uint64_t sum = 0;
    PK_BENCH_LOOP {
        pk_keep(sum += 3);
    }
}

PK_BENCH_MAIN
