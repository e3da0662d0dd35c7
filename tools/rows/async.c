/* tools/rows/async.c - pk_spans and requests: their ends may stand before their beginnings. */
#include "rows/events.h"

#include "base/compiler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t thread_of(const event *e)
{
    return e->tid ? e->tid : ROWS_NONE;
}

/* Text where it is above 2^53. */
static uint64_t program_id(const event *e)
{
    member v = object_get(e->args, "id");
    return v.type == VALUE_TEXT ? strtoull(v.text, NULL, 10) : (uint64_t)v.integer;
}

/* ---- as they come ---- */

static void add_moment(rows_reader *from, const event *e)
{
    rows *r = from->to;
    bool begins = e->type == EVENT_SPAN_BEGIN;
    if (!rows_wanted(r, ROWS_SPANS) && !rows_wanted(r, ROWS_REQUESTS))
        return;
    *(span_moment *)rows_push(&from->moments, sizeof(span_moment)) =
        (span_moment){e->span, e->start, program_id(e), thread_of(e), begins};
    if (!begins || !rows_wanted(r, ROWS_SPANS))
        return;
    *(span_row *)rows_append(r, ROWS_SPANS, 0) = (span_row){.start = e->start,
                                                            .duration = UINT64_MAX,
                                                            .span = e->span,
                                                            .id = {program_id(e), 1},
                                                            .region = rows_region_of(r, e),
                                                            .thread = thread_of(e),
                                                            .end_thread = ROWS_NONE};
}

static void add_mark(rows *r, const event *e)
{
    if (rows_wanted(r, ROWS_SPAN_MARKS))
        *(span_mark_row *)rows_append(r, ROWS_SPAN_MARKS, 0) =
            (span_mark_row){.start = e->start,
                            .span = e->span,
                            .since = e->since,
                            .region = rows_region_of(r, e),
                            .thread = thread_of(e)};
}

/* So much of what is left. */
static uint64_t part_of(uint64_t *left, uint64_t ns)
{
    uint64_t taken = PKI_MIN(ns, *left);
    *left -= taken;
    return taken;
}

/* As in lib/measure/requests: they sum up to the whole, though each is rounded. */
static void divide(request_row *to, const event *e)
{
    uint64_t left = event_count(e, "total_ns");
    to->queued = part_of(&left, event_count(e, "queued_ns"));
    to->preempted = part_of(&left, event_count(e, "preempted_ns"));
    uint64_t reading = part_of(&left, event_count(e, "reading_ns"));
    to->crowded = PKI_MIN(event_count(e, "crowded_ns"), reading);
    to->prefill = reading - to->crowded;
    to->behind = part_of(&left, event_count(e, "behind_ns"));
    to->decode = left;
}

static void add_request(rows *r, const event *e)
{
    if (!rows_wanted(r, ROWS_REQUESTS))
        return;
    request_row *to = rows_append(r, ROWS_REQUESTS, 0);
    uint64_t total = event_count(e, "total_ns"), tokens = event_count(e, "tokens");
    *to = (request_row){.start = e->start - PKI_MIN(e->start, total),
                        .duration = total,
                        .span = e->span,
                        .ttft = event_count(e, "ttft_ns"),
                        .tokens = tokens,
                        .preemptions = event_count(e, "preemptions"),
                        .first_step = event_count(e, "first_step"),
                        .steps = event_count(e, "steps"),
                        .tpot = NAN,
                        .region = rows_region_of(r, e),
                        .outcome = rows_name(r, object_text(e->args, "outcome")),
                        .good = event_count(e, "good") > 0};
    if (tokens > 1)
        to->tpot = (double)event_count(e, "generated_ns") / (double)(tokens - 1);
    divide(to, e);
}

void rows_add_span(rows_reader *from, const event *e)
{
    if (e->type == EVENT_SPAN_MARK)
        add_mark(from->to, e);
    else if (e->type == EVENT_REQUEST)
        add_request(from->to, e);
    else
        add_moment(from, e);
}

/* ---- which belong together ---- */

static int by_span(const void *a, const void *b)
{
    const span_moment *x = a, *y = b;
    if (x->span != y->span)
        return x->span < y->span ? -1 : 1;
    if (x->begins != y->begins)
        return x->begins ? -1 : 1;
    return (x->moment > y->moment) - (x->moment < y->moment);
}

/* The first one of the span; NULL: there is none. A span that has begun has its beginning there. */
static const span_moment *find(const part *moments, uint64_t span)
{
    const span_moment *all = (const span_moment *)moments->data;
    size_t first = 0, end = moments->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (all[middle].span < span)
            first = middle + 1;
        else
            end = middle;
    }
    return first < moments->count && all[first].span == span ? &all[first] : NULL;
}

static void end_spans(rows *r, const part *moments)
{
    part *spans = &r->parts[ROWS_SPANS][0];
    for (size_t i = rows_first(r, ROWS_SPANS, r->files.count - 1); i < spans->count; i++) {
        span_row *s = rows_at(spans, sizeof *s, i);
        const span_moment *last = (const span_moment *)moments->data + moments->count;
        for (const span_moment *m = find(moments, s->span); m < last && m->span == s->span; m++) {
            if (m->begins || m->moment < s->start)
                continue;
            s->duration = m->moment - s->start;
            s->end_thread = m->thread;
            break;
        }
    }
}

/* A request's own figures are rounded; its beginning and its end are not. */
static void begin_requests(rows *r, const part *moments)
{
    part *requests = &r->parts[ROWS_REQUESTS][0];
    for (size_t i = rows_first(r, ROWS_REQUESTS, r->files.count - 1); i < requests->count; i++) {
        request_row *to = rows_at(requests, sizeof *to, i);
        const span_moment *m = find(moments, to->span);
        uint64_t end = to->start + to->duration;
        if (!m || !m->begins || m->moment > end)
            continue;
        to->id = (span_id){m->id, 1};
        to->start = m->moment;
        to->duration = end - m->moment;
    }
}

void rows_pair_spans(rows_reader *from)
{
    part *moments = &from->moments;
    if (moments->count)
        qsort(moments->data, moments->count, sizeof(span_moment), by_span);
    end_spans(from->to, moments);
    begin_requests(from->to, moments);
    free(moments->data);
    *moments = (part){0};
}
