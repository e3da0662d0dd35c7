/* lib/measure/memory/blocks.h - what is allocated on devices, by address.
 *
 * Addresses are unique in a process: devices' memory, the host's and handles of arrays share one
 * address space. All zero is an empty table. Not for two threads at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pki_block {
    uint64_t address; /* 0: a free place */
    uint64_t bytes, ns;
    uint32_t region;
    uint8_t place, kind;
} pki_block;

typedef struct pki_blocks {
    size_t count, room; /* room: 0 or a power of two */
    pki_block *all;
} pki_blocks;

/* Good until the next call of these; NULL: nothing is allocated there. */
pki_block *pki_blocks_find(const pki_blocks *blocks, uint64_t address);

/* An address that is not in there and not 0. False without memory: nothing has changed. */
bool pki_blocks_add(pki_blocks *blocks, const pki_block *block);

/* One that pki_blocks_find has found. */
void pki_blocks_remove(pki_blocks *blocks, pki_block *block);

void pki_blocks_finish(pki_blocks *blocks);
