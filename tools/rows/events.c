#include "rows/events.h"

#include "base/compiler.h"
#include "comm/model/communicator.h"
#include "comm/model/operation.h"
#include "comm/figures/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- who and what ---- */

/* Of a track, "pid/tid". */
static uint32_t process_of(rows *r, const char *track)
{
    char key[EVENT_TRACK + 24];
    snprintf(key, sizeof key, "%zu/%.*s", r->files.count, (int)strcspn(track, "/"), track);
    return table_add(&r->process_keys, key);
}

static uint32_t track_of(rows *r, const char *track, uint32_t tid)
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

uint32_t rows_region_of(rows *r, const event *e)
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
    uint32_t id = track_of(r, e->track, e->tid);
    rows_track *t = rows_at(&r->tracks, sizeof *t, id);
    t->name = rows_name(r, e->name);
}

static uint32_t thread_of(const event *e)
{
    return e->tid ? e->tid : ROWS_NONE;
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
        *k =
            (rows_line){e->line, rows_region_of(from->to, e), track_of(from->to, e->track, e->tid)};
    c->region = k->region;
    c->track = k->track | (e->unbalanced ? ~TRACK_MASK : 0);
}

static void add_call(rows_reader *from, const event *e)
{
    rows *r = from->to;
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
    a->track = track_of(r, e->track, e->tid);
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

static void add_mark(rows *r, const event *e)
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
        add_mark(r, e);
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
