#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/memory.h"

/* ---- what stands in a small file, or at the beginning of a large one ---- */

static size_t read_all(int fd, char *out, size_t size)
{
    struct stat about;
    size_t used = 0;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        return 0;
    for (ssize_t n = 1; n > 0 && used < size - 1; used += (size_t)n)
        if ((n = read(fd, out + used, size - 1 - used)) < 0)
            return 0;
    return used;
}

size_t pki_small_file(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    size_t used = 0;
    if (fd >= 0) {
        used = read_all(fd, out, size);
        close(fd);
    }
    out[used] = 0;
    return used;
}

size_t pki_small_file_in(const char *folder, const char *name, char *out, size_t size)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    out[0] = 0;
    return n > 0 && (size_t)n < sizeof path ? pki_small_file(path, out, size) : 0;
}

/* read: it has come to that. */
static size_t read_once(const char *path, char *out, size_t size, bool *read)
{
    int before = errno;
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    long n = fd >= 0 ? syscall(SYS_read, fd, out, size - 1) : 0;
    if (fd >= 0)
        syscall(SYS_close, fd);
    *read = fd >= 0;
    n = n > 0 ? n : 0;
    out[n] = 0;
    errno = before;
    return (size_t)n;
}

size_t pki_small_file_once(const char *path, char *out, size_t size)
{
    bool read;
    return read_once(path, out, size, &read);
}

static pki_own_reads quiet;

size_t pki_small_file_quiet(const char *path, char *out, size_t size)
{
    bool read;
    size_t n = read_once(path, out, size, &read);
    pki_fetch_add(&quiet.bytes, n);
    pki_fetch_add(&quiet.calls, read);
    return n;
}

pki_own_reads pki_small_file_quiet_so_far(void)
{
    return (pki_own_reads){pki_load(&quiet.bytes), pki_load(&quiet.calls)};
}

bool pki_small_file_field(const char *text, const char *key, char *out, size_t size)
{
    size_t n = strlen(key);
    for (const char *line = text; line && *line;) {
        const char *end = strchr(line, '\n'), *value = line + n;
        if (strncmp(line, key, n) == 0 && (value += strspn(value, " \t")) && *value == ':') {
            value += 1 + strspn(value + 1, " \t");
            snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
            return true;
        }
        line = end ? end + 1 : NULL;
    }
    return false;
}

bool pki_small_file_number(const char *text, const char *key, uint64_t *value)
{
    size_t n = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        if (strncmp(line, key, n) != 0 || !line[n] || !strchr(" \t:", line[n]))
            continue;
        char *end;
        *value = strtoull(line + n + strspn(line + n, " \t:"), &end, 10);
        *value *= strncmp(end, " kB", 3) == 0 ? 1024 : 1;
        return true;
    }
    return false;
}

const char *pki_proc_stat_field(const char *text, int n)
{
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < n; field++)
        at = strchr(at + 1, ' ');
    return at && at[1] ? at + 1 : NULL;
}

/* ---- file descriptors that are known to be ours ---- */

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

/* ---- is descriptor 2 the standard error that the user means? ---- */

typedef struct stream {
    bool closed; /* once is enough */
    dev_t device;
    ino_t inode;
} stream;

static stream streams[STDERR_FILENO + 1];

static bool check_stream(int number, struct stat *file)
{
    *file = (struct stat){.st_ino = 0};
    if (fcntl(number, F_GETFD) < 0)
        pki_store(&streams[number].closed, true);
    else
        fstat(number, file);
    return !pki_load(&streams[number].closed);
}

void pki_standard_check(void)
{
    struct stat file;
    int error = errno;
    for (int number = STDOUT_FILENO; number <= STDERR_FILENO; number++)
        if (check_stream(number, &file)) {
            pki_store(&streams[number].device, file.st_dev);
            pki_store(&streams[number].inode, file.st_ino);
        }
    errno = error;
}

/* Before main can open anything. */
__attribute__((constructor)) static void check_at_load(void)
{
    pki_standard_check();
}

bool pki_standard_is_there(int number)
{
    const stream *s = &streams[number];
    struct stat file;
    if (check_stream(number, &file) &&
        (!pki_own_any_lost() ||
         (file.st_dev == pki_load(&s->device) && file.st_ino == pki_load(&s->inode))))
        return true;
    errno = EBADF;
    return false;
}

/* ---- writing to stderr and other streams, where the user has asked for it ---- */

bool pki_write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t wrote = write(fd, text, n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        text += wrote;
        n -= (size_t)wrote;
    }
    return true;
}

