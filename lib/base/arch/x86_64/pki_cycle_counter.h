/* The invariant time stamp counter. rdtsc is not ordered with the loads and stores around it, which
 * is what makes it cheap: a region's edge is exact to what the processor executes ahead, a few
 * nanoseconds mostly, and 20 behind a long chain of dependent instructions. */
#pragma once

#include <stdint.h>

#define PKI_CYCLE_COUNTER_NAME "tsc"

/* So many ticks may be within a nanosecond: counters run at less than 5 GHz. */
#define PKI_TICKS_IN_NS 4

static inline uint64_t pki_cycle_counter(void)
{
    return __builtin_ia32_rdtsc();
}

/* Behind all that comes before, and before all that comes behind: for edges that are few. */
static inline uint64_t pki_cycle_counter_ordered(void)
{
    __builtin_ia32_lfence();
    uint64_t count = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return count;
}
