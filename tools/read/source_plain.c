/* tools/read/source_plain.c - source.h without zlib. */
#include "read/source.h"
#include "read/source_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct source {
    source_file file;
    uint64_t position;
};

source *source_open(const char *path, complaint *why)
{
    source *s = calloc(1, sizeof *s);
    if (!s) {
        complaint_set(why, "out of memory");
        return NULL;
    }
    if (!source_file_open(&s->file, path, why)) {
        free(s);
        return NULL;
    }
    return s;
}

void source_close(source *s)
{
    if (!s)
        return;
    close(s->file.fd);
    free(s);
}

long source_read(source *s, char *out, size_t size, complaint *why)
{
    ssize_t got;
    do
        got = read(s->file.fd, out, size);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        complaint_set(why, "%s", strerror(errno));
        return -1;
    }
    if (s->position == 0 && got > 1 && memcmp(out, "\x1f\x8b", 2) == 0) {
        complaint_set(why, "is compressed, and this pk was built without zlib");
        return -1;
    }
    s->position += (uint64_t)got;
    return got;
}

bool source_is_cut(const source *s)
{
    (void)s;
    return false;
}

bool source_is_rewindable(const source *s)
{
    return s->file.rewindable;
}

bool source_rewind(source *s)
{
    s->position = 0;
    return s->file.rewindable && lseek(s->file.fd, 0, SEEK_SET) == 0;
}

double source_progress(source *s)
{
    return s->file.size ? (double)s->position / (double)s->file.size : -1;
}
