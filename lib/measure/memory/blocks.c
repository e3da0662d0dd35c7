#include "measure/memory/blocks.h"

#include <stdlib.h>

/* Addresses are multiples of powers of two: the upper bits of the product depend on all of them. */
static size_t home_of(const pki_blocks *b, uint64_t address)
{
    return (size_t)((address * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (b->room - 1);
}

static size_t next(const pki_blocks *b, size_t i)
{
    return (i + 1) & (b->room - 1);
}

pki_block *pki_blocks_find(const pki_blocks *b, uint64_t address)
{
    if (!b->room || !address)
        return NULL;
    for (size_t i = home_of(b, address); b->all[i].address; i = next(b, i))
        if (b->all[i].address == address)
            return &b->all[i];
    return NULL;
}

static void put(pki_blocks *b, const pki_block *block)
{
    size_t i = home_of(b, block->address);
    while (b->all[i].address)
        i = next(b, i);
    b->all[i] = *block;
    b->count++;
}

static bool grow(pki_blocks *b)
{
    pki_blocks larger = {.room = b->room ? 2 * b->room : 256};
    larger.all = calloc(larger.room, sizeof *larger.all);
    if (!larger.all)
        return false;
    for (size_t i = 0; i < b->room; i++)
        if (b->all[i].address)
            put(&larger, &b->all[i]);
    free(b->all);
    *b = larger;
    return true;
}

bool pki_blocks_add(pki_blocks *b, const pki_block *block)
{
    if (4 * (b->count + 1) > 3 * b->room && !grow(b))
        return false;
    put(b, block);
    return true;
}

/* Those behind it that would no longer be found move up, so no place stays marked. */
void pki_blocks_remove(pki_blocks *b, pki_block *block)
{
    size_t hole = (size_t)(block - b->all);
    for (size_t i = next(b, hole); b->all[i].address; i = next(b, i)) {
        size_t home = home_of(b, b->all[i].address);
        if (((i - home) & (b->room - 1)) < ((i - hole) & (b->room - 1)))
            continue;
        b->all[hole] = b->all[i];
        hole = i;
    }
    b->all[hole].address = 0;
    b->count--;
}

void pki_blocks_finish(pki_blocks *b)
{
    free(b->all);
    *b = (pki_blocks){0};
}
