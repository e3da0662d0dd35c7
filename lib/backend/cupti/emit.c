#include "backend/cupti/emit.h"

#include <stdio.h>
#include <string.h>

#include "backend/cupti/attribute.h"
#include "backend/cupti/calls.h"
#include "backend/cupti/names.h"
#include "backend/cupti/pools.h"
#include "backend/cupti/tracks.h"
#include "core/names.h"
#include "session/activity.h"

#define ARGS 6

static pki_activity basics(const pki_cupti_record *r, const pki_cupti_tie *tie, const char *name)
{
    pki_activity a = {.name = name,
                      .name_length = strlen(name),
                      .start = r->start,
                      .end = r->end,
                      .device = r->device,
                      .context = r->context,
                      .stream = r->stream,
                      .flow = tie->flow,
                      .correlation = tie->correlation};
    if (tie->external) {
        a.region = pki_cupti_region_of(tie->external);
        a.external = pki_cupti_shown_id(tie->external);
    }
    return a;
}

static pki_copy copy_of(uint32_t kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
        return PKI_COPY_HTOD;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
        return PKI_COPY_DTOH;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
        return PKI_COPY_DTOD;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
        return PKI_COPY_HTOH;
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
        return PKI_COPY_PTOP;
    default:
        return PKI_COPY_UNKNOWN;
    }
}

/* ---- on devices ---- */

static size_t describe_kernel(const pki_cupti_record *r, pki_activity *a, pki_activity_arg *args,
                              char *text, size_t size)
{
    a->kind = PKI_ACTIVITY_KERNEL;
    memcpy(a->grid, r->grid, sizeof a->grid);
    memcpy(a->block, r->block, sizeof a->block);
    a->registers = r->registers;
    a->shared_bytes = r->shared_bytes;
    if (r->cluster[0] * r->cluster[1] * r->cluster[2] <= 1)
        return 0;
    snprintf(text, size, "%ux%ux%u", r->cluster[0], r->cluster[1], r->cluster[2]);
    args[0] = (pki_activity_arg){"cluster", text, 0};
    return 1;
}

static size_t describe_copy(const pki_cupti_record *r, pki_activity *a, pki_activity_arg *args)
{
    a->kind = PKI_ACTIVITY_MEMCPY;
    a->copy = copy_of(r->detail);
    a->bytes = r->bytes;
    if (a->copy != PKI_COPY_PTOP || r->from_device == PKI_NO_DEVICE)
        return 0;
    args[0] = (pki_activity_arg){"fromDevice", NULL, r->from_device};
    args[1] = (pki_activity_arg){"toDevice", NULL, r->to_device};
    return 2;
}

static void emit_on_device(const pki_cupti_record *r, const pki_cupti_tie *tie)
{
    char name[128], text[48];
    pki_activity_arg args[ARGS];
    if (r->what != PKI_CUPTI_KERNEL)
        pki_cupti_name(r, name, sizeof name);
    pki_activity a = basics(r, tie, r->what == PKI_CUPTI_KERNEL ? r->name : name);
    a.graph = r->id;
    a.graph_node = r->node;
    a.args = args;
    if (r->what == PKI_CUPTI_KERNEL)
        a.arg_count = describe_kernel(r, &a, args, text, sizeof text);
    else if (r->what == PKI_CUPTI_COPY)
        a.arg_count = describe_copy(r, &a, args);
    else
        a.kind = r->what == PKI_CUPTI_SET ? PKI_ACTIVITY_MEMSET : PKI_ACTIVITY_GRAPH;
    a.bytes = r->bytes;
    a.track = pki_cupti_stream_track(r->device, r->context, r->stream, r->start, r->end);
    pki_activity_add(&a);
}

/* ---- on threads ---- */

/* As PyTorch's profiler has it; CUPTI gives no time but the call's. */
static void emit_event(const pki_cupti_record *call, const pki_cupti_link *l)
{
    static const char name[] = "cudaEvent";
    pki_activity_arg id = {"event_id", NULL, l->event};
    pki_activity a = {.kind = PKI_ACTIVITY_EVENT,
                      .name = name,
                      .name_length = sizeof name - 1,
                      .start = call->end,
                      .end = call->end,
                      .device = pki_cupti_context_device(l->event_context),
                      .context = l->event_context,
                      .stream = l->event_stream,
                      .correlation = l->correlation,
                      .args = &id,
                      .arg_count = 1};
    a.track = pki_cupti_event_track(a.device, a.start);
    pki_activity_add(&a);
}

