#include "bench/allocations.h"

#include <pk/bench.h>

#include "base/atomic.h"

#include <stdlib.h>

static uint32_t counting;
static uint64_t count_so_far, bytes_so_far;

void pk_bench_note_allocation(size_t bytes)
{
    if (!pki_load(&counting))
        return;
    pki_fetch_add(&count_so_far, 1);
    pki_fetch_add(&bytes_so_far, bytes);
}

void pki_bench_allocations_start(void)
{
    pki_store(&count_so_far, 0);
    pki_store(&bytes_so_far, 0);
    pki_store(&counting, 1);
}

void pki_bench_allocations_stop(void)
{
    pki_store(&counting, 0);
}

void pki_bench_allocations_read(uint64_t *count, uint64_t *bytes)
{
    *count = pki_load(&count_so_far);
    *bytes = pki_load(&bytes_so_far);
}

bool pki_bench_allocations_seen(void)
{
    uint64_t count, bytes;
    pki_bench_allocations_start();
    void *volatile block = malloc(1); /* volatile: a compiler may drop a pair that nobody sees */
    pki_bench_allocations_stop();
    free(block);
    pki_bench_allocations_read(&count, &bytes);
    return count > 0;
}
