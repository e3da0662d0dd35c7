/* lib/base/mem.h - shared mappings that cannot fault on a full disk.
 *
 * A shared file mapping dies of SIGBUS when a page is touched for which the file system has no
 * room. So the mapping is reserved whole, and each part is backed (blocks allocated) before anybody
 * gets to touch it; where there is no room the answer is "no memory", not a signal.
 *
 * What is reserved only is inaccessible, so an mlockall(MCL_CURRENT) of the program brings none of
 * it in. After an mlockall(MCL_FUTURE) a mapping of 1 GiB would be filled and locked as it is made,
 * or be refused for want of RLIMIT_MEMLOCK. So it begins as a page, which is unlocked, and grows:
 * what grows inherits that. What is backed later is locked then, as the program has asked for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/own.h"

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

/* Gives blocks and memory of backed pages back to the file system; what they held is gone. They
 * must be backed again before anybody touches them. False and errno: it cannot be done there. */
bool pki_mem_discard(const pki_owned *file, uint64_t offset, uint64_t bytes);

/* Brings backed pages in now, so that the thread that writes them later takes no page fault. Before
 * Linux 5.14, which has no call for it, each is touched. Failure costs time, not correctness. */
void pki_mem_populate(void *at, size_t bytes);

/* Does the process lock what it maps from now on (MCL_FUTURE)? */
bool pki_mem_is_locking(void);

/* Is fd on a file system that lives behind a network, where a shared mapping stalls? */
bool pki_mem_is_remote(int fd);
