/* bench/floor.h - what nobody who knows when a region began and ended can undercut: two clock reads
 * and one 32-byte record into a ring of 1 MiB that has been written before. */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <stdint.h>

/* Gives the calling thread its ring. */
void bench_floor_prepare(void);

void bench_floor_run(uint64_t n);

/* Nothing: the loop. */
void bench_loop_run(uint64_t n);

#endif
