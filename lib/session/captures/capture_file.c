#include "session/captures/capture_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/text.h"
#include "capture/capture.h"
#include "history/format.h"
#include "measure/shape.h"
#include "out/file.h"
#include "out/json_write.h"
#include "session/report/run.h"

/* ---- names of captures: a pattern in which %s is the first step and %% a % ---- */

typedef struct writer {
    char *at, *end;
    bool full;
} writer;

static void put(writer *w, const char *text, size_t n)
{
    w->full = w->full || n >= (size_t)(w->end - w->at);
    if (w->full)
        return;
    memcpy(w->at, text, n);
    w->at += n;
    *w->at = 0;
}

static writer write_to(char out[PATH_MAX])
{
    *out = 0;
    return (writer){out, out + PATH_MAX, false};
}

/* A plain name as a pattern of itself. */
static void put_plain(writer *w, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(w, text[i] == '%' ? "%%" : &text[i], text[i] == '%' ? 2 : 1);
}

bool pki_capture_path_prepare(const char *path, char out[PATH_MAX])
{
    writer w = write_to(out);
    for (; *path; path++) {
        bool field = path[0] == '%' && (path[1] == 's' || path[1] == '%');
        if (!field)
            put(&w, path, 1);
        else if (*++path == 's')
            put(&w, "%%s", 3);
        else
            put(&w, "%%%%", 4);
    }
    return !w.full;
}

bool pki_capture_path_is_one(const char *pattern)
{
    for (; *pattern; pattern++)
        if (*pattern == '%' && *++pattern == 's')
            return true;
    return false;
}

static const char *ending_of(const char *path)
{
    const char *name = pki_base_name(path);
    const char *ending =
        pki_ends_with(name, ".json.gz") ? path + strlen(path) - 8 : strrchr(name, '.');
    return ending && ending > name ? ending : path + strlen(path);
}

bool pki_capture_path_derive(const char *trace, char out[PATH_MAX])
{
    writer w = write_to(out);
    const char *ending = ending_of(trace);
    put_plain(&w, trace, (size_t)(ending - trace));
    put(&w, "-%s", 3);
    put_plain(&w, ending, strlen(ending));
    return !w.full;
}

bool pki_capture_path_expand(const char *pattern, const char *step, char out[PATH_MAX])
{
    writer w = write_to(out);
    for (; *pattern; pattern++) {
        bool field = pattern[0] == '%' && (pattern[1] == 's' || pattern[1] == '%');
        if (!field)
            put(&w, pattern, 1);
        else if (*++pattern == 's')
            put(&w, step, strlen(step));
        else
            put(&w, "%", 1);
    }
    return !w.full;
}

void pki_capture_path_anchor(char pattern[PATH_MAX])
{
    char folder[PATH_MAX], whole[PATH_MAX];
    if (!pattern[0] || pattern[0] == '/' || !getcwd(folder, sizeof folder))
        return;
    writer w = write_to(whole);
    put_plain(&w, folder, strlen(folder));
    put(&w, "/", 1);
    put(&w, pattern, strlen(pattern));
    if (!w.full)
        memcpy(pattern, whole, (size_t)(w.at - whole) + 1);
}

/* ---- what stands behind a capture's events ---- */

/* "perfkitCapture" (docs/internals/trace-format.md): what it is of, the steps around, and the
 * machine and build. */

static uint64_t ns_of(const pki_capture_job *job, uint64_t ticks)
{
    return pki_clock_ns(&job->clock, ticks);
}

static void put_step(pki_json *j, const pki_capture_job *job, const pki_history_step *s)
{
    uint64_t start = ns_of(job, s->start), end = ns_of(job, s->start + s->ticks);
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_uint(j, "step", s->number);
    pki_json_uint(j, "start_ns", start);
    pki_json_uint(j, "duration_ns", end - start);
    pki_json_uint(j, "items", s->items);
    pki_json_text(j, "kind", s->kind ? job->chrome.names(job->chrome.user, s->kind).name : "");
    pki_json_close(j, '}');
}

static void put_steps(pki_json *j, const pki_capture_job *job)
{
    pki_json_open(j, "steps", '[');
    for (unsigned i = 0; i < job->around_count; i++)
        put_step(j, job, &job->around[i]);
    pki_json_close(j, ']');
}

