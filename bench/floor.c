#include "floor.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/record.h"

#include "harness.h"

enum { RECORDS = 32768 };

_Static_assert(RECORDS * sizeof(pki_record) == 1 << 20, "the floor's ring has 1 MiB");

static _Thread_local pki_record *ring;

void bench_floor_prepare(void)
{
    ring = aligned_alloc(4096, RECORDS * sizeof *ring);
    if (!ring)
        bench_fail("no memory");
    memset(ring, 1, RECORDS * sizeof *ring);
}

void bench_floor_run(uint64_t n)
{
    pki_record *base = ring;
    uint64_t at = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t start = pki_cycle_counter();
        uint64_t end = pki_cycle_counter();
        base[at] = (pki_record){start, end - start, 1, 0};
        at = (at + 1) % RECORDS;
        bench_barrier();
    }
}

void bench_loop_run(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        bench_barrier();
}
