#include "out/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "base/text.h"

/* ---- target ---- */

typedef enum kind { FREE, FOLDER, LINK, DESCRIPTOR, NOTHING, DEVICE, PIPE, SOCKET } kind;

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Where it leads; "" if that cannot be read. */
static void read_link(const char *path, char *target, size_t size)
{
    ssize_t n = readlink(path, target, size - 1);
    target[n > 0 ? n : 0] = '\0';
}

/* What a link in /proc leads to is open in a process, and seldom a file: /proc/self/fd/1, and
 * /dev/stdout, which leads there. */
static kind kind_of_link(const char *path, const char *target)
{
    bool open = begins_with(path, "/proc/") || begins_with(path, "/dev/fd/") ||
                begins_with(target, "/proc/");
    return open ? DESCRIPTOR : LINK;
}

static kind kind_of(const char *path, char *target, size_t size)
{
    struct stat there;
    target[0] = '\0';
    if (lstat(path, &there) != 0 || S_ISREG(there.st_mode))
        return FREE;
    if (S_ISDIR(there.st_mode))
        return FOLDER;
    if (S_ISLNK(there.st_mode)) {
        read_link(path, target, size);
        return kind_of_link(path, target);
    }
    if (S_ISCHR(there.st_mode) && there.st_rdev == makedev(1, 3))
        return NOTHING;
    return S_ISFIFO(there.st_mode) ? PIPE : S_ISSOCK(there.st_mode) ? SOCKET : DEVICE;
}

bool pki_target_is_free(const char *path)
{
    static const int errors[] = {[FOLDER] = EISDIR, [LINK] = ELOOP, [DESCRIPTOR] = ELOOP};
    char target[2];
    int before = errno;
    kind what = kind_of(path, target, sizeof target);
    errno = before;
    if (what == FREE)
        return true;
    errno = what <= DESCRIPTOR ? errors[what] : EEXIST;
    return false;
}

static const char *name_of(kind what)
{
    static const char *const names[] = {
        [FOLDER] = "a directory",
        [LINK] = "a symbolic link",
        [DESCRIPTOR] = "a link to what a process has open",
        [NOTHING] = "the null device",
        [DEVICE] = "a device",
        [PIPE] = "a named pipe",
        [SOCKET] = "a socket",
    };
    return names[what];
}

static void describe(pki_target_text *words, kind what, const char *target,
                     const pki_target_hints *hints)
{
    const char *instead = what == NOTHING ? hints->nothing : NULL;
    bool streams = what == DESCRIPTOR || what == DEVICE || what == PIPE || what == SOCKET;
    if (what == LINK)
        snprintf(words->text, sizeof words->text,
                 "is a symbolic link (to %.120s): name the file itself", target);
    else if (instead)
        snprintf(words->text, sizeof words->text, "is %s: %s", name_of(what), instead);
    else
        snprintf(words->text, sizeof words->text, "is %s: name a file%s%s%s", name_of(what),
                 what == FOLDER ? " in it" : "", streams && hints->stream ? ", or " : "",
                 streams && hints->stream ? hints->stream : "");
}

pki_target_text pki_target_why(const char *path, int error, const pki_target_hints *hints)
{
    static const pki_target_hints none = {NULL, NULL};
    pki_target_text words;
    char target[128];
    int before = errno;
    kind what = kind_of(path, target, sizeof target);
    if (what == FREE)
        snprintf(words.text, sizeof words.text, "%s", strerror(error));
    else
        describe(&words, what, target, hints ? hints : &none);
    errno = before;
    return words;
}

/* ---- what the files of a trace are called that is cut into several ---- */

#define PART ".part"

/* Where its ending begins, ".json.gz" or ".json"; behind the name if it has none. A part's number
 * is none. */
static const char *ending_of(const char *path)
{
    const char *name = pki_base_name(path);
    const char *gz = pki_ends_with(name, ".json.gz") ? name + strlen(name) - 8 : NULL;
    const char *dot = gz ? gz : strrchr(name, '.');
    bool has = dot && dot > name && (gz || strncmp(dot, PART, sizeof PART - 1) != 0);
    return has ? dot : name + strlen(name);
}

bool pki_part_name(const char *path, uint32_t part, char name[PATH_MAX])
{
    const char *ending = ending_of(path);
    int n = snprintf(name, PATH_MAX, "%.*s" PART "%u%s", (int)(ending - path), path, part, ending);
    return n > 0 && n < PATH_MAX;
}

