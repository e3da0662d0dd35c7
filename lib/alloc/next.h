/* lib/alloc/next.h - the allocator beneath: whatever would have been called without us */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* ---- zeroed addresses of which only what is touched takes memory ---- */

/* NULL: there is no room. errno is kept. In a program that locks what it maps from now on
 * (mlockall(MCL_FUTURE)), too, neither filled nor locked, and a page of RLIMIT_MEMLOCK is enough.
 */
void *pki_room_map(size_t bytes);
void pki_room_unmap(void *room, size_t bytes);

/* ---- the allocator beneath: whatever would have been called without us ---- */

typedef struct next_allocator {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    size_t (*usable)(void *);
    void (*free_sized)(void *, size_t usable, int); /* no slower than free; NULL: there is none */
} next_allocator;

extern next_allocator pki_next;

/* 0: not looked for yet. COUNTED: blocks are counted; PASSED: all is passed on as it is. */
enum { PKI_NEXT_UNKNOWN, PKI_NEXT_COUNTED, PKI_NEXT_PASSED };
extern int pki_next_state;

/* Sizes below are counted: none, as long as the allocator is not known. */
extern size_t pki_next_below;
#define PKI_NEXT_BELOW ((size_t)PTRDIFF_MAX - 65536) /* the allocator may refuse what is larger */
/* Its calloc and aligned functions call the program's malloc and aligned_alloc, that is ours, as
 * musl's do. Then pki_next_below stays 0: so who allocates looks at pki_next_within, and elsewhere
 * nobody does. */
extern bool pki_next_nests;
/* This thread is amid such a call: what is allocated now is a part of what was asked for, and is
 * passed on as it is. So is what a handler allocates that strikes amid it. */
extern _Thread_local bool pki_next_within;

/* What a free need not look at: whether the block is of pki_early_malloc, as there is none (ALL),
 * or as its page says so (SAMPLED). */
enum { PKI_NEXT_GAVE_SOME, PKI_NEXT_GAVE_ALL, PKI_NEXT_GAVE_SAMPLED };
extern int pki_next_gave;

/* What a block that was asked for with so many bytes can hold, by each 8 of them; 0: only the block
 * knows. Some allocators promise that it depends on the size alone, and asking them takes as long
 * as half a malloc. */
#define PKI_NEXT_KNOWN 1024u
extern uint16_t pki_next_holds[PKI_NEXT_KNOWN / 8 + 1];
extern bool pki_next_learns; /* such an allocator is beneath, and not all is known */
PKI_COLD size_t pki_next_learn(void *block, size_t asked);

/* Before any of the table is used, unless pki_next_state says that it is known. False: this is a
 * call from within the search, which may allocate itself; see pki_early_malloc. */
bool pki_next_find(void);

static inline bool pki_next_ready(void)
{
    return PKI_LIKELY(__atomic_load_n(&pki_next_state, __ATOMIC_ACQUIRE)) || pki_next_find();
}

/* Of sizes that are not below pki_next_below, after pki_next_ready. */
PKI_COLD bool pki_next_is_counted_otherwise(size_t size);

/* Of a block of malloc's and calloc's, which was asked for with so many bytes, PKI_NEXT_KNOWN at
 * most. */
static inline size_t pki_next_usable(void *block, size_t asked)
{
    size_t holds = pki_load(&pki_next_holds[(asked + 7) / 8]);
    if (PKI_LIKELY(holds))
        return holds;
    return PKI_UNLIKELY(pki_load(&pki_next_learns)) ? pki_next_learn(block, asked)
                                                    : pki_next.usable(block);
}

/* Of a small block: jemalloc's sdallocx is no slower than its free for those. */
static inline void pki_next_free(void *block, size_t usable)
{
    void (*sized)(void *, size_t, int) = pki_load(&pki_next.free_sized);
    if (sized && usable <= PKI_NEXT_KNOWN)
        sized(block, usable, 0);
    else
        pki_next.free(block);
}

/* ---- PK_ALLOC_SAMPLE_BYTES: some blocks stand for all ---- */

/* Of the program's bytes, in the order in which each thread asks for them, each is drawn with the
 * same small chance, one in so many on average; who asks for a drawn one has its block counted,
 * with a weight (counts.c), and nothing is known of the others. So what is common costs a
 * comparison: how far it is to the thread's next drawn byte; and at a free, whether a counted block
 * begins in the same page. A counted block is a large one, whatever its size (counts.h), so that no
 * two of them begin in the same KiB. One byte more than asked for is drawn from: so blocks of none
 * are seen.
 *
 * Not where the allocator calls us (pki_next_nests): there all are counted. */

#define PKI_SAMPLE_LEAST 1024u
#define PKI_SAMPLE_MOST (UINT64_C(1) << 33)

extern uint64_t pki_sample_bytes; /* on average from one drawn byte to the next; 0: all blocks */
/* Who asks for less has none; 0: not known, and as long as all are counted. */
extern _Thread_local uint64_t pki_sample_left;
extern _Thread_local bool pki_sample_drawn; /* that has been drawn for this thread */

static inline bool pki_sample_skips(size_t size)
{
    uint64_t left = pki_sample_left;
    if (size >= left)
        return false;
    pki_sample_left = left - size - 1;
    return true;
}

/* Counted blocks by page, of 4 GiB of addresses; what lies beyond shares with these. One of 255
 * stays. */
#define PKI_SAMPLE_PAGES (1u << 20)
extern uint8_t pki_sample_pages[PKI_SAMPLE_PAGES];

static inline uint8_t *pki_sample_page(const void *block)
{
    return &pki_sample_pages[(uintptr_t)block >> 12 & (PKI_SAMPLE_PAGES - 1)];
}

/* Its file; NULL: nothing is counted, and why. */
const char *pki_next_file(const char **why);

/* For the search: never given back. */
void *pki_early_malloc(size_t bytes);
#define PKI_EARLY_BYTES 65536u
extern char pki_early[PKI_EARLY_BYTES];
static inline bool pki_is_early(const void *block)
{
    return (uintptr_t)block - (uintptr_t)pki_early < PKI_EARLY_BYTES;
}
size_t pki_early_size(const void *block);

/* A function of that name behind us, and whether it is of another library than the allocator, so
 * that it calls malloc; NULL: there is none. It waits for the loader. */
void *pki_next_function(const char *name, bool *of_library);
