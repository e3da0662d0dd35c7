#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/files.h"

/* ---- shared mappings that cannot fault on a full disk ---- */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older kernels answer EINVAL */
#endif

/* Magic numbers of network file systems that linux/magic.h does not list (statfs(2), Lustre and
 * GPFS headers). */
#define LUSTRE_MAGIC 0x0BD00BD0
#define GPFS_MAGIC 0x47504653
#define BEEGFS_MAGIC 0x19830326

/* What is mapped lies in the file from the start, as far as this; from there on it grows as it is
 * backed, since people clear away files of a gigabyte. */
#define FIRST_BYTES ((size_t)16 << 20)

bool pki_mem_file(pki_owned *file, const char *name)
{
    return pki_own_adopt(file, pki_fd_up(memfd_create(name, MFD_CLOEXEC)));
}

bool pki_mem_may_grow(uint64_t bytes)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur == RLIM_INFINITY ||
        bytes <= most.rlim_cur)
        return true;
    errno = EFBIG;
    return false;
}

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* The one answer that msync has for locked pages alone. */
static bool is_locked(void *page)
{
    int error = errno;
    bool locked = msync(page, page_bytes(), MS_INVALIDATE) != 0 && errno == EBUSY;
    errno = error;
    return locked;
}

/* Readable: valgrind takes a question about a page of PROT_NONE for a mistake. */
bool pki_mem_is_locking(void)
{
    size_t page = page_bytes();
    void *probe = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED)
        return false;
    bool locked = is_locked(probe);
    munmap(probe, page);
    return locked;
}

void *pki_mem_map(const pki_owned *file, size_t bytes, bool *locked)
{
    size_t page = page_bytes();
    size_t first = bytes < FIRST_BYTES ? bytes : FIRST_BYTES;
    if (!pki_mem_may_grow(bytes) || !pki_own_check(file) || ftruncate(file->fd, (off_t)first) != 0)
        return NULL;
    void *seed = mmap(NULL, page, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file->fd, 0);
    if (seed == MAP_FAILED)
        return NULL;
    *locked = pki_mem_is_locking();
    munlock(seed, page);
    void *base = mremap(seed, page, bytes, MREMAP_MAYMOVE);
    int error = errno;
    if (base != MAP_FAILED) {
        madvise(base, bytes, MADV_RANDOM); /* it is written: nothing is to be read ahead */
        errno = error;
        return base;
    }
    munmap(seed, page);
    errno = error;
    return NULL;
}

uint64_t pki_mem_address_space_left(void)
{
    struct rlimit most;
    char text[128];
    if (getrlimit(RLIMIT_AS, &most) != 0 || most.rlim_cur == RLIM_INFINITY ||
        !pki_small_file("/proc/self/statm", text, sizeof text))
        return UINT64_MAX;
    uint64_t used = strtoull(text, NULL, 10) * page_bytes();
    return most.rlim_cur > used ? most.rlim_cur - used : 0;
}

void *pki_mem_private(size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

void pki_mem_unmap(void *base, size_t bytes)
{
    if (base)
        munmap(base, bytes);
}

/* In whole pages: the system's may be larger than what is asked for. Their pages are locked as they
 * come in, so that nobody waits for all of a ring; to be refused costs the program's wish, not
 * more. */
static bool enable_access(char *base, uint64_t offset, uint64_t bytes, bool lock)
{
    uint64_t beside = offset % page_bytes();
    void *from = base + offset - beside;
    if (mprotect(from, bytes + beside, PROT_READ | PROT_WRITE) != 0)
        return false;
    int error = errno;
    if (lock)
        mlock2(from, bytes + beside, MLOCK_ONFAULT);
    errno = error;
    return true;
}

/* A limit on files that is less than it takes is told by a signal, unless we look first. */
static bool may_reach(const pki_owned *file, uint64_t end)
{
    struct stat now;
    return (fstat(file->fd, &now) == 0 && (uint64_t)now.st_size >= end) || pki_mem_may_grow(end);
}

bool pki_mem_back(const pki_owned *file, void *base, uint64_t offset, uint64_t bytes, bool lock)
{
    if (!pki_own_check(file) || !may_reach(file, offset + bytes))
        return false;
    int error = posix_fallocate(file->fd, (off_t)offset, (off_t)bytes);
    if (error)
        errno = error;
    return error == 0 && enable_access(base, offset, bytes, lock);
}

/* Gives blocks and memory of backed pages back to the file system; what they held is gone. They
 * must be backed again before anybody touches them. False and errno: it cannot be done there. */
static bool pki_mem_discard(const pki_owned *file, uint64_t offset, uint64_t bytes)
{
    return pki_own_check(file) && fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                            (off_t)offset, (off_t)bytes) == 0;
}

/* A write that changes nothing, whoever else writes there. Of one that adds 0 clang makes a read,
 * after which the first write still waits for the kernel; so it is not told what is added. Of each
 * page a word within the object: what lies beside it is somebody else's. */
static void touch(uintptr_t at, uintptr_t end)
{
    uint64_t nothing = 0;
    __asm__("" : "+r"(nothing));
    for (at = (at + 7) & ~(uintptr_t)7; at + sizeof nothing <= end;
         at = (at & ~(uintptr_t)4095) + 4096)
        __atomic_fetch_add((uint64_t *)at, nothing, __ATOMIC_RELAXED);
}

