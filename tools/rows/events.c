/* tools/rows/events.c - rows of the events of a trace */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "comm/figures/figures.h"
#include "comm/model/communicator.h"
#include "memory.h"
#include "rows/rows.h"
#include "trace/trace.h"

/* A pk_span's beginning, or its end. */
typedef struct span_moment {
    uint64_t span, moment, id;
    uint32_t thread;
    bool begins;
} span_moment;

static uint32_t rows_region_of(rows *r, const event *e);

/* ---- which call is in which: depth, parent and self time ---- */

/* Perfkit lists a thread's calls by their ends. Traces of others are sorted first. */

typedef struct nesting {
    const call_row *calls;
    call_nest *nests;
    nest *open; /* by track; value: the number of the call */
} nesting;

static uint32_t track_of(const call_row *c)
{
    return c->track & TRACK_MASK;
}

static void set_parent(nesting *n, uint32_t i)
{
    const call_row *c = &n->calls[i];
    nest *open = &n->open[track_of(c)];
    size_t inside = nest_inside(open, c->start);
    uint64_t self = c->duration;
    for (size_t k = inside; k < open->count; k++) {
        const nest_slice *inner = &open->waiting[k];
        n->nests[inner->value].parent = i + 1;
        self -= PKI_MIN(self, inner->end - inner->start);
    }
    n->nests[i].self = self;
    nest_add(open, inside, (nest_slice){c->start, c->start + c->duration, i});
}

/* Outer calls come behind those that are in them, so from the last one on depths are known. */
static void set_parents(nesting *n, size_t first, size_t count, const uint32_t *sorted)
{
    for (size_t i = first; i < count; i++)
        set_parent(n, sorted ? sorted[i - first] : (uint32_t)i);
    for (size_t i = count; i > first; i--) {
        call_nest *at = &n->nests[sorted ? sorted[i - 1 - first] : i - 1];
        at->depth = at->parent ? n->nests[at->parent - 1].depth + 1 : 0;
    }
}

/* ---- traces whose calls are in another sorted ---- */

static bool is_ordered(const rows *r, const call_row *calls, size_t first, size_t count)
{
    for (size_t i = 0; i < r->tracks.count; i++)
        ((rows_track *)rows_at(&r->tracks, sizeof(rows_track), i))->last_end = 0;
    for (size_t i = first; i < count; i++) {
        rows_track *t = rows_at(&r->tracks, sizeof *t, track_of(&calls[i]));
        uint64_t end = calls[i].start + calls[i].duration;
        if (end < t->last_end)
            return false;
        t->last_end = end;
    }
    return true;
}

/* Inner ones first; of two alike the earlier one in the file. */
static int inner_first(const void *a, const void *b, void *user)
{
    const call_row *calls = user;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const call_row *x = &calls[i], *y = &calls[k];
    int sorted = nest_order(x->start, x->start + x->duration, y->start, y->start + y->duration);
    return sorted ? sorted : i < k ? -1 : 1;
}

static void set_parents_sorted(nesting *n, size_t first, size_t count)
{
    uint32_t *sorted = memory_zeroed(count - first, sizeof *sorted);
    for (size_t i = first; i < count; i++)
        sorted[i - first] = (uint32_t)i;
    qsort_r(sorted, count - first, sizeof *sorted, inner_first, (void *)n->calls);
    set_parents(n, first, count, sorted);
    free(sorted);
}

void rows_nest(rows *r, size_t first)
{
    part *calls = &r->parts[ROWS_CALLS][0], *nests = &r->parts[ROWS_CALLS][2];
    if (calls->count == first)
        return;
    call_nest *all = memory_resized(nests->data, calls->count * sizeof *all);
    memset(all + nests->count, 0, (calls->count - nests->count) * sizeof *all);
    nests->data = (char *)all;
    nests->count = nests->room = calls->count;
    nesting n = {(const call_row *)calls->data, all,
                 memory_zeroed(r->tracks.count, sizeof *n.open)};
    if (is_ordered(r, n.calls, first, calls->count))
        set_parents(&n, first, calls->count, NULL);
    else
        set_parents_sorted(&n, first, calls->count);
    for (size_t i = 0; i < r->tracks.count; i++)
        free(n.open[i].waiting);
    free(n.open);
}

/* ---- pk_spans and requests: their ends may stand before their beginnings ---- */

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
    uint64_t read = part_of(&left, event_count(e, "reading_ns"));
    to->crowded = PKI_MIN(event_count(e, "crowded_ns"), read);
    to->prefill = read - to->crowded;
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

