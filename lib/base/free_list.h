/* lib/base/free_list.h - free elements, handed out and given back by any thread without a lock.
 *
 * Elements are known by number, from 1, and linked by number. The list's head carries a tag that
 * counts how often one has been taken, so that one that went and came back meanwhile is not taken
 * for one that never moved. An element's memory is never given back, so looking at the link of one
 * that somebody else has just taken reads nothing foreign.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

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
