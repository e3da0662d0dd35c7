#include "rows/events.h"

#include "base/compiler.h"
#include "comm/model/communicator.h"
#include "comm/figures/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define UNBALANCED (UINT32_MAX / 2 + 1)

/* ---- who and what ---- */

/* Of a track, "pid/tid". */
static bool find_process(rows *r, const char *track, uint32_t *id)
{
    char key[EVENT_TRACK + 24];
    snprintf(key, sizeof key, "%zu/%.*s", r->files.count, (int)strcspn(track, "/"), track);
    *id = table_add(&r->process_keys, key);
    return *id != TABLE_NONE;
}

static bool find_track(rows *r, const char *track, uint32_t tid, uint32_t *id)
{
    char key[EVENT_TRACK + 24];
    snprintf(key, sizeof key, "%zu/%s", r->files.count, track);
    uint32_t known = r->track_keys.count;
    *id = table_add(&r->track_keys, key);
    if (*id == known && *id != TABLE_NONE) {
        rows_track *t = rows_push(&r->tracks, sizeof *t);
        if (!t)
            return false;
        *t = (rows_track){.tid = tid, .name = ROWS_NONE};
        return find_process(r, track, &t->process);
    }
    return *id != TABLE_NONE;
}

static bool find_region(rows *r, const event *e, uint32_t *id)
{
    char key[1024];
    snprintf(key, sizeof key, "%u%.1000s", (unsigned)e->kind, e->name);
    uint32_t known = r->region_keys.count;
    *id = table_add(&r->region_keys, key);
    if (*id == known && *id != TABLE_NONE) {
        rows_region *region = rows_push(&r->regions, sizeof *region);
        if (!region)
            return false;
        region->kind = (uint8_t)e->kind;
        return rows_name(r, e->name, &region->name);
    }
    return *id != TABLE_NONE;
}

