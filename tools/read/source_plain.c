/* tools/read/source_plain.c - source.h without zlib. */
#include "read/source_twin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void source_begin(source *s)
{
    s->position = 0;
}

void source_close(source *s)
{
    if (!s)
        return;
    close(s->fd);
    free(s);
}

long source_read(source *s, char *out, size_t size, complaint *why)
{
    ssize_t got;
    do
        got = read(s->fd, out, size);
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

bool source_rewind(source *s)
{
    s->position = 0;
    return s->rewindable && lseek(s->fd, 0, SEEK_SET) == 0;
}

double source_progress(source *s)
{
    return s->size ? (double)s->position / (double)s->size : -1;
}
