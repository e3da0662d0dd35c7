/* lib/alloc/room.h - zeroed addresses of which only what is touched takes memory. */
#pragma once

#include <stddef.h>

/* NULL: there is no room. errno is kept. In a program that locks what it maps from now on
 * (mlockall(MCL_FUTURE)), too, neither filled nor locked, and a page of RLIMIT_MEMLOCK is enough.
 */
void *pki_room_map(size_t bytes);
void pki_room_unmap(void *room, size_t bytes);
