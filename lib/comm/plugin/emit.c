/* lib/comm/plugin/emit.c - operations and details, into trace and figures. */
#include <stdio.h>
#include <string.h>

#include "comm/plugin/plugin.h"
#include "comm/plugin/abi.h"
#include "comm/plugin/codes.h"
#include "session/activity.h"

#define ARGS 20

typedef struct args {
    pki_activity_arg list[ARGS];
    size_t count;
} args;

static uint64_t operations;

void pki_nccl_emit_start(void)
{
    operations = 0;
}

uint64_t pki_nccl_operations(void)
{
    return pki_load(&operations);
}

static void number(args *a, const char *key, uint64_t n)
{
    a->list[a->count++] =
        (pki_activity_arg){.key = key, .number = (int64_t)PKI_MIN(n, (uint64_t)INT64_MAX)};
}

static void number_if(args *a, const char *key, uint64_t n)
{
    if (n)
        number(a, key, n);
}

static void text(args *a, const char *key, const char *words)
{
    a->list[a->count++] = (pki_activity_arg){.key = key, .text = words};
}

static void text_if(args *a, const char *key, const char *words)
{
    if (words[0])
        text(a, key, words);
}

/* ---- operations ---- */

static uint64_t bytes_of(const pki_nccl_operation *o)
{
    return o->count * pki_comm_type_bytes((uint32_t)o->type);
}

static pki_operation describe(const pk_comm *c, const pki_nccl_operation *o, uint32_t in_flight)
{
    pki_operation d = pki_operation_on(c);
    d.op = (uint32_t)o->op;
    d.type = (uint32_t)o->type;
    d.count = o->count;
    d.sequence = o->sequence;
    d.peer = o->peer;
    d.in_flight = in_flight;
    return d;
}

static const char *algorithm_of(const pki_nccl_operation *o)
{
    return pki_nccl_text(PKI_NCCL_ALGORITHM, o->event->algorithm);
}

static const char *protocol_of(const pki_nccl_operation *o)
{
    return pki_nccl_text(PKI_NCCL_PROTOCOL, o->event->protocol);
}

static void put_how(args *a, const pki_nccl_operation *o)
{
    static const char *const timed[] = {"host", "proxy", "kernel"};
    const pki_nccl_event *e = o->event;
    text(a, PKI_COMM_TIMED, timed[o->timed]);
    text_if(a, "algorithm", algorithm_of(o));
    text_if(a, "protocol", protocol_of(o));
    number_if(a, "channels", e->channels);
    number_if(a, "nccl seq", e->sequence);
    if (o->call && o->call != e->op)
        text(a, "call", pki_nccl_text(PKI_NCCL_FUNCTION, o->call));
    number_if(a, "graph", o->captured);
    number_if(a, "unfinished", o->unfinished);
}

static void put_network(args *a, const pki_nccl_operation *o)
{
    number_if(a, "proxy operations", o->proxy_operations);
    number_if(a, "proxy steps", o->proxy_steps);
    number_if(a, "proxy bytes", o->proxy_bytes);
    number_if(a, "waited for GPU ns", o->waits[PKI_NCCL_FOR_GPU]);
    number_if(a, "waited for peer ns", o->waits[PKI_NCCL_FOR_PEER]);
    number_if(a, "waited for network ns", o->waits[PKI_NCCL_FOR_NET]);
    number_if(a, "network events", o->net_events);
}

/* A wrapper library counts operations where they are called, this backend where NCCL tells of them:
 * with both, the wrapper does, and what is told here is a detail of the trace. */
static bool is_wrapped(void)
{
    return pki_load(&pki_comms_wrapped);
}

static void write_operation(pki_nccl_communicator *t, const pki_nccl_operation *o, uint64_t exposed,
                            uint32_t in_flight)
{
    pki_operation described = describe(t->comm, o, in_flight);
    char name[32];
    args a = {.count = 0};
    uint64_t start = o->start;
    pki_activity activity = {.kind = is_wrapped() ? PKI_ACTIVITY_RANGE : PKI_ACTIVITY_COLLECTIVE,
                             .track = pki_nccl_track_of_operation(t, &start, o->end),
                             .name = name,
                             .end = PKI_MAX(o->end, start),
                             .region = o->region,
                             .device = PKI_NO_DEVICE,
                             .bytes = bytes_of(o),
                             .operation = &described,
                             .args = a.list};
    activity.start = start;
    activity.name_length =
        (size_t)snprintf(name, sizeof name, "NCCL %s", pki_comm_op_name((uint32_t)o->op));
    number(&a, "exposed_ns", exposed);
    put_how(&a, o);
    put_network(&a, o);
    activity.arg_count = a.count;
    pki_activity_add(&activity);
}

