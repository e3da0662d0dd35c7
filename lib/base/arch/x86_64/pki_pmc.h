/* The processor's performance counters, as far as the kernel lets programs read them
 * (/sys/bus/event_source/devices/cpu/rdpmc). */
#pragma once

#include <stdint.h>

#define PKI_PMC_CONFIG1 0 /* of perf_event_attr: nothing to ask for */

static inline uint64_t pki_pmc_counter(uint32_t index)
{
    uint32_t low, high;
    __asm__ __volatile__("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
    return (uint64_t)high << 32 | low;
}
