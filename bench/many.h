/* bench/many.h - many regions, each with its own call sites, as in a program. */
#ifndef BENCH_MANY_H
#define BENCH_MANY_H

#include <stdint.h>

/* n pairs of begin and end, of 64 regions in turn; n is a multiple of 64. */
void bench_64_run(uint64_t n);

/* One pair of each of the first so many regions, 256 at most. */
void bench_many_pairs(unsigned regions);

#endif
