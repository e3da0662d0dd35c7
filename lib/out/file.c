#include "out/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "out/target.h"

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

int pki_file_fresh(const char *path, mode_t mode, char *temporary, size_t size)
{
    if (!pki_target_is_free(path))
        return -1;
    int n = snprintf(temporary, size, "%s.XXXXXXXX", path);
    if (n < 0 || (size_t)n >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (int i = 0; i < ATTEMPTS; i++) {
        random_letters(temporary + n - 8, 8);
        int fd = pki_fd_open(temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

bool pki_file_publish(const char *temporary, const char *path)
{
    if (pki_target_is_free(path) && rename(temporary, path) == 0)
        return true;
    int error = errno;
    unlink(temporary);
    errno = error;
    return false;
}

bool pki_file_write_at(const pki_owned *own, const char *data, size_t n, uint64_t at)
{
    if (!pki_mem_may_grow(at + n))
        return false;
    while (n > 0) {
        if (!pki_own_check(own))
            return false;
        ssize_t wrote = pwrite(own->fd, data, n, (off_t)at);
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

static bool write_fresh(pki_owned *own, const char *temporary, const char *text, size_t n)
{
    bool written = pki_file_write_at(own, text, n, 0);
    int error = errno;
    pki_own_close(own);
    if (!written)
        unlink(temporary);
    errno = error;
    return written;
}

bool pki_file_put(const char *path, const char *text, size_t n)
{
    char temporary[PATH_MAX];
    pki_owned own;
    return pki_own_adopt(&own, pki_file_fresh(path, PKI_FILE_MODE, temporary, sizeof temporary)) &&
           write_fresh(&own, temporary, text, n) && pki_file_publish(temporary, path);
}

bool pki_file_is_locked(const char *path)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat file;
    if (lstat(path, &file) != 0 || !S_ISREG(file.st_mode))
        return false;
    int fd = pki_fd_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0); /* enough for asking */
    if (fd < 0)
        return false;
    bool locked =
        !pki_mem_is_remote(fd) && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return locked;
}

/* Both pieces at once where the system takes them whole, as it does unless the disk is full. */
static bool write_both(const pki_owned *own, const char *a, size_t an, const char *b, size_t bn,
                       uint64_t at)
{
    struct iovec pieces[2] = {{(void *)(uintptr_t)a, an}, {(void *)(uintptr_t)b, bn}};
    if (!pki_mem_may_grow(at + an + bn) || !pki_own_check(own))
        return false;
    ssize_t wrote = pwritev(own->fd, pieces, 2, (off_t)at);
    if (wrote < 0 && errno != EINTR)
        return false;
    size_t done = wrote < 0 ? 0 : (size_t)wrote;
    size_t in_a = PKI_MIN(done, an);
    return pki_file_write_at(own, a + in_a, an - in_a, at + in_a) &&
           pki_file_write_at(own, b + (done - in_a), bn - (done - in_a), at + done + (an - in_a));
}

/* An end shorter than the one before it leaves something behind. Should cutting fail, readers of
 * JSON complain about what follows the document, and no more is lost than that. */
static void set_length(pki_trace_file *file, uint64_t length)
{
    int error = errno;
    if (length < file->length &&
        (!pki_own_check(&file->own) || ftruncate(file->own.fd, (off_t)length) != 0))
        length = file->length;
    file->length = length;
    errno = error;
}

/* Where the closing brackets stood there are blocks already, so this works on a full disk. */
static void put_end_back(pki_trace_file *file, const char *tail, size_t tail_bytes)
{
    int error = errno;
    file->length = UINT64_MAX; /* an unknown part of what failed is there */
    if (pki_file_write_at(&file->own, tail, tail_bytes, file->end))
        set_length(file, file->end + tail_bytes);
    errno = error;
}

static bool append_plain(pki_trace_file *file, const char *data, size_t n, const char *tail,
                         size_t tail_bytes)
{
    if (!write_both(&file->own, data, n, tail, tail_bytes, file->end)) {
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
    if (!write_both(&file->own, out.body, out.body_bytes, out.end, out.end_bytes, file->end)) {
        int error = errno;
        pki_gz_undo(file->gz);
        if (pki_gz_append(file->gz, "", 0, tail, tail_bytes, &out) && out.body_bytes == 0)
            put_end_back(file, out.end, out.end_bytes);
        errno = error;
        return false;
    }
    pki_gz_commit(file->gz);
    file->end += out.body_bytes;
    set_length(file, file->end + out.end_bytes);
    return true;
}

bool pki_trace_file_append(pki_trace_file *file, const char *data, size_t n, const char *tail,
                           size_t tail_bytes)
{
    if (!pki_own_check(&file->own))
        return false;
    return file->gz ? append_gz(file, data, n, tail, tail_bytes)
                    : append_plain(file, data, n, tail, tail_bytes);
}

/* Before anybody can find it. Not all file systems have locks, and one behind a network may keep us
 * waiting for them. */
static void lock(const pki_owned *own)
{
    if (!pki_mem_is_remote(own->fd))
        (void)pki_own_lock(own);
}

static bool close_failed(pki_trace_file *file)
{
    int error = errno;
    pki_trace_file_close(file);
    errno = error;
    return false;
}

bool pki_trace_file_begin(pki_trace_file *file, const char *path, bool compressed, const char *head,
                          size_t head_bytes, const char *tail, size_t tail_bytes, char *temporary)
{
    *file = PKI_TRACE_FILE_NONE;
    if (compressed) {
        file->gz = pki_gz_create();
        if (!file->gz)
            return false;
    }
    if (!pki_own_adopt(&file->own, pki_file_fresh(path, PKI_FILE_MODE, temporary, PATH_MAX)))
        return close_failed(file);
    lock(&file->own);
    if (pki_trace_file_append(file, head, head_bytes, tail, tail_bytes))
        return true;
    int error = errno;
    unlink(temporary);
    errno = error;
    return close_failed(file);
}

bool pki_trace_file_create(pki_trace_file *file, const char *path, bool compressed,
                           const char *head, size_t head_bytes, const char *tail, size_t tail_bytes)
{
    char temporary[PATH_MAX];
    return pki_trace_file_begin(file, path, compressed, head, head_bytes, tail, tail_bytes,
                                temporary) &&
           (pki_file_publish(temporary, path) || close_failed(file));
}

void pki_trace_file_rewrite_head(pki_trace_file *file, const char *head, size_t n)
{
    if (!file->gz)
        pki_file_write_at(&file->own, head, n, 0);
}

pki_trace_location pki_trace_file_location(const pki_trace_file *file, const char *path)
{
    struct stat ours;
    int error = errno;
    bool known = pki_own_check(&file->own) && fstat(file->own.fd, &ours) == 0;
    bool named = known && pki_own_is_at(&file->own, path);
    errno = error;
    if (!known || named)
        return PKI_TRACE_THERE; /* a descriptor that is not ours any more says so by itself */
    return ours.st_nlink ? PKI_TRACE_MOVED : PKI_TRACE_GONE;
}

void pki_trace_file_close(pki_trace_file *file)
{
    pki_own_close(&file->own);
    pki_gz_destroy(file->gz);
    *file = PKI_TRACE_FILE_NONE;
}