static bool name_track(rows *r, const event *e)
{
    uint32_t id;
    if (!find_track(r, e->track, e->tid, &id))
        return false;
    rows_track *t = rows_at(&r->tracks, sizeof *t, id);
    return rows_name(r, e->name, &t->name);
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

static bool find_call(rows_reader *from, const event *e, call_row *c)
{
    rows_known *k = &from->known[e->known % ROWS_KNOWN];
    if (!e->known || k->known != e->known) {
        k->known = 0;
        if (!find_region(from->to, e, &k->region) ||
            !find_track(from->to, e->track, e->tid, &k->track))
            return false;
        k->known = e->known;
    }
    c->region = k->region;
    c->track = k->track | (e->unbalanced ? UNBALANCED : 0);
    return true;
}

static bool take_call(rows_reader *from, const event *e)
{
    rows *r = from->to;
    if (!rows_wanted(r, ROWS_CALLS))
        return true;
    call_row *c = rows_append(r, ROWS_CALLS, 0);
    if (!c || !find_call(from, e, c))
        return false;
    c->start = e->start - e->lacks;
    c->duration = e->end - c->start;
    if (!rows_wants_part(r, ROWS_CALLS, 1))
        return true;
    call_work *work = rows_append(r, ROWS_CALLS, 1);
    if (work)
        *work = (call_work){e->bytes, e->flops};
    return work != NULL;
}

static bool take_step(rows *r, const event *e)
{
    step_row *s = rows_append(r, ROWS_STEPS, 0);
    if (!s)
        return false;
    const char *thread = strrchr(e->stepper, '/');
    unsigned long tid = 0;
    if (thread && sscanf(thread + 1, "%lu", &tid) != 1)
        tid = 0;
    *s = (step_row){.start = e->start,
                    .duration = e->end - e->start,
                    .step = e->index,
                    .items = e->items,
                    .thread = tid ? (uint32_t)tid : ROWS_NONE};
    return find_process(r, e->stepper, &s->process);
}

/* ---- operations on communicators ---- */

static bool rate(collective_row *c, pk_comm_op op, const event *e)
{
    double size = pki_comm_size(op, e->bytes, e->comm.ranks);
    bool rated = !e->comm.unrated && size > 0 && c->duration > 0;
    double sharers = (double)PKI_MAX(e->comm.calls * e->comm.sharers, 1u);
    c->algbw = rated ? size / (double)c->duration * sharers : NAN;
    c->busbw = rated ? c->algbw * pki_comm_bus_factor(op, e->comm.ranks) : NAN;
    return rated;
}

static bool name_operation(rows *r, const event *e, collective_row *c)
{
    return rows_name(r, e->name, &c->name) && rows_name(r, e->comm.name, &c->communicator) &&
           rows_name(r, e->comm.library, &c->library) && rows_name(r, e->comm.op, &c->operation) &&
           rows_name(r, object_text(e->args, "dtype"), &c->type) &&
           rows_name(r, event_launcher(e), &c->region) &&
           rows_name(r, e->comm.algorithm, &c->algorithm) &&
           rows_name(r, e->comm.protocol, &c->protocol);
}

static bool is_message(pk_comm_op op)
{
    return op == PK_OP_SEND || op == PK_OP_RECV || op == PK_OP_SEND_RECV;
}

/* perfkit writes the two events of a pair one behind the other. */
static bool end_operation(rows_reader *from, const event *e)
{
    part *p = &from->to->parts[from->begun_in][0];
    if (from->begun && from->begun_id == e->comm.id) {
        collective_row *c = rows_at(p, sizeof *c, from->begun - 1);
        c->duration = e->start > c->start ? e->start - c->start : 0;
        c->algbw = c->duration ? c->algbw / (double)c->duration : NAN;
        c->busbw = c->duration ? c->busbw / (double)c->duration : NAN;
    }
    from->begun = 0;
    return true;
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

static bool take_operation(rows_reader *from, const event *e)
{
    rows *r = from->to;
    if (e->type == EVENT_COMM_END)
        return end_operation(from, e);
    if (!e->comm.op)
        return true;
    pk_comm_op op = pki_comm_op_named(e->comm.op);
    rows_table of = is_message(op) ? ROWS_MESSAGES : ROWS_COLLECTIVES;
    from->begun = 0;
    if (!rows_wanted(r, of))
        return true;
    collective_row *c = rows_append(r, of, 0);
    if (!c || !name_operation(r, e, c))
        return false;
    fill_operation(c, op, e);
    if (e->type != EVENT_COMM_BEGIN)
        return true;
    from->begun_in = of;
    from->begun = r->parts[of][0].count;
    from->begun_id = e->comm.id;
    return true;
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

static bool take_on_device(rows *r, const event *e, rows_table of)
{
    const pki_activity *a = &e->activity;
    device_row *d = rows_append(r, of, 0);
    if (!d || !rows_name(r, e->name, &d->name) || !rows_name(r, event_launcher(e), &d->region) ||
        !rows_name(r, direction_of(a), &d->direction))
        return false;
    d->start = e->start;
    d->duration = e->end - e->start;
    d->correlation = argument_u64(e, "correlation");
    d->bytes = a->bytes;
    d->device = a->device;
    d->stream = argument_u32(e, "stream");
    return true;
}

static bool take_kernel(rows *r, const event *e)
{
    if (!take_on_device(r, e, ROWS_KERNELS))
        return false;
    kernel_more *more =
        rows_wants_part(r, ROWS_KERNELS, 1) ? rows_append(r, ROWS_KERNELS, 1) : NULL;
    if (!more)
        return !rows_wants_part(r, ROWS_KERNELS, 1);
    *more = (kernel_more){argument_u64(e, "queued"), argument_u32(e, "registers per thread"),
                          argument_u32(e, "shared memory")};
    return true;
}

static bool take_other(rows *r, const event *e)
{
    static const char *const kinds[PKI_ACTIVITY_KINDS] = {
        [PKI_ACTIVITY_SPAN] = "span",         [PKI_ACTIVITY_RUNTIME] = "runtime",
        [PKI_ACTIVITY_DRIVER] = "driver",     [PKI_ACTIVITY_SYNC] = "sync",
        [PKI_ACTIVITY_OVERHEAD] = "overhead", [PKI_ACTIVITY_RANGE] = "range"};
    activity_row *a = rows_append(r, ROWS_ACTIVITIES, 0);
    if (!a || !rows_name(r, kinds[e->activity.kind], &a->kind) ||
        !rows_name(r, e->name, &a->name) || !rows_name(r, event_launcher(e), &a->region) ||
        !find_track(r, e->track, e->tid, &a->track))
        return false;
    a->start = e->start;
    a->duration = e->end - e->start;
    a->correlation = argument_u64(e, "correlation");
    a->device = e->activity.device;
    return true;
}

static bool take_activity(rows *r, const event *e)
{
    switch (e->activity.kind) {
    case PKI_ACTIVITY_KERNEL:
    case PKI_ACTIVITY_GRAPH:
        return !rows_wanted(r, ROWS_KERNELS) || take_kernel(r, e);
    case PKI_ACTIVITY_MEMCPY:
    case PKI_ACTIVITY_MEMSET:
        return !rows_wanted(r, ROWS_MEMCPYS) || take_on_device(r, e, ROWS_MEMCPYS);
    default:
        return !rows_wanted(r, ROWS_ACTIVITIES) || take_other(r, e);
    }
}

/* ---- points ---- */

static bool take_sample(rows *r, const event *e, const char *unit, double value)
{
    counter_row *c = rows_append(r, ROWS_COUNTERS, 0);
    if (!c || !rows_name(r, e->name, &c->name) ||
        !rows_name(r, strcmp(unit, "value") ? unit : "", &c->unit))
        return false;
    c->start = e->start;
    c->value = value;
    c->thread = thread_of(e);
    return true;
}

static bool take_counter(rows *r, const event *e)
{
    object_cursor at = {0};
    const char *unit;
    double value;
    while (rows_wanted(r, ROWS_COUNTERS) && event_next_sample(e, &at, &unit, &value))
        if (!take_sample(r, e, unit, value))
            return false;
    return true;
}

static bool take_mark(rows *r, const event *e)
{
    if (!rows_wanted(r, ROWS_MARKS))
        return true;
    mark_row *m = rows_append(r, ROWS_MARKS, 0);
    if (!m || !rows_name(r, e->name, &m->name))
        return false;
    m->start = e->start;
    m->thread = thread_of(e);
    return true;
}

bool rows_take_event(void *reader, const event *e)
{
    rows_reader *from = reader;
    rows *r = from->to;
    from->events++;
    switch (e->type) {
    case EVENT_REGION:
        return take_call(from, e) && take_operation(from, e);
    case EVENT_STEP:
        return take_step(r, e);
    case EVENT_COMM:
    case EVENT_COMM_BEGIN:
    case EVENT_COMM_END:
        return take_operation(from, e);
    case EVENT_ACTIVITY:
        return take_activity(r, e);
    case EVENT_COUNTER:
        return take_counter(r, e);
    case EVENT_MARK:
        return take_mark(r, e);
    case EVENT_THREAD_NAME:
        return name_track(r, e);
    default:
        return true;
    }
}
