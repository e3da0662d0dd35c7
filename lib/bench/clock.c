#include "bench/clock.h"

#include "base/clock.h"

static uint64_t system_now(void *self)
{
    (void)self;
    return pki_monotonic_ns();
}

static uint64_t system_cpu(void *self)
{
    (void)self;
    return pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
}

const pki_bench_clock pki_bench_system_clock = {system_now, system_cpu, NULL};
