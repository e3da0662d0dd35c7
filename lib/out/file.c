#include "out/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/mem.h"

#define ATTEMPTS 100

static void random_letters(char *at, size_t n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    unsigned char bytes[16];
    if (getrandom(bytes, n, GRND_NONBLOCK) != (ssize_t)n) {
        uintptr_t unlike = (uintptr_t)&bytes ^ (uintptr_t)getpid();
        for (size_t i = 0; i < n; i++)
            bytes[i] = (unsigned char)(unlike >> (i * 5 % 40));
    }
    for (size_t i = 0; i < n; i++)
        at[i] = letters[bytes[i] % (sizeof letters - 1)];
}

int pki_file_fresh(const char *path, char *temporary, size_t size)
{
    int n = snprintf(temporary, size, "%s.XXXXXXXX", path);
    if (n < 0 || (size_t)n >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (int i = 0; i < ATTEMPTS; i++) {
        random_letters(temporary + n - 8, 8);
        int fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* A directory or a device under the wanted name is not ours to replace. */
static bool replaceable(const char *path)
{
    struct stat there;
    if (lstat(path, &there) != 0 || S_ISREG(there.st_mode) || S_ISLNK(there.st_mode))
        return true;
    errno = S_ISDIR(there.st_mode) ? EISDIR : EEXIST;
    return false;
}

bool pki_file_publish(const char *temporary, const char *path)
{
    if (replaceable(path) && rename(temporary, path) == 0)
        return true;
    int error = errno;
    unlink(temporary);
    errno = error;
    return false;
}

bool pki_file_write_at(int fd, const char *data, size_t n, uint64_t at)
{
    if (!pki_mem_may_grow(at + n))
        return false;
    while (n > 0) {
        ssize_t wrote = pwrite(fd, data, n, (off_t)at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            errno = wrote < 0 ? errno : ENOSPC;
            return false;
        }
        data += wrote;
        n -= (size_t)wrote;
        at += (size_t)wrote;
    }
    return true;
}

/* Both pieces at once where the system takes them whole, as it does unless the disk is full. */
static bool write_both(int fd, const char *a, size_t an, const char *b, size_t bn, uint64_t at)
{
    struct iovec pieces[2] = {{(void *)(uintptr_t)a, an}, {(void *)(uintptr_t)b, bn}};
    if (!pki_mem_may_grow(at + an + bn))
        return false;
    ssize_t wrote = pwritev(fd, pieces, 2, (off_t)at);
    if (wrote < 0 && errno != EINTR)
        return false;
    size_t done = wrote < 0 ? 0 : (size_t)wrote;
    size_t in_a = PKI_MIN(done, an);
    return pki_file_write_at(fd, a + in_a, an - in_a, at + in_a) &&
           pki_file_write_at(fd, b + (done - in_a), bn - (done - in_a), at + done + (an - in_a));
}

/* An end shorter than the one before it leaves something behind. Should cutting fail, readers of
 * JSON complain about what follows the document, and no more is lost than that. */
static void set_length(pki_trace_file *file, uint64_t length)
{
    int error = errno;
    if (length < file->length && ftruncate(file->fd, (off_t)length) != 0)
        length = file->length;
    file->length = length;
    errno = error;
}

/* Where the closing brackets stood there are blocks already, so this works on a full disk. */
static void put_end_back(pki_trace_file *file, const char *tail, size_t tail_bytes)
{
    int error = errno;
    file->length = UINT64_MAX; /* an unknown part of what failed is there */
    if (pki_file_write_at(file->fd, tail, tail_bytes, file->end))
        set_length(file, file->end + tail_bytes);
    errno = error;
}

static bool append_plain(pki_trace_file *file, const char *data, size_t n, const char *tail,
                         size_t tail_bytes)
{
    if (!write_both(file->fd, data, n, tail, tail_bytes, file->end)) {
        put_end_back(file, tail, tail_bytes);
        return false;
    }
    file->end += n;
    set_length(file, file->end + tail_bytes);
    return true;
}

static bool append_gz(pki_trace_file *file, const char *data, size_t n, const char *tail,
                      size_t tail_bytes)
{
    pki_gz_output out;
    if (!pki_gz_append(file->gz, data, n, tail, tail_bytes, &out))
        return false;
    if (!write_both(file->fd, out.body, out.body_bytes, out.end, out.end_bytes, file->end)) {
        int error = errno;
        pki_gz_undo(file->gz);
        if (pki_gz_append(file->gz, "", 0, tail, tail_bytes, &out) && out.body_bytes == 0)
            put_end_back(file, out.end, out.end_bytes);
        errno = error;
        return false;
    }
    pki_gz_keep(file->gz);
    file->end += out.body_bytes;
    set_length(file, file->end + out.end_bytes);
    return true;
}

bool pki_trace_file_append(pki_trace_file *file, const char *data, size_t n, const char *tail,
                           size_t tail_bytes)
{
    return file->gz ? append_gz(file, data, n, tail, tail_bytes)
                    : append_plain(file, data, n, tail, tail_bytes);
}

bool pki_trace_file_create(pki_trace_file *file, const char *path, bool compressed,
                           const char *head, size_t head_bytes, const char *tail, size_t tail_bytes)
{
    char temporary[PATH_MAX];
    *file = (pki_trace_file){.fd = -1};
    if (compressed) {
        file->gz = pki_gz_create();
        if (!file->gz)
            return false;
    }
    file->fd = pki_file_fresh(path, temporary, sizeof temporary);
    if (file->fd >= 0) {
        if (pki_trace_file_append(file, head, head_bytes, tail, tail_bytes) &&
            pki_file_publish(temporary, path))
            return true;
        int error = errno;
        unlink(temporary);
        errno = error;
    }
    int error = errno;
    pki_trace_file_close(file);
    errno = error;
    return false;
}

void pki_trace_file_rewrite_head(pki_trace_file *file, const char *head, size_t n)
{
    if (file->fd >= 0 && !file->gz)
        pki_file_write_at(file->fd, head, n, 0);
}

void pki_trace_file_close(pki_trace_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    pki_gz_destroy(file->gz);
    *file = (pki_trace_file){.fd = -1};
}