static void rows_add_span(rows_reader *from, const event *e)
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

/* ---- who and what ---- */

/* Of a track, "pid/tid". */
static uint32_t process_of(rows *r, const char *track)
{
    char key[EVENT_TRACK + 24];
    snprintf(key, sizeof key, "%zu/%.*s", r->files.count, (int)strcspn(track, "/"), track);
    return table_add(&r->process_keys, key);
}

static uint32_t events_track_of(rows *r, const char *track, uint32_t tid)
{
    char key[EVENT_TRACK + 24];
    snprintf(key, sizeof key, "%zu/%s", r->files.count, track);
    uint32_t known = r->track_keys.count, id = table_add(&r->track_keys, key);
    if (id == known) {
        rows_track *t = rows_push(&r->tracks, sizeof *t);
        *t = (rows_track){.tid = tid, .name = ROWS_NONE, .process = process_of(r, track)};
    }
    return id;
}

/* The region's number among those of the rows. */
static uint32_t rows_region_of(rows *r, const event *e)
{
    char key[1024];
    snprintf(key, sizeof key, "%u%.1000s", (unsigned)e->kind, e->name);
    uint32_t known = r->region_keys.count, id = table_add(&r->region_keys, key);
    if (id == known) {
        rows_region *region = rows_push(&r->regions, sizeof *region);
        *region = (rows_region){.name = rows_name(r, e->name), .kind = (uint8_t)e->kind};
    }
    return id;
}

static void name_track(rows *r, const event *e)
{
    uint32_t id = events_track_of(r, e->track, e->tid);
    rows_track *t = rows_at(&r->tracks, sizeof *t, id);
    t->name = rows_name(r, e->name);
}

static uint32_t argument_u32(const event *e, const char *key)
{
    member v = object_get(e->args, key);
    bool fits = v.type == VALUE_INTEGER && v.integer >= 0 && v.integer < ROWS_NONE;
    return fits ? (uint32_t)v.integer : ROWS_NONE;
}

static uint64_t argument_u64(const event *e, const char *key)
{
    int64_t n = object_integer(e->args, key);
    return n > 0 ? (uint64_t)n : 0;
}

/* ---- regions ---- */

static void find_call(rows_reader *from, const event *e, call_row *c)
{
    rows_line *k = &from->lines[e->line % ROWS_LINES];
    if (!e->line || k->line != e->line)
        *k = (rows_line){e->line, rows_region_of(from->to, e),
                         events_track_of(from->to, e->track, e->tid)};
    c->region = k->region;
    c->track = k->track | (e->unbalanced ? ~TRACK_MASK : 0);
}

/* What perfkit itself says of a call in its arguments. */
static bool is_own(const char *key)
{
    static const char *const own[] = {"bytes",   "flops",      "payload", "calls",
                                      "cut_off", "unbalanced", "stack"};
    for (size_t i = 0; i < PKI_COUNT_OF(own); i++)
        if (!strcmp(key, own[i]))
            return true;
    return false;
}

static void add_notes(rows_reader *from, const event *e)
{
    rows *r = from->to;
    object_cursor at = {0};
    const char *key;
    member v;
    while (object_next(e->args, &at, &key, &v)) {
        bool number = v.type == VALUE_INTEGER;
        if (is_own(key) || (!number && v.type != VALUE_TEXT))
            continue;
        note_row *n = rows_append(r, ROWS_NOTES, 0);
        *n = (note_row){.start = e->start - e->lacks,
                        .duration = e->end - e->start + e->lacks,
                        .value = number ? (uint64_t)v.integer : 0,
                        .known = number,
                        .region = rows_region_of(r, e),
                        .thread = thread_of(e),
                        .key = rows_name(r, key),
                        .words = number ? ROWS_NONE : rows_name(r, v.text)};
    }
}

static void add_call(rows_reader *from, const event *e)
{
    rows *r = from->to;
    if (rows_wanted(r, ROWS_NOTES) && !e->line)
        add_notes(from, e);
    if (!rows_wanted(r, ROWS_CALLS))
        return;
    call_row *c = rows_append(r, ROWS_CALLS, 0);
    find_call(from, e, c);
    c->start = e->start - e->lacks;
    c->duration = e->end - c->start;
    if (rows_wants_part(r, ROWS_CALLS, 1))
        *(call_work *)rows_append(r, ROWS_CALLS, 1) = (call_work){e->bytes, e->flops};
}

