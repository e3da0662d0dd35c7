#include "read/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "memory.h"

#define BUFFER (64u * 1024)
#define READ_MOST (1u << 20) /* twice the buffer and more: plain files are not copied once more */

/* Through zlib, which also reads what is not compressed. */
struct source {
    int fd;
    uint64_t size; /* 0 if unknown */
    gzFile gz;
    bool rewindable; /* not a pipe */
};

static void begin(source *s)
{
    s->gz = gzdopen(s->fd, "rb");
    memory_needed(s->gz != NULL);
    gzbuffer(s->gz, BUFFER);
}

static bool check(source *s, complaint *why)
{
    struct stat status;
    if (fstat(s->fd, &status))
        return complaint_set(why, "%s", strerror(errno));
    if (S_ISDIR(status.st_mode))
        return complaint_set(why, "is a directory");
    if (S_ISREG(status.st_mode) && status.st_size == 0)
        return complaint_set(why, "is empty");
    s->size = S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
    s->rewindable = lseek(s->fd, 0, SEEK_SET) == 0;
    return true;
}

static bool open_file(source *s, const char *path, complaint *why)
{
    s->fd = open(strcmp(path, "-") == 0 ? "/dev/stdin" : path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (s->fd < 0)
        return complaint_set(why, "%s", strerror(errno));
    if (!check(s, why)) {
        close(s->fd);
        return false;
    }
    begin(s);
    return true;
}

source *source_open(const char *path, complaint *why)
{
    source *s = memory_zeroed(1, sizeof *s);
    if (open_file(s, path, why))
        return s;
    free(s);
    return NULL;
}

bool source_is_rewindable(const source *s)
{
    return s->rewindable;
}

void source_close(source *s)
{
    if (!s)
        return;
    gzclose_r(s->gz);
    free(s);
}

long source_read(source *s, char *out, size_t size, complaint *why)
{
    int got = gzread(s->gz, out, (unsigned)(size < READ_MOST ? size : READ_MOST));
    int error = Z_OK;
    const char *message = gzerror(s->gz, &error);
    if (got > 0)
        return got;
    if (error == Z_BUF_ERROR || (got == 0 && error == Z_OK))
        return 0;
    complaint_set(why, "%s", error == Z_ERRNO ? strerror(errno) : message);
    return -1;
}

bool source_rewind(source *s)
{
    return s->rewindable && gzrewind(s->gz) == 0;
}

double source_progress(source *s)
{
    return s->size ? (double)gzoffset(s->gz) / (double)s->size : -1;
}
