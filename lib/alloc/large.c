#include "alloc/large.h"

#include <errno.h>
#include <sys/mman.h>

#include "alloc/room.h"

uint64_t *pki_large_parts[PKI_LARGE_PARTS];
static uint64_t missed;
static uint32_t refusals_left;

/* Whoever was refused room is refused again: not each block asks the system. Of any part: it is
 * the process that has no room. Which of two threads takes one off is no matter. */
static bool should_retry(void)
{
    uint32_t left = pki_load(&refusals_left);
    if (left)
        pki_store(&refusals_left, left - 1);
    return !left;
}

/* Pages of 4 KiB: with huge ones, a program that allocates here and there would get 2 MiB for each
 * GiB of its addresses. */
static uint64_t *reserve(size_t bytes)
{
    if (!should_retry())
        return NULL;
    void *room = pki_room_map(bytes);
    int error = errno;
    if (room)
        madvise(room, bytes, MADV_NOHUGEPAGE);
    else
        pki_store(&refusals_left, PKI_LARGE_UNASKED);
    errno = error;
    return room;
}

/* The loser of two who make the same, which can be a handler and whom it has struck, gives its own
 * back. */
uint64_t *pki_large_make(const void *block)
{
    const size_t bytes = PKI_LARGE_WORDS * sizeof(uint64_t);
    uint64_t **at = pki_large_part(block), *there = NULL;
    uint64_t *part = reserve(bytes);
    /* pairs with the acquire in pki_large_put and pki_large_remove */
    if (part &&
        !__atomic_compare_exchange_n(at, &there, part, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
        pki_room_unmap(part, bytes);
        part = there;
    }
    return part;
}

bool pki_large_miss(void)
{
    pki_fetch_add(&missed, 1);
    return false;
}

uint64_t pki_large_missed(void)
{
    return pki_load(&missed);
}
