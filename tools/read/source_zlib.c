/* tools/read/source_zlib.c - source.h with zlib, which also reads what is not compressed. */
#include "read/source_twin.h"

#include "memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define BUFFER (64u * 1024)
#define READ_MOST (1u << 20) /* twice the buffer and more: plain files are not copied once more */

void source_begin(source *s)
{
    s->gz = gzdopen(s->fd, "rb");
    memory_needed(s->gz != NULL);
    gzbuffer(s->gz, BUFFER);
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