/* Digits without a zero in front, up to that place. */
static uint32_t number_of(const char *digits, const char *until)
{
    uint64_t number = 0;
    if (digits >= until || *digits == '0')
        return 0;
    for (; digits < until; digits++) {
        if (*digits < '0' || *digits > '9' || number > UINT32_MAX / 10)
            return 0;
        number = number * 10 + (uint64_t)(*digits - '0');
    }
    return number <= UINT32_MAX ? (uint32_t)number : 0;
}

uint32_t pki_part_of(const char *name, const char *of)
{
    const char *ending = ending_of(of), *end = ending_of(name);
    size_t before = (size_t)(ending - of);
    if (strncmp(name, of, before) != 0 || strncmp(name + before, PART, sizeof PART - 1) != 0 ||
        strcmp(end, ending) != 0)
        return 0;
    return number_of(name + before + sizeof PART - 1, end);
}

bool pki_part_is_one(const char *path)
{
    const char *end = ending_of(path), *digits = end;
    while (digits > path && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    size_t n = sizeof PART - 1;
    return digits < end && (size_t)(digits - path) > n && memcmp(digits - n, PART, n) == 0;
}

/* ---- files that others read while we write them ---- */

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

/* ---- a file of lines that never ends, in a bounded number of parts ---- */

bool pki_rolling_part(const char *path, unsigned part, char name[PATH_MAX])
{
    return snprintf(name, PATH_MAX, "%s.%u", path, part) < PATH_MAX;
}

static bool begin(pki_rolling *r)
{
    r->open = pki_trace_file_create(&r->file, r->path, r->compressed, "", 0, "", 0);
    return r->open;
}

static bool holds_any(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0;
}

/* For 0 the name itself. */
static bool part_of(const char *path, unsigned part, char name[PATH_MAX])
{
    return part ? pki_rolling_part(path, part, name)
                : snprintf(name, PATH_MAX, "%s", path) < PATH_MAX;
}

void pki_rolling_keep(const char *path)
{
    char prev[PATH_MAX], from[PATH_MAX], to[PATH_MAX];
    bool any = false;
    if (snprintf(prev, sizeof prev, "%s.prev", path) >= (int)sizeof prev)
        return;
    for (unsigned part = 0; part < PKI_ROLLING_PARTS; part++)
        any = any || (part_of(path, part, from) && holds_any(from));
    for (unsigned part = 0; any && part < PKI_ROLLING_PARTS; part++) {
        if (!part_of(path, part, from) || !part_of(prev, part, to) || !pki_target_is_free(to))
            continue;
        if (holds_any(from))
            rename(from, to);
        else
            unlink(to); /* of a run before that one */
    }
}

bool pki_rolling_open(pki_rolling *r, const char *path, bool compressed, uint64_t most_bytes)
{
    r->compressed = compressed;
    r->part_bytes = most_bytes / PKI_ROLLING_PARTS;
    r->file = PKI_TRACE_FILE_NONE;
    if (r->path != path)
        snprintf(r->path, sizeof r->path, "%s", path);
    return begin(r);
}

/* Whatever cannot be renamed stays, and is replaced. */
static void shift_parts(const pki_rolling *r)
{
    char from[PATH_MAX], to[PATH_MAX];
    for (unsigned part = PKI_ROLLING_PARTS - 1; part > 0; part--) {
        bool named = pki_rolling_part(r->path, part, to) &&
                     (part > 1 ? pki_rolling_part(r->path, part - 1, from)
                               : snprintf(from, sizeof from, "%s", r->path) > 0);
        if (named)
            rename(from, to);
    }
}

static bool is_elsewhere(const pki_rolling *r)
{
    return pki_trace_file_location(&r->file, r->path) != PKI_TRACE_THERE;
}

/* Sees to it that the file is where it belongs, and has room. */
static bool prepare(pki_rolling *r, size_t n)
{
    if (r->open && is_elsewhere(r))
        pki_rolling_close(r);
    if (r->open && r->file.length && r->file.length + n > r->part_bytes) {
        pki_rolling_close(r);
        shift_parts(r);
    }
    return r->open || begin(r);
}

bool pki_rolling_append(pki_rolling *r, const char *lines, size_t n)
{
    if (n > r->part_bytes) {
        errno = EFBIG;
        return false;
    }
    if (prepare(r, n) && pki_trace_file_append(&r->file, lines, n, "", 0))
        return true;
    if (errno == EBADF)
        pki_rolling_close(r); /* its descriptor is not ours any more: a new file, next time */
    return false;
}

void pki_rolling_close(pki_rolling *r)
{
    if (r->open)
        pki_trace_file_close(&r->file);
    r->open = false;
}
