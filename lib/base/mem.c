#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older kernels answer EINVAL */
#endif

/* Magic numbers of network file systems that linux/magic.h does not list (statfs(2), Lustre and
 * GPFS headers). */
#define LUSTRE_MAGIC 0x0BD00BD0
#define GPFS_MAGIC 0x47504653
#define BEEGFS_MAGIC 0x19830326

int pki_mem_file(const char *name)
{
    return memfd_create(name, MFD_CLOEXEC);
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

void *pki_mem_map(int fd, size_t bytes)
{
    if (!pki_mem_may_grow(bytes) || ftruncate(fd, (off_t)bytes) != 0)
        return NULL;
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    return base == MAP_FAILED ? NULL : base;
}

void pki_mem_unmap(void *base, size_t bytes)
{
    if (base)
        munmap(base, bytes);
}

bool pki_mem_back(int fd, uint64_t offset, uint64_t bytes)
{
    int error = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    if (error)
        errno = error;
    return error == 0;
}

void pki_mem_populate(void *at, size_t bytes)
{
    int saved = errno;
    uintptr_t from = (uintptr_t)at & ~(uintptr_t)4095;
    uintptr_t to = ((uintptr_t)at + bytes + 4095) & ~(uintptr_t)4095;
    madvise((void *)from, to - from, MADV_POPULATE_WRITE);
    errno = saved;
}

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
