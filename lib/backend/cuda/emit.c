#include "backend/cuda/emit.h"

#include <math.h>
#include <stdio.h>

#include "backend/cuda/comm/emit.h"
#include "core/names.h"
#include "session/activity.h"

#define TRACK_FIRST                                                                                \
    (1u << 20) /* of the tracks of spans; kernels have their streams' ids, below                   \
                */

static uint64_t ns_of(const pki_cuda_lane *l, double device)
{
    double ns = pki_cuda_clock_ns(&l->context->anchors.clock, device);
    return ns > 0 ? (uint64_t)llround(ns) : 0;
}

/* Where a device's time lies in the session's; not before what the lane has emitted already, which
 * adds to the doubt. */
static uint64_t session_time(pki_cuda_lane *l, double device, double *doubt)
{
    uint64_t ns = ns_of(l, device);
    *doubt = pki_cuda_clock_doubt(&l->context->anchors.clock, device) +
             pki_cuda_step_ns(l->context, device);
    if (ns < l->last)
        *doubt += (double)(l->last - ns);
    l->last = PKI_MAX(l->last, ns);
    return l->last;
}

static uint32_t track_of(pki_cuda_lane *l)
{
    char process[32], thread[96];
    uint32_t device = l->context->device;
    if (pki_load(&l->track) && l->track_session == pki_load(&pki_cuda_session))
        return pki_load(&l->track);
    l->track_session = pki_load(&pki_cuda_session);
    snprintf(process, sizeof process, "GPU %u", device);
    pki_cuda_lane_name(l, "spans", thread, sizeof thread);
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
    r.start = session_time(l, device, &r.doubt);
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

static uint64_t session_end(pki_cuda_lane *l, const pki_cuda_read *begun, double device)
{
    uint64_t ended = session_time(l, device, &l->doubt);
    l->doubt = fmax(l->doubt, begun->doubt);
    return ended;
}

void pki_cuda_emit_end(pki_cuda_lane *l, uint32_t region, double device)
{
    pki_cuda_read r = pop(l, region);
    uint64_t ended = session_end(l, &r, device);
    const pki_name *name = pki_name_at(region);
    const pki_activity_arg doubt = {"uncertainty_ns", NULL, pki_cuda_lane_doubt_ns(l)};
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
    uint64_t ended = session_end(l, &r, device);
    pki_cuda_emit_parts(l, r.start, ended, op, replayed);
    if (!replayed)
        pki_cuda_operation_complete(op);
}