static bool is_measured(const pki_capture_job *job, const pki_history_step *s)
{
    uint64_t start = ns_of(job, s->start), end = ns_of(job, s->start + s->ticks);
    for (unsigned i = 0; i < job->range.measured_count; i++)
        if (job->range.measured[i].from <= start && job->range.measured[i].until >= end)
            return true;
    return false;
}

/* Its patience was over before CUPTI had given all of it. */
static bool is_late(const pki_capture_job *job, const pki_history_step *s)
{
    return is_measured(job, s) && ns_of(job, s->start + s->ticks) > job->devices_until;
}

static uint64_t count_late(const pki_capture_job *job)
{
    uint64_t late = 0;
    for (unsigned i = 0; i < job->around_count; i++)
        late += job->around[i].number >= job->wish.first && is_late(job, &job->around[i]);
    return late;
}

static void put_kernels(pki_json *j, const pki_capture_job *job)
{
    pki_json_open(j, "kernels", '[');
    for (unsigned i = 0; i < job->around_count; i++) {
        const pki_history_step *s = &job->around[i];
        if (s->number >= job->wish.first && is_measured(job, s) && !is_late(job, s))
            pki_json_uint(j, NULL, s->number);
    }
    pki_json_close(j, ']');
}

/* Of what there was at that moment: the last step that had ended. */
static uint64_t last_of(const pki_capture_job *job)
{
    bool whole = job->wish.last != UINT64_MAX;
    if (!whole && job->around_count)
        return job->around[job->around_count - 1].number;
    return whole ? job->wish.last : job->wish.first;
}

static void put_wish(pki_json *j, const pki_capture_job *job)
{
    const pki_wish *wish = &job->wish;
    pki_json_text(j, "reason", pki_capture_reason_name(wish->reason));
    pki_json_text(j, "text", wish->text);
    pki_json_uint(j, "first", wish->first);
    pki_json_uint(j, "last", last_of(job));
    if (wish->reason != PKI_CAPTURE_SLOW)
        return;
    pki_json_uint(j, "slow_step", wish->slow_step);
    pki_json_uint(j, "slow_ns", wish->slow_ns);
    pki_json_uint(j, "median_ns", wish->median_ns);
}

static void put_missing(pki_json *j, const pki_capture_job *job)
{
    pki_json_bool(j, "cut", job->wish.cut);
    pki_json_bool(j, "beginning_gone", job->beginning_gone);
    pki_json_bool(j, "full", job->full);
    pki_json_uint(j, "records_lost", job->lost);
    pki_json_uint(j, "refused", job->refused);
    pki_json_uint(j, "kernels_late", count_late(job));
}

static void put_tail(const pki_capture_job *job, FILE *file)
{
    pki_json j = {.file = file, .rows = true};
    fputs("\n],\n\"perfkitCapture\":", file);
    pki_json_open(&j, NULL, '{');
    put_wish(&j, job);
    put_missing(&j, job);
    put_kernels(&j, job);
    put_steps(&j, job);
    if (job->environment && job->environment->memory)
        pki_json_object(&j, "environment", &pki_environment_shape, job->environment);
    pki_json_close(&j, '}');
    fputs("}\n", file);
}

static bool write_tail(const pki_capture_job *job, char **text, size_t *bytes)
{
    FILE *memory = open_memstream(text, bytes);
    if (!memory)
        return false;
    put_tail(job, memory);
    bool whole = !ferror(memory);
    return fclose(memory) == 0 && whole;
}

/* Closes the document; to be freed. NULL without memory. */
static char *pki_capture_tail(const pki_capture_job *job, size_t *bytes)
{
    pki_plain plain;
    char *text = NULL;
    if (!pki_plain_enter(&plain))
        return NULL;
    bool whole = write_tail(job, &text, bytes);
    pki_plain_leave(&plain);
    if (whole)
        return text;
    free(text);
    return NULL;
}

/* ---- a capture: some steps of the history as a trace of their own ---- */

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

static bool capture_file_write_tail(output *o)
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
    bool written = write_events(&o) && capture_file_write_tail(&o);
    int error = errno;
    job->bytes = o.file.length;
    pki_trace_file_close(&o.file);
    if (!written)
        unlink(job->part);
    free(o.buffer);
    errno = error;
    return written;
}
