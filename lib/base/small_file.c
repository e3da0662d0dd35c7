#include "base/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"

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
