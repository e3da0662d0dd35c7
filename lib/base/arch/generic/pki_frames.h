/* No registers known: stacks are what the kernel finds by frame pointers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PKI_FRAMES_REGISTERS 1
#define PKI_FRAMES_FP 0
#define PKI_FRAMES_SP 0
#define PKI_FRAMES_PC 0
#define PKI_FRAMES_ADDRESS UINT64_MAX
#define PKI_FRAMES_MASK UINT64_C(0)

static const uint8_t pki_frames_numbers[PKI_FRAMES_REGISTERS] = {0};

/* Of no trampoline: where there are some, they have a frame. */
#define PKI_FRAMES_CODE 5u

static inline bool pki_frames_return(const unsigned char code[PKI_FRAMES_CODE], unsigned *room,
                                     bool *pops)
{
    (void)code, (void)room, (void)pops;
    return false;
}
