/* lib/alloc/interface.h - what libpk_alloc tells libpk.
 *
 * libpk_alloc is preloaded (or linked) and stands in front of malloc from the process's first
 * instruction; libpk may come later, be linked into the program, or not be there at all. So neither
 * links the other: libpk looks for the one symbol below when a session starts. The table grows at
 * its end, and `size` says how far it goes; another meaning is another symbol.
 *
 * Blocks are all counted, or sampled (PK_ALLOC_SAMPLE_BYTES).
 *
 * Bytes are those that were asked for. Blocks belong to the region that was the innermost one of
 * the thread that asked for them; 0: none was open. Regions are ids of libpk's names.
 */
#pragma once

#include <stdint.h>

#define PKI_ALLOC_SYMBOL "pk_alloc_interface_1"
#define PKI_ALLOC_REGIONS 65536u

/* Only grows. What lives is bytes - freed, in allocations - frees blocks. */
typedef struct pki_alloc_sum {
    uint64_t allocations, bytes, frees, freed;
} pki_alloc_sum;

typedef struct pki_alloc_interface {
    uint32_t size;
    /* Whom to ask for the innermost region, from here on; NULL: nobody. It must neither allocate
     * nor wait. Peaks begin anew. */
    void (*attach)(uint32_t (*region)(void));
    /* Ids below have been seen. */
    uint32_t (*regions)(void);
    /* Of regions below count: exact of what threads have done when they do nothing meanwhile. */
    void (*sums)(pki_alloc_sum *sums, uint32_t count);
    /* Bytes alive, within *within of the exact figure; 0: of all regions. It reads one word. */
    uint64_t (*live)(uint32_t region);
    uint64_t (*total)(void);
    /* The most since attach, and what lived in the region when all was at its most (within 1 %). */
    uint64_t (*peak)(uint32_t region);
    uint64_t (*total_peak)(void);
    uint64_t (*at_peak)(uint32_t region);
    /* How far these may be from the exact figures: of a region, and of the whole; bytes. */
    uint64_t (*within)(void);
    /* The file of the allocator beneath; NULL and why in *why: nothing is counted. */
    const char *(*beneath)(const char **why);
    /* Blocks that were not counted, since there was no room to write down what they are. */
    uint64_t (*missed)(void);
    /* 0: all blocks are counted. Otherwise all figures above are estimates, without bias but for
     * peaks, from one byte in so many: of B bytes the standard error is sqrt(B * this) at most, of
     * n blocks of s bytes each sqrt(n * this / s). */
    uint64_t (*sampled)(void);
    /* The calling thread's next block is counted in any case; it stands for half of that. */
    void (*count_next)(void);
} pki_alloc_interface;
