#include "floor.h"

#include <stdlib.h>
#include <string.h>

#include "harness.h"

static _Thread_local pki_record *ring;

pki_record *bench_floor_prepare(void)
{
    size_t bytes = BENCH_FLOOR_RECORDS * sizeof *ring;
    ring = aligned_alloc(4096, bytes);
    if (!ring)
        bench_fail("no memory");
    return memset(ring, 1, bytes);
}

void bench_floor_run(uint64_t n)
{
    pki_record *base = ring;
    for (uint64_t i = 0; i < n; i++) {
        bench_floor_pair(base, i);
        bench_barrier();
    }
}

void bench_loop_run(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        bench_barrier();
}
