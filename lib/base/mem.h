/* lib/base/mem.h - shared mappings that cannot fault on a full disk.
 *
 * A shared file mapping dies of SIGBUS when a page is touched for which the file system has no
 * room. So the mapping is reserved whole, and each part is backed (blocks allocated) before anybody
 * gets to touch it; where there is no room the answer is "no memory", not a signal.
 */
#ifndef PKI_BASE_MEM_H
#define PKI_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An anonymous file in memory, close-on-exec; -1 and errno. */
int pki_mem_file(const char *name);

/* May a file have so many bytes? False and errno. Whoever tries, in a process whose file sizes are
 * limited (ulimit -f), is killed by SIGXFSZ; so everybody asks before making a file longer. */
bool pki_mem_may_grow(uint64_t bytes);

/* Maps bytes of fd, all of it reserved, none of it backed; NULL and errno. fd stays open and the
 * caller's. */
void *pki_mem_map(int fd, size_t bytes);
void pki_mem_unmap(void *base, size_t bytes);

/* Allocates blocks for [offset, offset + bytes) of fd. False and errno if there is no room. */
bool pki_mem_back(int fd, uint64_t offset, uint64_t bytes);

/* Brings backed pages in now, so that the thread that writes them later takes no page fault. A
 * hint: failure costs time, not correctness. */
void pki_mem_populate(void *at, size_t bytes);

/* Is fd on a file system that lives behind a network, where a shared mapping stalls? */
bool pki_mem_is_remote(int fd);

#endif