void pki_mem_populate(void *at, size_t bytes)
{
    int saved = errno;
    uintptr_t from = (uintptr_t)at & ~(uintptr_t)4095;
    uintptr_t to = ((uintptr_t)at + bytes + 4095) & ~(uintptr_t)4095;
    if (madvise((void *)from, to - from, MADV_POPULATE_WRITE) != 0 && errno == EINVAL)
        touch((uintptr_t)at, (uintptr_t)at + bytes);
    errno = saved;
}

void *pki_mem_zeroed(size_t bytes)
{
    void *block = malloc(bytes);
    if (!block)
        return NULL;
    pki_mem_populate(block, bytes);
    return memset(block, 0, bytes);
}

/* Locked pages stay (EINVAL). */
void pki_mem_clear(void *at, size_t bytes)
{
    int saved = errno;
    uintptr_t page = page_bytes(), from = ((uintptr_t)at + page - 1) & ~(page - 1);
    uintptr_t end = (uintptr_t)at + bytes, to = end & ~(page - 1);
    if (from < to && madvise((void *)from, to - from, MADV_DONTNEED) == 0) {
        memset(at, 0, from - (uintptr_t)at);
        memset((void *)to, 0, end - to);
    } else {
        memset(at, 0, bytes);
    }
    errno = saved;
}

/* Those that kernels' headers did not have in 2020. */
#ifndef SMB2_SUPER_MAGIC
#define SMB2_SUPER_MAGIC 0xFE534D42
#endif
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xFF534D42
#endif
#ifndef CEPH_SUPER_MAGIC
#define CEPH_SUPER_MAGIC 0x00C36400
#endif
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

bool pki_mem_is_remote(int fd)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0)
        return false;
    switch ((uint32_t)fs.f_type) {
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
    case CEPH_SUPER_MAGIC:
    case AFS_SUPER_MAGIC:
    case V9FS_MAGIC:
    case FUSE_SUPER_MAGIC:
    case LUSTRE_MAGIC:
    case GPFS_MAGIC:
    case BEEGFS_MAGIC:
        return true;
    default:
        return false;
    }
}

/* ---- arrays, and such that grow ---- */

void *pki_array_zeroed(size_t count, size_t size)
{
    return calloc(PKI_MAX(count, 1), size);
}

#define ARRAY_FIRST_BYTES 64u

bool pki_array_fit(void *array_of, size_t *room, size_t wanted, size_t size)
{
    char *array;
    if (wanted <= *room)
        return true;
    size_t more = PKI_MAX(PKI_MAX(wanted, 2 * *room), ARRAY_FIRST_BYTES / size);
    if (more > SIZE_MAX / size)
        return false;
    memcpy(&array, array_of, sizeof array);
    array = realloc(array, more * size);
    if (!array)
        return false;
    memset(array + *room * size, 0, (more - *room) * size);
    memcpy(array_of, &array, sizeof array);
    *room = more;
    return true;
}

/* ---- a mapping of a file, handed out span by span ---- */

static uint64_t pages_up(uint64_t bytes)
{
    return (bytes + PKI_PAGE - 1) & ~(uint64_t)(PKI_PAGE - 1);
}

bool pki_spans_map(pki_spans *spans, const pki_owned *file, size_t bytes, size_t head, size_t used)
{
    bool locked;
    bytes = (size_t)pages_up(bytes);
    char *start = pki_mem_map(file, bytes, &locked);
    if (!start || !pki_mem_back(file, start, 0, pages_up(head), locked)) {
        pki_mem_unmap(start, bytes);
        return false;
    }
    *spans = (pki_spans){.start = start,
                         .used = (uint64_t *)(void *)(start + used),
                         .bytes = bytes,
                         .file = *file,
                         .locked = locked};
    *spans->used = pages_up(head);
    return true;
}

void pki_spans_unmap(pki_spans *spans)
{
    pki_mem_unmap(spans->start, spans->bytes);
    pki_own_close(&spans->file);
}

static void *refuse(pki_spans *spans, int error)
{
    pki_store(&spans->refused, error);
    return NULL;
}

void *pki_spans_claim(pki_spans *spans, size_t bytes)
{
    uint64_t at = pki_load(spans->used);
    bytes = (size_t)pages_up(bytes);
    do {
        if (bytes > spans->bytes - at)
            return refuse(spans, ENOMEM);
    } while (!__atomic_compare_exchange_n(spans->used, &at, at + bytes, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    int saved = errno; /* whoever records may be the one who claims */
    if (pki_mem_back(&spans->file, spans->start, at, bytes, spans->locked))
        return pki_spans_at(spans, at);
    refuse(spans, errno);
    errno = saved;
    uint64_t end = at + bytes; /* a full disk is no reason to use up the bound */
    __atomic_compare_exchange_n(spans->used, &end, at, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return NULL;
}

bool pki_spans_discard(const pki_spans *spans, const void *span, size_t bytes)
{
    int saved = errno;
    bool done =
        pki_mem_discard(&spans->file, pki_spans_offset(spans, span), (size_t)pages_up(bytes));
    errno = saved;
    return done;
}

bool pki_spans_restore(const pki_spans *spans, const void *span, size_t bytes)
{
    int saved = errno;
    bool done = pki_mem_back(&spans->file, spans->start, pki_spans_offset(spans, span),
                             (size_t)pages_up(bytes), spans->locked);
    errno = saved;
    return done;
}