/* SIGPIPE goes to the thread that writes. Blocked, it waits; what waited before is the program's
 * own. */
bool pki_write_stderr(const char *text, size_t n)
{
    sigset_t pipe, before, waiting;
    if (!pki_standard_is_there(STDERR_FILENO))
        return false;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigemptyset(&waiting);
    sigpending(&waiting);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    bool written = pki_write_all(STDERR_FILENO, text, n);
    int error = errno;
    if (!written && error == EPIPE && !sigismember(&waiting, SIGPIPE)) {
        struct timespec none = {0, 0};
        while (sigtimedwait(&pipe, NULL, &none) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return written;
}

/* ---- which commit of a git repository a folder is at, read from its files ---- */

#define PATH 4096
#define LEVELS_MOST 32
#define PACKED_MOST ((size_t)1 << 20) /* bytes of packed-refs */

typedef struct repository {
    char top[PATH], folder[PATH], common[PATH]; /* common: that of all its work trees */
} repository;

static bool join(char out[PATH], const char *folder, const char *name)
{
    int n = name[0] == '/' ? snprintf(out, PATH, "%s", name)
                           : snprintf(out, PATH, "%s/%s", folder, name);
    return n > 0 && n < PATH;
}

static void cut_line(char *text)
{
    text[strcspn(text, "\r\n")] = 0;
}

/* ".git" is a folder, or a file that says where it is. Somebody else's, above a folder that many
 * may write into, is nothing that a report should follow. */
static bool find_folder(repository *r)
{
    struct stat about;
    char path[PATH], text[PATH];
    if (!join(path, r->top, ".git") || stat(path, &about) != 0 || about.st_uid != geteuid())
        return false;
    if (S_ISDIR(about.st_mode))
        return join(r->folder, r->top, ".git");
    if (!pki_small_file(path, text, sizeof text) || strncmp(text, "gitdir: ", 8) != 0)
        return false;
    cut_line(text);
    return join(r->folder, r->top, text + 8);
}

static bool find_repository(const char *folder, repository *r)
{
    char text[PATH];
    if (!realpath(folder, r->top))
        return false;
    for (int level = 0; !find_folder(r); level++) {
        char *slash = strrchr(r->top, '/');
        if (!slash || slash == r->top || level == LEVELS_MOST)
            return false;
        *slash = 0;
    }
    if (!pki_small_file_in(r->folder, "commondir", text, sizeof text))
        return join(r->common, r->folder, ".");
    cut_line(text);
    return join(r->common, r->folder, text);
}

/* ---- the commit ---- */

static bool parse_commit(const char *text, pki_revision *out)
{
    size_t n = strspn(text, "0123456789abcdef");
    if (n != 40 && n != 64)
        return false;
    snprintf(out->commit, sizeof out->commit, "%.*s", (int)n, text);
    return true;
}

/* Lines of "COMMIT NAME". */
static void find_packed(const repository *r, const char *name, pki_revision *out)
{
    char *text = malloc(PACKED_MOST);
    size_t length = strlen(name);
    if (text && pki_small_file_in(r->common, "packed-refs", text, PACKED_MOST))
        for (const char *line = text; line;) {
            const char *blank = line + strcspn(line, " \n"), *end = strchr(line, '\n');
            if (*blank == ' ' && strncmp(blank + 1, name, length) == 0 &&
                (blank[1 + length] == '\n' || blank[1 + length] == 0) && parse_commit(line, out))
                break;
            line = end ? end + 1 : NULL;
        }
    free(text);
}

static void read_commit(const repository *r, pki_revision *out)
{
    char text[PATH], commit[128];
    if (!pki_small_file_in(r->folder, "HEAD", text, sizeof text))
        return;
    cut_line(text);
    if (strncmp(text, "ref: ", 5) != 0) {
        parse_commit(text, out);
        return;
    }
    const char *name = text + 5 + strspn(text + 5, " ");
    bool branch = strncmp(name, "refs/heads/", 11) == 0;
    snprintf(out->branch, sizeof out->branch, "%.127s", branch ? name + 11 : name);
    if (strstr(name, "..") ||
        (pki_small_file_in(r->folder, name, commit, sizeof commit) && parse_commit(commit, out)) ||
        (pki_small_file_in(r->common, name, commit, sizeof commit) && parse_commit(commit, out)))
        return;
    find_packed(r, name, out);
}

void pki_revision_read(const char *folder, pki_revision *out)
{
    repository *r = calloc(1, sizeof *r);
    memset(out, 0, sizeof *out);
    if (r && find_repository(folder, r))
        read_commit(r, out);
    free(r);
}
