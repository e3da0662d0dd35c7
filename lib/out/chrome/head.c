/* lib/out/chrome/head.c - what stands before the first event, and who the tracks are. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "out/chrome/chrome.h"
#include "out/emit.h"

#define STEP_TRACK 4294967294u
#define FIGURE_WIDTH 20 /* digits of the largest uint64_t */

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

static void put_text(writer *w, const char *key, const char *value)
{
    char escaped[6 * 256 + 1];
    pki_json_escape(escaped, sizeof escaped, value, strnlen(value, 256));
    put(w, "\"%s\":\"%s\",", key, escaped);
}

/* A figure of any size takes the same room: JSON allows blanks before it. */
static void put_count(writer *w, const char *key, uint64_t value, const char *after)
{
    put(w, "\"%s\":%*" PRIu64 "%s", key, FIGURE_WIDTH, value, after);
}

/* In the clock of a damaged arena a figure may be none. */
static void put_figure(writer *w, const char *key, double value)
{
    char digits[32];
    char *end = isfinite(value) ? pki_put_double(digits, value) : PKI_PUT(digits, "null");
    size_t n = (size_t)(end - digits);
    put(w, "\"%s\":%*.*s,", key, 25, (int)n, digits);
}

static void put_clock(writer *w, const pki_chrome_run *run)
{
    put(w, "\"clock\":{");
    put_text(w, "source", run->clock_name);
    put_text(w, "id", run->clock_id ? run->clock_id : "");
    put_figure(w, "hz", run->clock_hz);
    put_figure(w, "step_ns", run->clock_step_ns);
    put_figure(w, "uncertainty_ns", run->clock_uncertainty_ns);
    put_figure(w, "drift_ppm", run->clock_ppm);
    put_count(w, "base_monotonic_ns", run->base_ns, "},");
}

static void put_counts(writer *w, const pk_counts *c)
{
    put(w, "\"counts\":{");
    put_count(w, "begun", c->begun, ",");
    put_count(w, "recorded", c->recorded, ",");
    put_count(w, "written", c->written, ",");
    put_count(w, "dropped", c->dropped, ",");
    put_count(w, "unbalanced", c->unbalanced, ",");
    put_count(w, "too_deep", c->too_deep, ",");
    put_count(w, "stray_ends", c->stray_ends, ",");
    put_count(w, "points", c->points, ",");
    put_count(w, "points_dropped", c->points_dropped, ",");
    put_count(w, "not_finite", c->not_finite, ",");
    put_count(w, "unwritten", c->unwritten, ",");
    put_count(w, "threads", c->threads, ",");
    put_count(w, "regions", c->regions, ",");
    put_count(w, "steps", c->steps, "},");
}

static void put_toll(writer *w, const pki_toll *t)
{
    put_count(w, "cpu_ns", t->process, ",");
    put(w, "\"overhead\":{");
    put_figure(w, "region_ns", t->region_ns);
    put_count(w, "collector_ns", t->collector, ",");
    put_count(w, "callers_ns", t->callers, ",");
    put_count(w, "captures_ns", t->captures, ",");
    put_count(w, "readings_ns", t->readings, ",");
    put_count(w, "backends_ns", t->backends, "},");
    put(w, "\"stepping_thread\":{");
    put_count(w, "observed_ns", t->stepper.observed, ",");
    put_count(w, "running_ns", t->stepper.running, ",");
    put_count(w, "ready_ns", t->stepper.ready, "}");
}

static void put_metadata(writer *w, const pki_chrome *c, const pki_chrome_run *run)
{
    put(w, "\"metadata\":{\"perfkit\":\"%s\",", pk_version());
    put_text(w, "host", run->host);
    put_text(w, "program", run->program);
    put(w, "\"pid\":%" PRIu32 ",\"rank\": %" PRId32 ",\"world_size\":%" PRId32 ",", c->pid,
        run->rank, run->world_size);
    put(w, "\"local_rank\":%" PRId32 ",\"local_size\":%" PRId32 ",\"node\":%" PRId32 ",",
        run->local_rank, run->local_size, run->node);
    put_text(w, "job", run->job ? run->job : "");
    put(w, "\"start_unix_ns\":%" PRIu64 ",", run->start_unix);
    put(w, "\"complete\":%s,", run->complete ? "true " : "false");
    put_clock(w, run);
    put_counts(w, &run->counts);
    put_toll(w, &run->toll);
    put(w, "},");
}

/* The first event has no cat: so speedscope never takes the file for a CPU profile. All others have
 * one, since catapult's streaming reader passes over events without. */
static void put_process(writer *w, const pki_chrome *c, const pki_chrome_run *run)
{
    char program[6 * 128 + 1], host[6 * 64 + 1];
    pki_json_escape(program, sizeof program, run->program, strnlen(run->program, 128));
    pki_json_escape(host, sizeof host, run->host, strnlen(run->host, 64));
    put(w,
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
        ",\"ts\":0.000,\"args\":{\"name\":\"%s\"}}",
        c->pid, c->pid, program);
    put(w,
        ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"process_labels\",\"pid\":%" PRIu32
        ",\"tid\":%" PRIu32 ",\"ts\":0.000,\"args\":{\"labels\":\"rank %" PRId32 ", %s\"}}",
        c->pid, c->pid, run->rank, host);
    put(w,
        ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"process_sort_index\",\"pid\":%" PRIu32
        ",\"tid\":%" PRIu32 ",\"ts\":0.000,\"args\":{\"sort_index\":%" PRId32 "}}",
        c->pid, c->pid, run->rank);
}

static void put_track(writer *w, uint32_t pid, uint32_t tid, const char *name, uint32_t index)
{
    char escaped[6 * 64 + 1];
    pki_json_escape(escaped, sizeof escaped, name, strnlen(name, 64));
    put(w,
        ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"thread_name\",\"pid\":%" PRIu32
        ",\"tid\":%" PRIu32 ",\"ts\":0.000,\"args\":{\"name\":\"%s\"}}",
        pid, tid, escaped);
    put(w,
        ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"thread_sort_index\",\"pid\":%" PRIu32
        ",\"tid\":%" PRIu32 ",\"ts\":0.000,\"args\":{\"sort_index\":%" PRIu32 "}}",
        pid, tid, index);
}

size_t pki_chrome_thread(const pki_chrome *c, char out[PKI_EVENT_BYTES], uint32_t tid,
                         const char *name, uint32_t index)
{
    writer w = {out, out + PKI_EVENT_BYTES};
    put_track(&w, c->pid, tid, *name ? name : "(unnamed)", index + 1);
    return (size_t)(w.at - out);
}

/* HTA finds the rank by a pattern that wants the blank. */
size_t pki_chrome_head(const pki_chrome *c, char out[PKI_HEAD_BYTES], const pki_chrome_run *run)
{
    writer w = {out, out + PKI_HEAD_BYTES};
    put(&w,
        "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":%" PRIu64 ",\n",
        run->start_unix);
    put(&w,
        "\"distributedInfo\":{\"backend\":\"unknown\",\"rank\": %" PRId32 ",\"world_size\":%" PRId32
        "},\n",
        run->rank, PKI_MAX(run->world_size, 1));
    put_metadata(&w, c, run);
    put(&w, "\n\"traceEvents\":[\n");
    put_process(&w, c, run);
    put_track(&w, c->pid, STEP_TRACK, "steps", 0);
    return (size_t)(w.at - out);
}
