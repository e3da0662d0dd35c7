/* bench/floor.h - what nobody who knows when a region began and ended can undercut: two clock reads
 * and one 32-byte record into a ring of 1 MiB that has been written before. */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <stdint.h>

#include "base/clock.h"
#include "core/record.h"

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

#endif
