#include "alloc/room.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* It begins as a page, which is unlocked, and grows: what grows inherits that, as in base/memory.c.
 */
static void *reserve(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *seed = mmap(NULL, page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (seed == MAP_FAILED)
        return NULL;
    munlock(seed, page);
    void *room = mremap(seed, page, bytes, MREMAP_MAYMOVE);
    if (room != MAP_FAILED)
        return room;
    munmap(seed, page);
    return NULL;
}

void *pki_room_map(size_t bytes)
{
    int error = errno;
    void *room = reserve(bytes);
    errno = error;
    return room;
}

void pki_room_unmap(void *room, size_t bytes)
{
    int error = errno;
    munmap(room, bytes);
    errno = error;
}
