/* tools/trace/about.c - what a trace says of itself, before its events and behind them */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "read/scan.h"
#include "trace/trace.h"

#include "measure/shape_words.h"

/* ---- before the events ---- */

/* Objects of the file whose members lie in one struct: each is at its beginning. */
#define SPREAD(name, of)                                                                           \
    {                                                                                              \
        .key = name, .type = PKI_OBJECT, .offset = 0, .shape = &(of)                               \
    }

static const pki_member job_members[] = {
    PLAIN_AS("rank", trace_about, run.rank),
    PLAIN_AS("world_size", trace_about, run.world_size),
};
static const pki_shape job_shape = {SHAPE(trace_about, job_members)};

static const pki_member clock_members[] = {
    PLAIN_AS("source", trace_about, run.clock),
    PLAIN_AS("hz", trace_about, run.clock_hz),
    PLAIN_AS("step_ns", trace_about, run.clock_step_ns),
    PLAIN_AS("uncertainty_ns", trace_about, run.clock_uncertainty_ns),
    PLAIN_AS("drift_ppm", trace_about, run.clock_ppm),
    PLAIN_AS("base_monotonic_ns", trace_about, base_monotonic),
    PLAIN_AS("id", trace_about, clock_id),
};
static const pki_shape clock_shape = {SHAPE(trace_about, clock_members)};

static const pki_member overhead_members[] = {
    PLAIN_AS("region_ns", trace_about, toll.region_ns),
    PLAIN_AS("collector_ns", trace_about, toll.collector),
    PLAIN_AS("callers_ns", trace_about, toll.callers),
    PLAIN_AS("captures_ns", trace_about, toll.captures),
    PLAIN_AS("readings_ns", trace_about, toll.readings),
    PLAIN_AS("backends_ns", trace_about, toll.backends),
};
static const pki_shape overhead_shape = {SHAPE(trace_about, overhead_members)};

static const pki_member stepper_members[] = {
    PLAIN_AS("observed_ns", trace_about, toll.stepper.observed),
    PLAIN_AS("running_ns", trace_about, toll.stepper.running),
    PLAIN_AS("ready_ns", trace_about, toll.stepper.ready),
};
static const pki_shape stepper_shape = {SHAPE(trace_about, stepper_members)};

static const pki_member metadata_members[] = {
    PLAIN_AS("perfkit", trace_about, run.version),
    PLAIN_AS("program", trace_about, run.program),
    PLAIN_AS("host", trace_about, run.host),
    PLAIN_AS("pid", trace_about, run.pid),
    PLAIN_AS("rank", trace_about, run.rank),
    PLAIN_AS("world_size", trace_about, run.world_size),
    PLAIN_AS("start_unix_ns", trace_about, run.start_unix),
    PLAIN_AS("complete", trace_about, run.complete),
    PLAIN_AS("cpu_ns", trace_about, toll.process),
    PLAIN_AS("merged", trace_about, merged),
    SPREAD("clock", clock_shape),
    {OBJECT(trace_about, counts, pki_counts_shape)},
    SPREAD("overhead", overhead_shape),
    SPREAD("stepping_thread", stepper_shape),
};
static const pki_shape metadata_shape = {SHAPE(trace_about, metadata_members)};

static const pki_member about_members[] = {
    PLAIN_AS("baseTimeNanoseconds", trace_about, base_unix),
    SPREAD("distributedInfo", job_shape), /* PyTorch's profiler writes it */
    SPREAD("metadata", metadata_shape),
};
static const pki_shape about_shape = {SHAPE(trace_about, about_members)};

#define NO_RANK INT32_MIN

static char **texts_of(trace_about *a, size_t i)
{
    char **all[] = {&a->run.version, &a->run.program, &a->run.host, &a->run.clock, &a->clock_id};
    return i < sizeof all / sizeof *all ? all[i] : NULL;
}

void trace_about_begin(trace_about *a)
{
    *a = (trace_about){.run = {.complete = true, .rank = NO_RANK}};
}

bool trace_about_read(trace_about *a, const char *text, size_t length)
{
    complaint ignored = {""};
    scan s = {.at = text, .end = text + length, .why = &ignored, .lenient = true};
    return scan_object(&s, &about_shape, a) && token_ends(&s);
}

void trace_about_end(trace_about *a)
{
    char **text;
    a->has_rank = a->run.rank != NO_RANK;
    a->run.rank = a->has_rank ? a->run.rank : 0;
    for (size_t i = 0; (text = texts_of(a, i)); i++)
        *text = *text ? *text : memory_copy("");
}

void trace_about_forget(trace_about *a)
{
    char **text;
    for (size_t i = 0; (text = texts_of(a, i)); i++)
        free(*text);
    *a = (trace_about){0};
}

/* ---- behind them: a capture ---- */

/* What is read of it, and what that comes to. */
typedef struct captured {
    pki_capture is;
    uint64_t *kernels; /* steps */
    size_t kernel_count;
} captured;

static const pki_member step_members[] = {
    PLAIN_AS("step", pki_captured_step, index),
    PLAIN_AS("start_ns", pki_captured_step, start),
    PLAIN_AS("duration_ns", pki_captured_step, duration),
    PLAINS(pki_captured_step, items, kind),
};
static const pki_shape step_shape = {SHAPE(pki_captured_step, step_members)};

static const pki_member capture_members[] = {
    PLAIN_AS("reason", captured, is.reason),
    PLAIN_AS("text", captured, is.text),
    PLAIN_AS("first", captured, is.first),
    PLAIN_AS("last", captured, is.last),
    PLAIN_AS("slow_step", captured, is.slow_step),
    PLAIN_AS("slow_ns", captured, is.slow),
    PLAIN_AS("median_ns", captured, is.median),
    PLAIN_AS("cut", captured, is.cut),
    PLAIN_AS("beginning_gone", captured, is.beginning_gone),
    PLAIN_AS("full", captured, is.full),
    PLAIN_AS("records_lost", captured, is.records_lost),
    PLAIN_AS("refused", captured, is.refused),
    PLAIN_AS("kernels_late", captured, is.kernels_late),
    {ROWS("steps", captured, is.steps, is.step_count, step_shape)},
    {NUMBERS("kernels", captured, kernels, kernel_count)},
};
static const pki_shape capture_shape = {SHAPE(captured, capture_members)};

static void place_steps(captured *c)
{
    for (size_t i = 0; i < c->is.step_count; i++) {
        pki_captured_step *s = &c->is.steps[i];
        s->captured = s->index >= c->is.first && s->index <= c->is.last;
        for (size_t k = 0; k < c->kernel_count; k++)
            s->kernels |= s->index == c->kernels[k];
    }
    c->is.captured = c->is.step_count;
}

/* All of it or nothing. */
static void read_environment(line of, pki_environment *out)
{
    complaint ignored = {""};
    scan s = {.why = &ignored};
    *out = (pki_environment){0};
    if (!token_member(of.text, of.length, "environment", &s.at, &s.end) || *s.at != '{' ||
        scan_object(&s, &pki_environment_shape, out))
        return;
    pki_shape_finish(&pki_environment_shape, out);
    *out = (pki_environment){0};
}

bool trace_captured(const trace *t, pki_capture *capture, pki_environment *environment)
{
    complaint ignored = {""};
    line of = t->capture;
    scan s = {.at = of.text, .end = of.text + of.length, .why = &ignored, .lenient = true};
    captured c = {.kernels = NULL};
    if (!of.text)
        return false;
    scan_object(&s, &capture_shape, &c);
    place_steps(&c);
    free(c.kernels);
    *capture = c.is;
    read_environment(of, environment);
    return true;
}
