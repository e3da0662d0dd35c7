/* What perf_event_open(2) gives of a thread's registers, by DWARF's numbers ("System V ABI, AMD64",
 * figure 3.36; linux/perf_regs.h of the kernel). */
#pragma once

#include <stdbool.h>
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

/* What a trampoline without a frame does behind its call: it gives back room of the stack, or takes
 * the frame's pointer from it, and returns (Python's Python/asm_trampoline.S). False: it does
 * something else. */
#define PKI_FRAMES_CODE 5u

static inline bool pki_frames_return(const unsigned char code[PKI_FRAMES_CODE], unsigned *room,
                                     bool *pops)
{
    bool adds = code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xc4 && code[3] < 0x80;
    *pops = code[0] == 0x5d;
    *room = adds ? code[3] : 0;
    return code[adds ? 4 : *pops] == 0xc3;
}
