/* What perf_event_open(2) gives of a thread's registers, by DWARF's numbers ("System V ABI, AMD64",
 * figure 3.36; linux/perf_regs.h of the kernel). */
#pragma once

#include <stdint.h>

#define PKI_FRAMES_REGISTERS 17 /* the last one: where it is */
#define PKI_FRAMES_FP 6
#define PKI_FRAMES_SP 7
#define PKI_FRAMES_PC 16
#define PKI_FRAMES_ADDRESS UINT64_MAX /* the bits of a return address */
#define PKI_FRAMES_MASK UINT64_C(0xff01ff)

/* In the order of the mask's bits. */
static const uint8_t pki_frames_numbers[PKI_FRAMES_REGISTERS] = {0, 3, 2,  1,  4,  5,  6,  7, 16,
                                                                 8, 9, 10, 11, 12, 13, 14, 15};
