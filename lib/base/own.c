#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"

#define HIGH 1000 /* below the usual limit of 1024, above what programs have */

#define LEAST_MARK ((int64_t)1 << 30) /* every file system knows positions of 31 bits */

static bool any_lost;

int pki_fd_up(int fd)
{
    if (fd < 0)
        return fd;
    for (int least = HIGH; least > STDERR_FILENO && least > fd; least /= 2) {
        int high = fcntl(fd, F_DUPFD_CLOEXEC, least);
        if (high >= 0) {
            close(fd);
            return high;
        }
    }
    if (fd > STDERR_FILENO)
        return fd;
    close(fd);
    errno = EMFILE;
    return -1;
}

int pki_fd_open(const char *path, int flags, unsigned mode)
{
    return pki_fd_up(open(path, flags | O_CLOEXEC, mode));
}

static int64_t new_mark(void)
{
    static uint32_t count;
    uint64_t bits = pki_monotonic_ns() + pki_fetch_add(&count, 1u);
    return LEAST_MARK | (int64_t)((bits * 0x9E3779B97F4A7C15u) >> 34);
}

bool pki_own_adopt(pki_owned *own, int fd)
{
    struct stat file;
    *own = (pki_owned){.fd = -1};
    if (fd < 0 || fstat(fd, &file) != 0)
        return false;
    *own = (pki_owned){.fd = fd,
                       .device = file.st_dev,
                       .inode = file.st_ino,
                       .mark = S_ISREG(file.st_mode) ? lseek(fd, new_mark(), SEEK_SET) : -1};
    return true;
}

static bool is_same(const pki_owned *own, const struct stat *file)
{
    return file->st_dev == own->device && file->st_ino == own->inode;
}

bool pki_own_check(const pki_owned *own)
{
    struct stat file;
    if (own->fd > STDERR_FILENO) { /* memory of zeros is none, too */
        if (fstat(own->fd, &file) == 0 && is_same(own, &file) &&
            (own->mark < 0 || lseek(own->fd, 0, SEEK_CUR) == own->mark))
            return true;
        pki_store(&any_lost, true);
    }
    errno = EBADF;
    return false;
}

void pki_own_close(pki_owned *own)
{
    int error = errno;
    if (pki_own_check(own))
        close(own->fd);
    *own = (pki_owned){.fd = -1};
    errno = error;
}

bool pki_own_is_at(const pki_owned *own, const char *path)
{
    struct stat there;
    return own->inode && lstat(path, &there) == 0 && is_same(own, &there);
}

bool pki_own_any_lost(void)
{
    return pki_load(&any_lost);
}

const char *pki_own_why(int error)
{
    return error == EBADF ? "the program has closed perfkit's descriptor of it" : strerror(error);
}

static bool set_lock(int fd, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool pki_own_lock(const pki_owned *own)
{
    return pki_own_check(own) && set_lock(own->fd, F_WRLCK);
}

void pki_own_unlock(const pki_owned *own)
{
    if (pki_own_check(own))
        set_lock(own->fd, F_UNLCK);
}
