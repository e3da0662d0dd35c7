/* What perf_event_open(2) gives of a thread's registers, by DWARF's numbers ("DWARF for the Arm
 * 64-bit Architecture", table 1; asm/perf_regs.h of the kernel), which are the same. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PKI_FRAMES_REGISTERS 33 /* the last one: where it is */
#define PKI_FRAMES_FP 29
#define PKI_FRAMES_SP 31
#define PKI_FRAMES_PC 32
#define PKI_FRAMES_ADDRESS UINT64_C(0xffffffffffff) /* above them it may be signed */
#define PKI_FRAMES_MASK UINT64_C(0x1ffffffff)

static const uint8_t pki_frames_numbers[PKI_FRAMES_REGISTERS] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
    17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};

/* Of no trampoline: where there are some, they have a frame. */
#define PKI_FRAMES_CODE 5u

static inline bool pki_frames_return(const unsigned char code[PKI_FRAMES_CODE], unsigned *room,
                                     bool *pops)
{
    (void)code, (void)room, (void)pops;
    return false;
}
