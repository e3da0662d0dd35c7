#include "session/capture_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/text.h"
#include "out/file.h"

#define BUFFER_BYTES ((size_t)256 << 10)
#define TAIL_BYTES ((size_t)24 << 10) /* no tail is longer */

typedef struct output {
    pki_capture_job *job;
    pki_trace_file file;
    char *buffer;
    size_t used;
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
    if (o->file.length + o->used + n + TAIL_BYTES > o->job->most_bytes) {
        o->job->full = true;
        return false;
    }
    if (BUFFER_BYTES - o->used < n && !flush(o))
        return false;
    memcpy(o->buffer + o->used, event, n);
    o->used += n;
    return true;
}

/* ---- behind the events: what it is, and the steps around it ---- */

typedef struct writer {
    char *at, *end;
} writer;

static PKI_PRINTF(2, 3) void put(writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->at, (size_t)(w->end - w->at), format, args);
    va_end(args);
    if (n > 0)
        w->at += PKI_MIN(n, w->end - w->at - 1);
}

static void put_text(writer *w, const char *key, const char *text, size_t n)
{
    char escaped[6 * 255 + 1];
    pki_json_escape(escaped, sizeof escaped, text, PKI_MIN(n, (size_t)255));
    put(w, "\"%s\":\"%s\"", key, escaped);
}

static uint64_t ns_of(const pki_capture_job *job, uint64_t ticks)
{
    return pki_clock_ns(&job->clock, ticks);
}

static void put_step(writer *w, const pki_capture_job *job, const pki_history_step *s)
{
    uint64_t start = ns_of(job, s->start), end = ns_of(job, s->start + s->ticks);
    pki_chrome_name kind = {.name = ""};
    if (s->kind)
        kind = job->chrome.names(job->chrome.user, s->kind);
    put(w, "{\"step\":%" PRIu64 ",\"start_ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64 ",", s->number,
        start, end - start);
    put(w, "\"items\":%" PRIu64 ",", s->items);
    put_text(w, "kind", kind.name, kind.length);
    put(w, "}");
}

static bool is_measured(const pki_history_range *range, uint64_t start, uint64_t end)
{
    for (unsigned i = 0; i < range->measured_count; i++)
        if (range->measured[i].from <= start && range->measured[i].until >= end)
            return true;
    return false;
}

static void put_kernels(writer *w, const pki_capture_job *job)
{
    const char *between = "";
    put(w, "\"kernels\":[");
    for (unsigned i = 0; i < job->around_count; i++) {
        const pki_history_step *s = &job->around[i];
        if (s->number < job->wish.first ||
            !is_measured(&job->range, ns_of(job, s->start), ns_of(job, s->start + s->ticks)))
            continue;
        put(w, "%s%" PRIu64, between, s->number);
        between = ",";
    }
    put(w, "],");
}

/* Of what there was at that moment: the last step that had ended. */
static uint64_t last_of(const pki_capture_job *job)
{
    bool whole = job->wish.last != UINT64_MAX;
    if (!whole && job->around_count)
        return job->around[job->around_count - 1].number;
    return whole ? job->wish.last : job->wish.first;
}

static size_t put_tail(const pki_capture_job *job, char tail[TAIL_BYTES])
{
    writer w = {tail, tail + TAIL_BYTES};
    const pki_wish *wish = &job->wish;
    put(&w, "\n],\n\"perfkitCapture\":{\"reason\":\"%s\",", pki_capture_reason_name(wish->reason));
    put_text(&w, "text", wish->text, strlen(wish->text));
    put(&w, ",\"first\":%" PRIu64 ",\"last\":%" PRIu64, wish->first, last_of(job));
    if (wish->reason == PKI_CAPTURE_SLOW)
        put(&w, ",\"slow_step\":%" PRIu64 ",\"slow_ns\":%" PRIu64 ",\"median_ns\":%" PRIu64,
            wish->slow_step, wish->slow_ns, wish->median_ns);
    put(&w,
        ",\"cut\":%s,\"beginning_gone\":%s,\"full\":%s,\"records_lost\":%" PRIu64
        ",\"refused\":%" PRIu64 ",",
        wish->cut ? "true" : "false", job->beginning_gone ? "true" : "false",
        job->full ? "true" : "false", job->lost, job->refused);
    put_kernels(&w, job);
    put(&w, "\"steps\":[");
    for (unsigned i = 0; i < job->around_count; i++) {
        put(&w, "%s", i ? ",\n" : "");
        put_step(&w, job, &job->around[i]);
    }
    put(&w, "]}}\n");
    return (size_t)(w.at - tail);
}

/* ---- the file ---- */

static bool write_events(output *o)
{
    pki_capture_job *job = o->job;
    pki_history_format(&job->view, &job->range, &job->chrome, put_event, o, &job->events);
    return flush(o);
}

static bool write_tail(output *o)
{
    char *tail = malloc(TAIL_BYTES);
    size_t n = tail ? put_tail(o->job, tail) : 0;
    bool done = tail && pki_trace_file_append(&o->file, "", 0, tail, n);
    free(tail);
    return done;
}

bool pki_capture_file_write(pki_capture_job *job)
{
    output o = {.job = job, .buffer = malloc(BUFFER_BYTES)};
    if (!o.buffer ||
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
