#include "session/captures/capture_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "out/file.h"
#include "session/captures/capture_tail.h"

#define BUFFER_BYTES ((size_t)256 << 10)

typedef struct output {
    pki_capture_job *job;
    pki_trace_file file;
    char *buffer;
    size_t used;
    size_t tail; /* bytes behind the events */
    bool failed;
} output;

static bool flush(output *o)
{
    o->failed = o->failed || !pki_trace_file_append(&o->file, o->buffer, o->used, PKI_CHROME_TAIL,
                                                    sizeof PKI_CHROME_TAIL - 1);
    o->used = 0;
    return !o->failed;
}

/* False: no more of it. Compressed text is never much longer than what it is made of. */
static bool put_event(void *user, const char *event, size_t n)
{
    output *o = user;
    if (o->file.length + o->used + n + o->tail > o->job->most_bytes) {
        o->job->full = true;
        return false;
    }
    if (BUFFER_BYTES - o->used < n && !flush(o))
        return false;
    memcpy(o->buffer + o->used, event, n);
    o->used += n;
    return true;
}

/* ---- the file ---- */

static bool write_events(output *o)
{
    pki_capture_job *job = o->job;
    pki_history_format(&job->view, &job->range, &job->chrome, put_event, o, &job->events);
    return flush(o);
}

/* Whether all events found room is known behind them, and the longer word. */
static bool measure_tail(output *o)
{
    char *tail = pki_capture_tail(o->job, &o->tail);
    free(tail);
    return tail;
}

static bool write_tail(output *o)
{
    size_t n = 0;
    char *tail = pki_capture_tail(o->job, &n);
    bool done = tail && pki_trace_file_append(&o->file, "", 0, tail, n);
    free(tail);
    return done;
}

bool pki_capture_file_write(pki_capture_job *job)
{
    output o = {.job = job, .buffer = malloc(BUFFER_BYTES)};
    if (!o.buffer || !measure_tail(&o) ||
        !pki_trace_file_begin(&o.file, job->path, job->compressed, job->head, job->head_bytes,
                              PKI_CHROME_TAIL, sizeof PKI_CHROME_TAIL - 1, job->part)) {
        free(o.buffer);
        return false;
    }
    bool written = write_events(&o) && write_tail(&o);
    int error = errno;
    job->bytes = o.file.length;
    pki_trace_file_close(&o.file);
    if (!written)
        unlink(job->part);
    free(o.buffer);
    errno = error;
    return written;
}