static void add_step(rows *r, const event *e)
{
    step_row *s = rows_append(r, ROWS_STEPS, 0);
    const char *thread = strrchr(e->stepper, '/');
    unsigned long tid = 0;
    if (thread && sscanf(thread + 1, "%lu", &tid) != 1)
        tid = 0;
    *s = (step_row){.start = e->start,
                    .duration = e->end - e->start,
                    .step = e->index,
                    .items = e->items,
                    .thread = tid ? (uint32_t)tid : ROWS_NONE,
                    .process = process_of(r, e->stepper),
                    .kind = rows_name(r, e->step_kind)};
}

/* ---- operations on communicators ---- */

static void rate(collective_row *c, pk_comm_op op, const event *e)
{
    double size = pki_comm_size(op, e->bytes, e->comm.ranks);
    bool rated = !e->comm.unrated && size > 0 && c->duration > 0;
    double sharers = (double)PKI_MAX(e->comm.calls * e->comm.sharers, 1u);
    c->algbw = rated ? size / (double)c->duration * sharers : NAN;
    c->busbw = rated ? c->algbw * pki_comm_bus_factor(op, e->comm.ranks) : NAN;
}

static void name_operation(rows *r, const event *e, collective_row *c)
{
    c->name = rows_name(r, e->name);
    c->communicator = rows_name(r, e->comm.name);
    c->library = rows_name(r, e->comm.library);
    c->operation = rows_name(r, e->comm.op);
    c->type = rows_name(r, object_text(e->args, "dtype"));
    c->region = rows_name(r, event_launcher(e));
    c->algorithm = rows_name(r, e->comm.algorithm);
    c->protocol = rows_name(r, e->comm.protocol);
}

/* perfkit writes the two events of a pair one behind the other. */
static void end_operation(rows_reader *from, const event *e)
{
    part *p = &from->to->parts[from->begun_in][0];
    if (from->begun && from->begun_id == e->comm.id) {
        collective_row *c = rows_at(p, sizeof *c, from->begun - 1);
        c->duration = e->start > c->start ? e->start - c->start : 0;
        c->algbw = c->duration ? c->algbw / (double)c->duration : NAN;
        c->busbw = c->duration ? c->busbw / (double)c->duration : NAN;
    }
    from->begun = 0;
}

static void fill_operation(collective_row *c, pk_comm_op op, const event *e)
{
    /* A pair's bandwidths wait for its duration. */
    c->start = e->start - e->lacks;
    c->duration = e->type == EVENT_COMM_BEGIN ? 1 : e->end - c->start;
    c->bytes = e->bytes;
    c->sequence = e->comm.sequence;
    c->ranks = e->comm.ranks ? e->comm.ranks : ROWS_NONE;
    c->peer = e->comm.peer;
    c->tag = e->comm.tag;
    c->in_flight = e->comm.in_flight;
    c->calls = e->comm.calls;
    c->exposed = e->type == EVENT_REGION ? c->duration : e->comm.exposed;
    if (e->comm.on_stream)
        c->exposed = UINT64_MAX;
    rate(c, op, e);
    if (e->type == EVENT_COMM_BEGIN)
        c->duration = 0;
}

static void add_operation(rows_reader *from, const event *e)
{
    rows *r = from->to;
    if (!e->comm.op)
        return;
    pk_comm_op op = pki_comm_op_named(e->comm.op);
    rows_table of = pki_comm_op_is_message(op) ? ROWS_MESSAGES : ROWS_COLLECTIVES;
    from->begun = 0;
    if (!rows_wanted(r, of))
        return;
    collective_row *c = rows_append(r, of, 0);
    name_operation(r, e, c);
    fill_operation(c, op, e);
    if (e->type != EVENT_COMM_BEGIN)
        return;
    from->begun_in = of;
    from->begun = r->parts[of][0].count;
    from->begun_id = e->comm.id;
}

/* ---- devices and libraries ---- */

static const char *direction_of(const pki_activity *a)
{
    static const char *const names[PKI_COPY_KINDS] = {[PKI_COPY_HTOD] = "h2d",
                                                      [PKI_COPY_DTOH] = "d2h",
                                                      [PKI_COPY_DTOD] = "d2d",
                                                      [PKI_COPY_HTOH] = "h2h",
                                                      [PKI_COPY_PTOP] = "p2p"};
    return a->kind == PKI_ACTIVITY_MEMSET ? "set" : names[a->copy];
}

