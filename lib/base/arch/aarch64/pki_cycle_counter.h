/* The generic timer's virtual count: constant rate, the same on all cores, readable from user
 * space. */
#pragma once

#include <stdint.h>

#define PKI_CYCLE_COUNTER_NAME "cntvct"

#define PKI_TICKS_IN_NS 0 /* counters run at 1 GHz at most */

static inline uint64_t pki_cycle_counter(void)
{
    uint64_t count;
    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(count));
    return count;
}

/* Behind all that comes before, and before all that comes behind: for edges that are few. */
static inline uint64_t pki_cycle_counter_ordered(void)
{
    uint64_t count;
    __asm__ __volatile__("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(count) : : "memory");
    return count;
}