void pki_nccl_emit_operation(pki_nccl_communicator *t, const pki_nccl_operation *o)
{
    uint64_t duration = o->end > o->start ? o->end - o->start : 0;
    uint64_t exposed = PKI_MIN(o->waited, duration);
    uint32_t in_flight = pki_comm_count_overlap(t->comm, o->start, o->end);
    pki_bump(&operations, 1);
    write_operation(t, o, exposed, in_flight);
    if (!o->unfinished && !is_wrapped())
        pki_activity_collective(&(pki_collective){.comm = t->comm->index,
                                                  .ranks = (uint32_t)PKI_MAX(t->comm->size, 0),
                                                  .op = o->op,
                                                  .region = o->region,
                                                  .bytes = bytes_of(o),
                                                  .sequence = o->sequence,
                                                  .start = o->start,
                                                  .end = o->end,
                                                  .exposed = exposed,
                                                  .in_flight = in_flight,
                                                  .unrated = o->timed != PKI_NCCL_BY_KERNEL,
                                                  .algorithm = algorithm_of(o),
                                                  .protocol = protocol_of(o),
                                                  .channels = o->event->channels},
                                1);
}

/* ---- details ---- */

static void write_detail(const char *name, uint32_t track, uint64_t start, uint64_t end,
                         const args *a)
{
    pki_activity_add(&(pki_activity){.kind = PKI_ACTIVITY_RANGE,
                                     .track = track,
                                     .name = name,
                                     .name_length = strlen(name),
                                     .start = start,
                                     .end = PKI_MAX(start, end),
                                     .device = PKI_NO_DEVICE,
                                     .args = a->list,
                                     .arg_count = a->count});
}

void pki_nccl_emit_proxy(pki_nccl_communicator *t, const pki_nccl_event *e, uint64_t bytes)
{
    args a = {.count = 0};
    bool sends = (e->flags & PKI_NCCL_SENDS) != 0;
    uint64_t start = pki_activity_ns_of_ticks(e->start), end = pki_activity_ns_of_ticks(e->stop);
    uint32_t track = pki_nccl_track_of_channel(t, sends ? PKI_NCCL_SENDING : PKI_NCCL_RECEIVES,
                                               e->channels, &start, end);
    number(&a, "Peer", (uint64_t)PKI_MAX(e->peer, 0));
    number(&a, "steps", e->count);
    number_if(&a, "bytes moved", bytes);
    number_if(&a, "for another process", (e->flags & PKI_NCCL_FOREIGN) != 0);
    write_detail(sends ? "send" : "receive", track, start, end, &a);
}

void pki_nccl_emit_kernel(pki_nccl_communicator *t, const pki_nccl_event *e)
{
    args a = {.count = 0};
    uint64_t start = pki_activity_ns_of_ticks(e->start), end = pki_activity_ns_of_ticks(e->stop);
    uint64_t first = e->timer, last = pki_load(&e->stop_timer);
    uint32_t track =
        pki_nccl_track_of_channel(t, PKI_NCCL_KERNELS, e->channels, &start, end);
    number_if(&a, "GPU ns", first && last > first ? last - first : 0);
    write_detail("kernel", track, start, end, &a);
}

static const char *name_of_call(const pki_nccl_event *e)
{
    switch (e->type) {
    case PKI_NCCL_GROUP:
        return "tasks";
    case PKI_NCCL_GROUP_API:
        return "group";
    case PKI_NCCL_LAUNCH:
        return "launch";
    case PKI_NCCL_PROXY_CTRL:
        return "proxy";
    default:
        return pki_nccl_text(PKI_NCCL_FUNCTION, e->op);
    }
}

void pki_nccl_emit_call(const pki_nccl_event *e)
{
    static const char *const doing[] = {"idle",    "active", "asleep",
                                        "wakes up", "appends", "has appended"};
    args a = {.count = 0};
    uint32_t state = pki_load(&e->state);
    if (e->type == PKI_NCCL_PROXY_CTRL && state >= PKI_NCCL_CTRL_IDLE &&
        state <= PKI_NCCL_CTRL_APPEND_END)
        text(&a, "state", doing[state - PKI_NCCL_CTRL_IDLE]);
    number_if(&a, "graph", (e->flags & PKI_NCCL_CAPTURED) != 0);
    write_detail(name_of_call(e), pki_nccl_track_of_thread(e->thread),
                 pki_activity_ns_of_ticks(e->start), pki_activity_ns_of_ticks(e->stop), &a);
}
