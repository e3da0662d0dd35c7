/* The processor's performance counters, as far as the kernel lets programs read them
 * (kernel.perf_user_access, Linux 5.17): event counters 0 to 30, and as 31 the one of cycles. */
#pragma once

#include <stdint.h>

#define PKI_PMC_CONFIG1 2 /* of perf_event_attr: wants to be read by the program */

#define PKI_PMC_CASE(n)                                                                            \
    case n:                                                                                        \
        __asm__ __volatile__("mrs %0, pmevcntr" #n "_el0" : "=r"(count));                          \
        break;

/* The number of a register is part of the instruction. */
static inline uint64_t pki_pmc_counter(uint32_t index)
{
    uint64_t count = 0;
    switch (index) {
        PKI_PMC_CASE(0)
        PKI_PMC_CASE(1)
        PKI_PMC_CASE(2)
        PKI_PMC_CASE(3)
        PKI_PMC_CASE(4)
        PKI_PMC_CASE(5)
        PKI_PMC_CASE(6)
        PKI_PMC_CASE(7)
        PKI_PMC_CASE(8)
        PKI_PMC_CASE(9)
        PKI_PMC_CASE(10)
        PKI_PMC_CASE(11)
        PKI_PMC_CASE(12)
        PKI_PMC_CASE(13)
        PKI_PMC_CASE(14)
        PKI_PMC_CASE(15)
        PKI_PMC_CASE(16)
        PKI_PMC_CASE(17)
        PKI_PMC_CASE(18)
        PKI_PMC_CASE(19)
        PKI_PMC_CASE(20)
        PKI_PMC_CASE(21)
        PKI_PMC_CASE(22)
        PKI_PMC_CASE(23)
        PKI_PMC_CASE(24)
        PKI_PMC_CASE(25)
        PKI_PMC_CASE(26)
        PKI_PMC_CASE(27)
        PKI_PMC_CASE(28)
        PKI_PMC_CASE(29)
        PKI_PMC_CASE(30)
    case 31:
        __asm__ __volatile__("mrs %0, pmccntr_el0" : "=r"(count));
        break;
    default:
        break;
    }
    return count;
}
