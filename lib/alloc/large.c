#include "alloc/large.h"

#include <errno.h>
#include <sys/mman.h>

uint64_t *pki_large_parts[PKI_LARGE_PARTS];
static uint64_t missed;

/* Pages of 4 KiB: with huge ones, a program that allocates here and there would get 2 MiB for each
 * GiB of its addresses. */
static uint64_t *reserve(size_t bytes)
{
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return NULL;
    madvise(room, bytes, MADV_NOHUGEPAGE);
    return room;
}

/* The loser of two who make the same, which can be a handler and whom it has struck, gives its own
 * back. */
uint64_t *pki_large_make(const void *block)
{
    const size_t bytes = PKI_LARGE_WORDS * sizeof(uint64_t);
    uint64_t **at = pki_large_part(block), *there = NULL;
    int error = errno;
    uint64_t *part = reserve(bytes);
    /* pairs with the acquire in pki_large_put and pki_large_take */
    if (part &&
        !__atomic_compare_exchange_n(at, &there, part, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
        munmap(part, bytes);
        part = there;
    }
    errno = error;
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
