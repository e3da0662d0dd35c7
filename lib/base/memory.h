/* lib/base/memory.h - memory of our own, and what lies in it */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/files.h"

/* ---- shared mappings that cannot fault on a full disk ---- */

/* A shared file mapping dies of SIGBUS when a page is touched for which the file system has no
 * room. So the mapping is reserved whole, and each part is backed (blocks allocated) before anybody
 * gets to touch it; where there is no room the answer is "no memory", not a signal.
 *
 * What is reserved only is inaccessible, so an mlockall(MCL_CURRENT) of the program brings none of
 * it in. After an mlockall(MCL_FUTURE) a mapping of 1 GiB would be filled and locked as it is made,
 * or be refused for want of RLIMIT_MEMLOCK. So it begins as a page, which is unlocked, and grows:
 * what grows inherits that. What is backed later is locked then, as the program has asked for. */

/* An anonymous file in memory. False and errno. */
bool pki_mem_file(pki_owned *file, const char *name);

/* May a file have so many bytes? False and errno. Whoever tries, in a process whose file sizes are
 * limited (ulimit -f), is killed by SIGXFSZ; so everybody asks before making a file longer. */
bool pki_mem_may_grow(uint64_t bytes);

/* Maps so many bytes of the file, all of it reserved, none of it backed; NULL and errno. locked:
 * pki_mem_is_locking. */
void *pki_mem_map(const pki_owned *file, size_t bytes, bool *locked);
void pki_mem_unmap(void *base, size_t bytes);

/* What RLIMIT_AS leaves; UINT64_MAX: there is no limit. */
uint64_t pki_mem_address_space_left(void);

/* So many zeroed bytes of the process's own, by the page; NULL without memory. For what may be
 * needed amid malloc, in a signal handler; given back with pki_mem_unmap. */
void *pki_mem_private(size_t bytes);

/* Allocates blocks for [offset, offset + bytes) of the file, which is mapped at base, and lets that
 * part be used; lock: keeps its pages in memory once they are there, if the process may. False and
 * errno if there is no room, or if the descriptor is not ours any more. */
bool pki_mem_back(const pki_owned *file, void *base, uint64_t offset, uint64_t bytes, bool lock);

/* Brings pages in now, at once, so that who writes them later takes no page fault for each, which
 * costs 20 us in some virtual machines. Before Linux 5.14, which has no call for it, each is
 * touched. Failure costs time, not correctness. */
void pki_mem_populate(void *at, size_t bytes);

/* A large block, zeroed and populated, for free(). NULL without memory. */
void *pki_mem_zeroed(size_t bytes);

/* Zeroes what is none of a file's. Whole pages go back to the system, which gives zeroed ones when
 * they are touched: clearing what nobody has used costs no page fault. */
void pki_mem_clear(void *at, size_t bytes);

/* Does the process lock what it maps from now on (MCL_FUTURE)? */
bool pki_mem_is_locking(void);

/* Is fd on a file system that lives behind a network, where a shared mapping stalls? */
bool pki_mem_is_remote(int fd);

/* ---- arrays, and such that grow ---- */

/* So many elements, zeroed; good for free, also where there are none. NULL without memory. */
void *pki_array_zeroed(size_t count, size_t size);

/* Sees to it that the array whose address lies at array_of, of elements of that size, has room for
 * so many: at least twice what it had, the new ones zeroed. False without memory: nothing has
 * changed. */
bool pki_array_fit(void *array_of, size_t *room, size_t wanted, size_t size);

/* ---- a mapping of a file, handed out span by span ---- */

/* Reserved whole, backed piece by piece: a span is backed before anybody has it.
 * How much has been handed out is counted in the mapping itself, where a reader of the file finds
 * it. What the mapping begins with, and what the spans hold, is its user's business (core/arena.h).
 */

#define PKI_PAGE 4096u

typedef struct pki_spans {
    char *start;
    uint64_t *used; /* bytes handed out, the head's included */
    size_t bytes;
    pki_owned file;
    bool locked; /* the process wants what it uses to stay in memory */
    int refused; /* why there was no room, the last time; 0: there has always been */
} pki_spans;

/* Maps so many bytes of a memory file or a fresh empty file, which is the mapping's from then on,
 * with a backed and zeroed head; `used` lies at this offset of it. False and errno; the file stays
 * the caller's then. */
bool pki_spans_map(pki_spans *spans, const pki_owned *file, size_t bytes, size_t head, size_t used);
void pki_spans_unmap(pki_spans *spans);

/* A page-aligned, zeroed, backed span; NULL if the bound or the file system leaves no room. Any
 * thread, no lock. */
void *pki_spans_claim(pki_spans *spans, size_t bytes);

/* Of a span that nobody uses: gives its memory back, until it is restored, zeroed. False: it stays
 * as it is, backed or not. errno stays as it was. */
bool pki_spans_discard(const pki_spans *spans, const void *span, size_t bytes);
bool pki_spans_restore(const pki_spans *spans, const void *span, size_t bytes);

static inline uint64_t pki_spans_offset(const pki_spans *spans, const void *at)
{
    return (uint64_t)((const char *)at - spans->start);
}

static inline void *pki_spans_at(const pki_spans *spans, uint64_t offset)
{
    return spans->start + offset;
}

/* ---- free elements, handed out and given back by any thread without a lock ---- */

/* Elements are known by number, from 1, and linked by number. The list's head carries a tag that
 * counts how often one has been taken, so that one that went and came back meanwhile is not taken
 * for one that never moved. An element's memory is never given back, so looking at the link of one
 * that somebody else has just taken reads nothing foreign. */

/* tag << 32 | number of the first; 0: none is free, which is how it begins. */
typedef uint64_t pki_free_list;

/* Where the link of the element with this number is. */
typedef uint32_t *pki_free_link(void *owner, uint32_t number);

#define PKI_FREE_INLINE static inline __attribute__((always_inline))

/* 0: none is free. */
PKI_FREE_INLINE uint32_t pki_free_list_pop(pki_free_list *list, pki_free_link *link, void *owner)
{
    uint64_t head = pki_load_acquire(list); /* pairs with the release in pki_free_list_push */
    while ((uint32_t)head) {
        uint64_t after = ((head >> 32) + 1) << 32 | pki_load(link(owner, (uint32_t)head));
        if (__atomic_compare_exchange_n(list, &head, after, true, __ATOMIC_ACQUIRE,
                                        __ATOMIC_ACQUIRE))
            return (uint32_t)head;
    }
    return 0;
}

PKI_FREE_INLINE void pki_free_list_push(pki_free_list *list, pki_free_link *link, void *owner,
                                        uint32_t number)
{
    uint32_t *next = link(owner, number);
    uint64_t head = pki_load(list);
    do
        pki_store(next, (uint32_t)head);
    while (!__atomic_compare_exchange_n(list, &head, (head >> 32) << 32 | number, true,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}