static void emit_call(const pki_cupti_record *r, const pki_cupti_tie *tie)
{
    bool runtime = r->what == PKI_CUPTI_RUNTIME;
    const pki_cupti_call *call = pki_cupti_call_of(
        runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, r->detail);
    pki_activity_arg failed = {"error", NULL, r->result};
    pki_activity a = basics(r, tie, call->name);
    a.kind = runtime ? PKI_ACTIVITY_RUNTIME : PKI_ACTIVITY_DRIVER;
    a.args = &failed;
    a.arg_count = r->result != 0;
    a.track = pki_cupti_thread_track(r->thread);
    pki_activity_add(&a);
    if (tie->record && r->result == 0)
        emit_event(r, tie->record);
}

/* Within the call that waited, and not as long as that: one slice has to be around the other. */
static void place_wait(const pki_cupti_tie *tie, pki_activity *a)
{
    bool within =
        tie->thread && a->start <= tie->end && a->end >= tie->start && tie->end - tie->start > 2;
    if (within) {
        a->start = PKI_MAX(a->start, tie->start + 1);
        a->end = PKI_MAX(a->start, PKI_MIN(a->end, tie->end - 1));
    }
    a->track =
        within ? pki_cupti_thread_track(tie->thread) : pki_cupti_wait_track(a->start, a->end);
}

/* For HTA's critical path: beside the device's kernels, with the stream that waits and the call
 * that recorded what it waits for. A stream's wait takes the host no longer than the call. */
static void place_beside_kernels(const pki_cupti_record *r, const pki_cupti_tie *tie,
                                 pki_activity *a, pki_activity_arg *args)
{
    a->stream_hidden = 0;
    a->track = pki_cupti_device_wait_track(pki_cupti_context_device(r->context), a->start, a->end);
    if (!tie->source.correlation)
        return;
    args[a->arg_count++] = (pki_activity_arg){"wait_on_stream", NULL, tie->source.stream};
    args[a->arg_count++] =
        (pki_activity_arg){"wait_on_cuda_event_record_corr_id", NULL, tie->source.correlation};
}

static void emit_wait(const pki_cupti_record *r, const pki_cupti_tie *tie)
{
    char name[32];
    pki_cupti_name(r, name, sizeof name);
    pki_activity_arg args[ARGS] = {{"cuda_sync_kind", name, 0}};
    pki_activity a = basics(r, tie, name);
    a.kind = PKI_ACTIVITY_SYNC;
    a.stream_hidden = 1;
    a.args = args;
    a.arg_count = 1;
    if (r->id)
        args[a.arg_count++] = (pki_activity_arg){"wait_on_cuda_event_id", NULL, (int64_t)r->id};
    if (pki_cupti_events_wanted())
        place_beside_kernels(r, tie, &a, args);
    else
        place_wait(tie, &a);
    pki_activity_add(&a);
}

static void emit_overhead(const pki_cupti_record *r, const pki_cupti_tie *tie)
{
    char name[48];
    pki_cupti_name(r, name, sizeof name);
    pki_activity_arg thread = {"thread", NULL, r->thread};
    pki_activity a = basics(r, tie, name);
    a.kind = PKI_ACTIVITY_OVERHEAD;
    a.args = &thread;
    a.arg_count = r->thread != 0;
    a.track = pki_cupti_overhead_track(r->start, r->end);
    pki_activity_add(&a);
}

void pki_cupti_emit(const pki_cupti_record *r, const pki_cupti_tie *tie)
{
    switch (r->what) {
    case PKI_CUPTI_RUNTIME:
    case PKI_CUPTI_DRIVER:
        emit_call(r, tie);
        break;
    case PKI_CUPTI_SYNC:
        emit_wait(r, tie);
        break;
    case PKI_CUPTI_OVERHEAD:
        emit_overhead(r, tie);
        break;
    case PKI_CUPTI_POOL:
        pki_cupti_pool_sample(r);
        break;
    default:
        emit_on_device(r, tie);
    }
}
