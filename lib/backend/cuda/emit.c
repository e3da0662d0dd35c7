#include "backend/cuda/emit.h"

#include <math.h>
#include <stdio.h>

#include "core/names.h"
#include "session/activity.h"

#define TRACK_FIRST (1u << 20) /* of the tracks of spans; kernels have their streams' ids, below */

static uint64_t ns_of(const pki_cuda_lane *l, double device)
{
    double ns = pki_cuda_clock_ns(&l->context->anchors.clock, device);
    return ns > 0 ? (uint64_t)llround(ns) : 0;
}

/* Where a device's time lies in the session's; not before what the lane has told already, which adds
 * to the doubt. */
static uint64_t place(pki_cuda_lane *l, double device, double *doubt)
{
    uint64_t ns = ns_of(l, device);
    *doubt = pki_cuda_clock_doubt(&l->context->anchors.clock, device) +
             pki_cuda_step_ns(l->context, device);
    if (ns < l->last)
        *doubt += (double)(l->last - ns);
    l->last = PKI_MAX(l->last, ns);
    return l->last;
}

static void name_stream(const pki_cuda_lane *l, char *text, size_t size)
{
    if (l->stream == CU_STREAM_LEGACY)
        snprintf(text, size, "default stream");
    else if (l->stream == CU_STREAM_PER_THREAD)
        snprintf(text, size, "default stream of thread %u", l->tid);
    else
        snprintf(text, size, "stream %llu",
                 (unsigned long long)(l->stream_id ? l->stream_id : l->number));
}

/* Does another lane of this session show the same stream? */
static bool is_shared(const pki_cuda_lane *l)
{
    for (const pki_cuda_lane *o = pki_cuda_lanes(); o; o = o->next)
        if (o != l && pki_load_acquire(&o->life) == PKI_CUDA_OWNED && /* release: _lane_take */
            pki_load(&o->track) && o->track_session == l->track_session && !o->graph &&
            o->context == l->context && o->stream == l->stream && o->stream_id == l->stream_id)
            return true;
    return false;
}

void pki_cuda_name_lane(const pki_cuda_lane *l, const char *what, char *text, size_t size)
{
    char stream[48];
    name_stream(l, stream, sizeof stream);
    if (l->graph)
        snprintf(text, size, "graph %u, captured on %s (%s)", l->graph, stream, what);
    else if (l->stream != CU_STREAM_PER_THREAD && is_shared(l))
        snprintf(text, size, "%s (%s of thread %u)", stream, what, l->tid);
    else
        snprintf(text, size, "%s (%s)", stream, what);
}

static uint32_t track_of(pki_cuda_lane *l)
{
    char process[32], thread[96];
    uint32_t device = l->context->device;
    if (pki_load(&l->track) && l->track_session == pki_load(&pki_cuda_session))
        return pki_load(&l->track);
    l->track_session = pki_load(&pki_cuda_session);
    snprintf(process, sizeof process, "GPU %u", device);
    pki_cuda_name_lane(l, "spans", thread, sizeof thread);
    const pki_track track = {pki_track_device_pid(device), TRACK_FIRST + l->number, process, thread,
                             (uint32_t)l->stream_id * 2};
    pki_store(&l->track, pki_track_add(&track));
    return pki_load(&l->track);
}

static void begin(pki_cuda_lane *l, pki_cuda_read r)
{
    if (l->reading > PKI_CUDA_DEPTH) /* ends that nobody captured; see cuda/replay.h */
        l->reading = 0;
    l->read[l->reading++] = r;
}

void pki_cuda_emit_begin(pki_cuda_lane *l, uint32_t region, double device)
{
    pki_cuda_read r = {.region = region, .device = device};
    r.start = place(l, device, &r.doubt);
    begin(l, r);
}

void pki_cuda_emit_begin_failed(pki_cuda_lane *l, uint32_t region)
{
    begin(l, (pki_cuda_read){region, true, NAN, 0, l->last});
}

static pki_cuda_read *innermost(pki_cuda_lane *l, uint32_t region)
{
    for (uint32_t i = l->reading; i > 0; i--)
        if (l->read[i - 1].region == region)
            return &l->read[i - 1];
    return NULL;
}

double pki_cuda_emit_begun(pki_cuda_lane *l, uint32_t region)
{
    const pki_cuda_read *r = innermost(l, region);
    return r && !r->failed ? r->device : NAN;
}

static pki_cuda_read pop(pki_cuda_lane *l, uint32_t region)
{
    const pki_cuda_read *r = innermost(l, region);
    pki_cuda_read found = r ? *r : (pki_cuda_read){region, true, NAN, 0, l->last};
    if (r)
        l->reading = (uint32_t)(r - l->read);
    return found;
}

void pki_cuda_emit_cancel(pki_cuda_lane *l, uint32_t region)
{
    pop(l, region);
}

/* Whole microseconds: arguments that differ in each span are frames of their own to speedscope. */
int64_t pki_cuda_doubt_of(const pki_cuda_lane *l)
{
    return (int64_t)ceil(l->doubt / 1000) * 1000;
}

static uint64_t place_end(pki_cuda_lane *l, const pki_cuda_read *begun, double device)
{
    uint64_t ended = place(l, device, &l->doubt);
    l->doubt = fmax(l->doubt, begun->doubt);
    return ended;
}

void pki_cuda_emit_end(pki_cuda_lane *l, uint32_t region, double device)
{
    pki_cuda_read r = pop(l, region);
    uint64_t ended = place_end(l, &r, device);
    const pki_name *name = pki_name_at(region);
    const pki_activity_arg doubt = {"uncertainty_ns", NULL, pki_cuda_doubt_of(l)};
    const pki_activity span = {
        .kind = PKI_ACTIVITY_SPAN,
        .track = track_of(l),
        .name = name ? name->name : "?",
        .name_length = name ? name->length : 1,
        .start = r.start,
        .end = ended,
        .region = region,
        .device = l->context->device,
        .context = l->context->number,
        .stream = (uint32_t)l->stream_id,
        .stream_hidden = 1,
        .args = &doubt,
        .arg_count = 1,
    };
    pki_activity_add(&span);
}

void pki_cuda_emit_operation(pki_cuda_lane *l, uint32_t region, double device,
                             pki_cuda_operation *op, bool replayed)
{
    pki_cuda_read r = pop(l, region);
    uint64_t ended = place_end(l, &r, device);
    pki_cuda_tell_operation(l, r.start, ended, op, replayed);
    if (!replayed)
        pki_cuda_operation_complete(op);
}