static void add_on_device(rows *r, const event *e, rows_table of)
{
    const pki_activity *a = &e->activity;
    if (!rows_wanted(r, of))
        return;
    device_row *d = rows_append(r, of, 0);
    d->name = rows_name(r, e->name);
    d->region = rows_name(r, event_launcher(e));
    d->direction = rows_name(r, direction_of(a));
    d->start = e->start;
    d->duration = e->end - e->start;
    d->correlation = argument_u64(e, "correlation");
    d->bytes = a->bytes;
    d->device = a->device;
    d->stream = argument_u32(e, "stream");
}

static void add_kernel(rows *r, const event *e)
{
    add_on_device(r, e, ROWS_KERNELS);
    if (!rows_wants_part(r, ROWS_KERNELS, 1))
        return;
    kernel_more *more = rows_append(r, ROWS_KERNELS, 1);
    *more = (kernel_more){argument_u64(e, "queued"), argument_u32(e, "registers per thread"),
                          argument_u32(e, "shared memory")};
}

static void add_other(rows *r, const event *e)
{
    static const char *const kinds[PKI_ACTIVITY_KINDS] = {
        [PKI_ACTIVITY_SPAN] = "span",         [PKI_ACTIVITY_RUNTIME] = "runtime",
        [PKI_ACTIVITY_DRIVER] = "driver",     [PKI_ACTIVITY_SYNC] = "sync",
        [PKI_ACTIVITY_OVERHEAD] = "overhead", [PKI_ACTIVITY_RANGE] = "range",
        [PKI_ACTIVITY_EVENT] = "event"};
    if (!rows_wanted(r, ROWS_ACTIVITIES))
        return;
    activity_row *a = rows_append(r, ROWS_ACTIVITIES, 0);
    a->kind = rows_name(r, kinds[e->activity.kind]);
    a->name = rows_name(r, e->name);
    a->region = rows_name(r, event_launcher(e));
    a->track = events_track_of(r, e->track, e->tid);
    a->start = e->start;
    a->duration = e->end - e->start;
    a->correlation = argument_u64(e, "correlation");
    a->device = e->activity.device;
}

static void add_activity(rows *r, const event *e)
{
    switch (e->activity.kind) {
    case PKI_ACTIVITY_KERNEL:
    case PKI_ACTIVITY_GRAPH:
        add_kernel(r, e);
        break;
    case PKI_ACTIVITY_MEMCPY:
    case PKI_ACTIVITY_MEMSET:
        add_on_device(r, e, ROWS_MEMCPYS);
        break;
    default:
        add_other(r, e);
        break;
    }
}

/* ---- points ---- */

static void add_counter(rows *r, const event *e)
{
    object_cursor at = {0};
    const char *unit;
    double value;
    while (rows_wanted(r, ROWS_COUNTERS) && event_next_sample(e, &at, &unit, &value)) {
        counter_row *c = rows_append(r, ROWS_COUNTERS, 0);
        *c = (counter_row){.start = e->start,
                           .value = value,
                           .name = rows_name(r, e->name),
                           .unit = rows_name(r, strcmp(unit, "value") ? unit : ""),
                           .thread = thread_of(e)};
    }
}

static void events_add_mark(rows *r, const event *e)
{
    if (!rows_wanted(r, ROWS_MARKS))
        return;
    mark_row *m = rows_append(r, ROWS_MARKS, 0);
    *m = (mark_row){.start = e->start, .name = rows_name(r, e->name), .thread = thread_of(e)};
}

void rows_add_event(void *reader, const event *e)
{
    rows_reader *from = reader;
    rows *r = from->to;
    from->events++;
    switch (e->type) {
    case EVENT_REGION:
        add_call(from, e);
        add_operation(from, e);
        break;
    case EVENT_STEP:
        add_step(r, e);
        break;
    case EVENT_COMM:
    case EVENT_COMM_BEGIN:
        add_operation(from, e);
        break;
    case EVENT_COMM_END:
        end_operation(from, e);
        break;
    case EVENT_ACTIVITY:
        add_activity(r, e);
        break;
    case EVENT_COUNTER:
        add_counter(r, e);
        break;
    case EVENT_MARK:
        events_add_mark(r, e);
        break;
    case EVENT_SPAN_BEGIN:
    case EVENT_SPAN_MARK:
    case EVENT_SPAN_END:
    case EVENT_REQUEST:
        rows_add_span(from, e);
        break;
    case EVENT_THREAD_NAME:
        name_track(r, e);
        break;
    default:
        break;
    }
}
