/* tools/read/source_zlib.c - source.h with zlib, which also reads what is not compressed. */
#include "read/source.h"
#include "read/source_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define BUFFER (128u * 1024)
#define READ_MOST (1u << 20) /* twice the buffer and more: plain files are not copied once more */

struct source {
    source_file file;
    gzFile gz;
    bool cut;
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
    s->gz = gzdopen(s->file.fd, "rb");
    if (!s->gz) {
        complaint_set(why, "out of memory");
        close(s->file.fd);
        free(s);
        return NULL;
    }
    gzbuffer(s->gz, BUFFER);
    return s;
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
    if (error == Z_BUF_ERROR || (got == 0 && error == Z_OK)) {
        s->cut = error == Z_BUF_ERROR;
        return 0;
    }
    complaint_set(why, "%s", error == Z_ERRNO ? strerror(errno) : message);
    return -1;
}

bool source_is_cut(const source *s)
{
    return s->cut;
}

bool source_is_rewindable(const source *s)
{
    return s->file.rewindable;
}

bool source_rewind(source *s)
{
    s->cut = false;
    return s->file.rewindable && gzrewind(s->gz) == 0;
}

double source_progress(source *s)
{
    return s->file.size ? (double)gzoffset(s->gz) / (double)s->file.size : -1;
}
