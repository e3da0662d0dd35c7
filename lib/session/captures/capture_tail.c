#include "session/captures/capture_tail.h"

#include <stdlib.h>

#include "out/json_shape.h"

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

static void put_kernels(pki_json *j, const pki_capture_job *job)
{
    pki_json_open(j, "kernels", '[');
    for (unsigned i = 0; i < job->around_count; i++) {
        const pki_history_step *s = &job->around[i];
        if (s->number >= job->wish.first && is_measured(job, s))
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

char *pki_capture_tail(const pki_capture_job *job, size_t *bytes)
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
