#include "machine/storage.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "machine/rates.h"
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define BLOCK ((size_t)1 << 20)
#define ALIGNMENT 4096u /* of buffers, more than any device of today asks for */
#define ROUNDS 5u

/* The file has no name, or loses it at once: whatever ends this process, nothing is left. */
static int make_file(const char *folder, bool direct)
{
    int flags = O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0);
    char path[PATH_MAX];
    int fd = open(folder, flags | O_TMPFILE, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    if (snprintf(path, sizeof path, "%s/.pk-machine-%ld", folder, (long)getpid()) >=
        (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = open(path, flags | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    int error = errno;
    if (fd >= 0 || error == EINVAL) /* without O_DIRECT some leave the file behind */
        unlink(path);
    errno = error;
    return fd;
}

/* All of it, as transfers of blocks. */
static bool move_blocks(int fd, char *block, uint64_t bytes, bool write)
{
    for (uint64_t at = 0; at < bytes;) {
        ssize_t n =
            write ? pwrite(fd, block, BLOCK, (off_t)at) : pread(fd, block, BLOCK, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != (ssize_t)BLOCK) {
            errno = n < 0 ? errno : EIO; /* a part of a block: direct transfers could not go on */
            return false;
        }
        at += BLOCK;
    }
    /* What the device keeps in a cache of its own is not there yet. */
    return !write || fdatasync(fd) == 0;
}

static bool measure(int fd, char *block, uint64_t bytes, bool write, pki_limit *limit)
{
    double rates[ROUNDS];
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t begin = pki_monotonic_ns();
        if (!move_blocks(fd, block, bytes, write))
            return false;
        rates[i] = (double)bytes * 1e9 / (double)PKI_MAX(pki_monotonic_ns() - begin, 1u);
    }
    rates_summarise(rates, ROUNDS, limit);
    return true;
}

/* Whole blocks, of a tenth of what is free at most. */
static bool find_bytes(const char *folder, uint32_t mib, uint64_t *bytes, complaint *why)
{
    struct statvfs s;
    if (statvfs(folder, &s) != 0)
        return complaint_set(why, "%s: %s", folder, strerror(errno));
    uint64_t free_bytes = (uint64_t)s.f_bavail * s.f_frsize;
    *bytes = PKI_MIN((uint64_t)mib << 20, free_bytes / 10) / BLOCK * BLOCK;
    if (*bytes)
        return true;
    return complaint_set(why, "%s: less than 10 MiB are free", folder);
}

static bool measure_in(int fd, char *block, storage_figures *f)
{
    /* Compressing file systems and devices are not to find zeros. */
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < BLOCK; i += sizeof x) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(block + i, &x, sizeof x);
    }
    return measure(fd, block, f->bytes, true, &f->write) &&
           (!f->direct || measure(fd, block, f->bytes, false, &f->read));
}

bool storage_measure(const char *folder, uint32_t mib, storage_figures *f, complaint *why)
{
    memset(f, 0, sizeof *f);
    f->direct = true;
    if (!find_bytes(folder, mib, &f->bytes, why))
        return false;
    int fd = make_file(folder, true);
    if (fd < 0 && errno == EINVAL) {
        f->direct = false;
        fd = make_file(folder, false);
    }
    if (fd < 0)
        return complaint_set(why, "%s: no file can be made there: %s", folder, strerror(errno));
    void *block = NULL;
    memory_needed(posix_memalign(&block, ALIGNMENT, BLOCK) == 0);
    f->folder = folder;
    bool done = measure_in(fd, block, f);
    if (!done)
        complaint_set(why, "%s: %s", folder, strerror(errno));
    free(block);
    close(fd);
    return done;
}
