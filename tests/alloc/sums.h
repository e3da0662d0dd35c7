/* tests/alloc/sums.h - what libpk_alloc has counted meanwhile, for programs that have not even
 * libpk: all is outside of regions. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/interface.h"

static const pki_alloc_interface *alloc;

/* False, and why: nothing is counted. */
static inline bool find_alloc(void)
{
    const char *why = "it is not preloaded";
    alloc = dlsym(RTLD_DEFAULT, PKI_ALLOC_SYMBOL);
    const char *file = alloc ? alloc->beneath(&why) : NULL;
    printf("# on %s\n", file ? file : why);
    return file != NULL;
}

/* mimalloc 2.0 does so by itself, with blocks whose size is a multiple of their alignment. */
static inline bool is_left_unaligned(size_t alignment, size_t size)
{
    const char *why, *file = alloc->beneath(&why);
    return alignment > 128 && size % alignment == 0 && strstr(file, "mimalloc");
}

static inline pki_alloc_sum now(void)
{
    pki_alloc_sum sum;
    alloc->sums(&sum, 1);
    return sum;
}

static inline bool are(const pki_alloc_sum *before, uint64_t allocations, uint64_t bytes,
                       uint64_t frees, uint64_t freed)
{
    pki_alloc_sum after = now();
    bool same = after.allocations - before->allocations == allocations &&
                after.bytes - before->bytes == bytes && after.frees - before->frees == frees &&
                after.freed - before->freed == freed;
    if (!same)
        printf("# %d allocations, %d bytes, %d frees, %d freed\n",
               (int)(after.allocations - before->allocations), (int)(after.bytes - before->bytes),
               (int)(after.frees - before->frees), (int)(after.freed - before->freed));
    return same;
}

/* A compiler that sees both leaves both out. */
static inline void there_and_back(size_t size)
{
    void *volatile block = malloc(size);
    free(block);
}
