/* File offsets have 64 bits, as meson compiles everything: hence the names. */
#include "failing.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>

ways *failing_ways;

static const char *armed;
static const way *only; /* NULL: none fails, all are counted */
static unsigned countdown;
static failing_way how;
static int with;
static bool hit, counting;

void failing_arm(const char *function, const way *which, failing_way as, int error)
{
    armed = function;
    only = which;
    countdown = which ? which->times : 0;
    how = as;
    with = error;
    hit = hit && !function;
}

bool failing_hit(void)
{
    return __atomic_load_n(&hit, __ATOMIC_ACQUIRE);
}

/* One thread at a time, and not what looking for the way itself may call. */
static void count_way(uint64_t name)
{
    while (__atomic_exchange_n(&counting, true, __ATOMIC_ACQUIRE))
        ;
    ways_count(failing_ways, name);
    __atomic_store_n(&counting, false, __ATOMIC_RELEASE);
}

/* Is this the call? Threads may arrive together: one of them gets it. */
static bool fails(const char *function)
{
    if (!armed || strcmp(armed, function) != 0 || failing_hit())
        return false;
    uint64_t name = way_here();
    if (!only)
        count_way(name);
    if (!only || only->name != name || __atomic_sub_fetch(&countdown, 1, __ATOMIC_RELAXED) != 0)
        return false;
    __atomic_store_n(&hit, true, __ATOMIC_RELEASE);
    errno = with;
    return true;
}

#define WRAP(type, name, parameters, arguments, failed)                                            \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return fails(#name) ? (failed) : __real_##name arguments;                                  \
    }

WRAP(void *, malloc, (size_t n), (n), NULL)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), NULL)
WRAP(void *, realloc, (void *p, size_t n), (p, n), NULL)
WRAP(void *, aligned_alloc, (size_t line, size_t n), (line, n), NULL)
WRAP(char *, strdup, (const char *s), (s), NULL)
WRAP(char *, strndup, (const char *s, size_t n), (s, n), NULL)
WRAP(FILE *, open_memstream, (char **text, size_t *n), (text, n), NULL)
WRAP(void *, mmap64, (void *at, size_t n, int protection, int flags, int fd, off_t from),
     (at, n, protection, flags, fd, from), MAP_FAILED)
WRAP(int, mprotect, (void *at, size_t n, int protection), (at, n, protection), -1)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)
WRAP(int, ftruncate64, (int fd, off_t n), (fd, n), -1)
WRAP(int, posix_fallocate64, (int fd, off_t from, off_t n), (fd, from, n), with)
WRAP(int, rename, (const char *from, const char *to), (from, to), -1)
WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *how_made, void *(*body)(void *), void *arg),
     (thread, how_made, body, arg), with)
WRAP(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value), with)
WRAP(ssize_t, getrandom, (void *at, size_t n, unsigned flags), (at, n, flags), -1)
WRAP(int, madvise, (void *at, size_t n, int advice), (at, n, advice), -1)

void *__real_mremap(void *at, size_t n, size_t wanted, int flags, ...);
void *__wrap_mremap(void *at, size_t n, size_t wanted, int flags, ...);
void *__wrap_mremap(void *at, size_t n, size_t wanted, int flags, ...)
{
    return fails("mremap") ? MAP_FAILED : __real_mremap(at, n, wanted, flags);
}

int __real_fcntl64(int fd, int what, ...);
int __wrap_fcntl64(int fd, int what, ...);
int __wrap_fcntl64(int fd, int what, ...)
{
    va_list list;
    va_start(list, what);
    void *argument = va_arg(list, void *);
    va_end(list);
    return fails("fcntl64") ? -1 : __real_fcntl64(fd, what, argument);
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    va_list mode;
    va_start(mode, flags);
    unsigned bits = va_arg(mode, unsigned);
    va_end(mode);
    return fails("open64") ? -1 : __real_open64(path, flags, bits);
}

ssize_t __real_pwrite64(int fd, const void *data, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off_t at)
{
    if (!fails("pwrite64"))
        return __real_pwrite64(fd, data, n, at);
    return how == FAILING_SHORT && n > 1 ? __real_pwrite64(fd, data, n / 2, at) : -1;
}

ssize_t __real_pwritev64(int fd, const struct iovec *pieces, int count, off_t at);
ssize_t __wrap_pwritev64(int fd, const struct iovec *pieces, int count, off_t at);
ssize_t __wrap_pwritev64(int fd, const struct iovec *pieces, int count, off_t at)
{
    if (!fails("pwritev64"))
        return __real_pwritev64(fd, pieces, count, at);
    const struct iovec *first = pieces[0].iov_len ? &pieces[0] : &pieces[1];
    if (how == FAILING_SHORT)
        return __real_pwrite64(fd, first->iov_base, first->iov_len / 2 + 1, at);
    return -1;
}
