/* lib/backend/cuda/span.c - pk_gpu_begin and pk_gpu_end: what the program pays for.
 *
 * Outside a capture a begin asks for the stream's capture state, takes a pair of events, records
 * one and leaves a mark; an end asks, records the other and leaves a mark. Neither call of the
 * driver's is one that a capture forbids: nothing has to be exchanged around them.
 */
#include <pk/gpu.h>

#include <errno.h>

#include "backend/cuda/graph.h"
#include "backend/cuda/lane.h"
#include "backend/cuda/cuda.h"
#include "core/names.h"

/* A span that is counted now and has no record. */
static PKI_COLD void count_out(pki_cuda_open *o, uint64_t *counter, pki_cuda_reason reason,
                               CUresult code)
{
    o->how = PKI_CUDA_COUNTED;
    pki_store_release(counter, pki_load(counter) + 1); /* acquire: pki_cuda_sum */
    pki_cuda_note_reason(reason, code, 0);
}

/* What a call that should have succeeded says of the context. */
static PKI_COLD void count_failed(pki_cuda_lane *l, pki_cuda_open *o, CUresult code)
{
    if (!pki_cuda_context_failed(l->context, code))
        pki_cuda_context_alive(l->context);
    l->calls = UINT32_MAX; /* the next begin looks whether this is still the same stream */
    count_out(o, &l->counters.skipped, PKI_CUDA_CALL_FAILED, code);
}

static inline void begin_plain(pki_cuda_lane *l, pki_cuda_open *o, pki_cuda_operation *op)
{
    if (PKI_UNLIKELY(!pki_cuda_lane_has_room(l, l->depth))) {
        count_out(o, &l->counters.dropped, PKI_CUDA_NO_ROOM, CUDA_SUCCESS);
        return;
    }
    uint32_t pair = pki_cuda_pair_acquire(l->context);
    if (PKI_UNLIKELY(!pair)) {
        count_out(o, &l->counters.dropped, PKI_CUDA_NO_PAIR, CUDA_SUCCESS);
        return;
    }
    pki_cuda_pair *p = pki_cuda_pair_at(&l->context->pool, pair);
    CUresult code = pki_cuda_record(l->context->handle, p->begin, l->stream);
    if (PKI_UNLIKELY(code)) {
        pki_cuda_pool_release(&l->context->pool, pair);
        count_failed(l, o, code);
        return;
    }
    if (op) {
        pki_cuda_operation_hand_over(op, &p->operation);
        pki_cuda_operation_enqueue(&p->operation);
    }
    o->how = PKI_CUDA_RECORDED;
    o->pair = pair;
    pki_cuda_lane_mark(l, PKI_CUDA_BEGIN, pair, o->region);
}

/* What a capture is kept free of is not done now, and not as often as it is replayed. */
static PKI_COLD void begin_captured(pki_cuda_lane *l, pki_cuda_open *o, pki_cuda_operation *op)
{
    CUresult code = CUDA_SUCCESS;
    pki_cuda_reason reason = pki_cuda_capture_begin(l, o, op, &code);
    bool dropped = reason == PKI_CUDA_NO_PAIR || reason == PKI_CUDA_CAPTURE_NO_PAIR;
    if (!reason)
        return;
    if (op)
        pki_cuda_operation_abandon(op);
    pki_bump(&l->counters.kept_out, pki_cuda_is_capture_reason(reason));
    count_out(o, dropped ? &l->counters.dropped : &l->counters.skipped, reason, code);
}

/* The state that makes a span one of a capture, or impossible. */
static PKI_COLD void begin_otherwise(pki_cuda_lane *l, pki_cuda_open *o, CUresult code,
                                     CUstreamCaptureStatus status, pki_cuda_operation *op)
{
    if (code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        count_out(o, &l->counters.skipped, PKI_CUDA_LEGACY_CAPTURED, CUDA_SUCCESS);
    else if (code)
        count_failed(l, o, code);
    else if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        begin_captured(l, o, op);
    else
        count_out(o, &l->counters.skipped, PKI_CUDA_CAPTURE_INVALID, CUDA_SUCCESS);
}

static PKI_COLD void begin_too_deep(pki_cuda_lane *l)
{
    l->over++;
    pki_store_release(&l->counters.dropped, l->counters.dropped + 1); /* acquire: pki_cuda_sum */
}

static inline void begin(pki_cuda_lane *l, uint32_t region, pki_cuda_operation *op)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    pki_bump(&l->counters.begun, 1);
    if (PKI_UNLIKELY(l->depth == PKI_CUDA_DEPTH)) {
        begin_too_deep(l);
        return;
    }
    pki_cuda_open *o = &l->open[l->depth];
    o->region = region;
    if (PKI_UNLIKELY(pki_load(&l->context->dead))) {
        count_out(o, &l->counters.skipped, PKI_CUDA_FINE, CUDA_SUCCESS);
    } else {
        CUresult code = pki_cuda.is_capturing(l->stream, &status);
        if (PKI_UNLIKELY(code || status != CU_STREAM_CAPTURE_STATUS_NONE))
            begin_otherwise(l, o, code, status, op);
        else
            begin_plain(l, o, op);
    }
    l->depth++;
}

/* What was begun has no end: the collector has to forget it. */
static PKI_COLD void cancel(pki_cuda_lane *l, pki_cuda_open *o, pki_cuda_reason reason,
                            CUresult code)
{
    pki_cuda_pair_at(&l->context->pool, o->pair)->refused = reason == PKI_CUDA_REFUSED;
    pki_cuda_lane_mark(l, PKI_CUDA_CANCEL, o->pair, o->region);
    count_out(o, &l->counters.skipped, reason, code);
}

static void end_plain(pki_cuda_lane *l, pki_cuda_open *o)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (PKI_UNLIKELY(pki_load(&l->context->dead))) {
        pki_cuda_lane_mark(l, PKI_CUDA_END, o->pair, o->region); /* the collector counts it lost */
        return;
    }
    CUresult code = pki_cuda.is_capturing(l->stream, &status);
    if (PKI_UNLIKELY(!code && status != CU_STREAM_CAPTURE_STATUS_NONE)) {
        cancel(l, o, PKI_CUDA_CAPTURE_SPLIT, CUDA_SUCCESS);
        return;
    }
    if (PKI_LIKELY(!code))
        code = pki_cuda_record(l->context->handle,
                               pki_cuda_pair_at(&l->context->pool, o->pair)->end, l->stream);
    if (PKI_UNLIKELY(code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)) {
        cancel(l, o, PKI_CUDA_LEGACY_CAPTURED, CUDA_SUCCESS);
    } else if (PKI_UNLIKELY(pki_cuda_context_failed(l->context, code))) {
        pki_cuda_lane_mark(l, PKI_CUDA_END, o->pair, o->region);
    } else if (PKI_UNLIKELY(code)) {
        cancel(l, o, PKI_CUDA_CALL_FAILED, code);
    } else {
        pki_cuda_lane_mark(l, PKI_CUDA_END, o->pair, o->region);
    }
}

static PKI_COLD void end_captured(pki_cuda_lane *l, pki_cuda_open *o)
{
    CUresult code = CUDA_SUCCESS;
    pki_cuda_reason reason = pki_cuda_capture_end(l, o, &code);
    pki_bump(&l->counters.kept_out, pki_cuda_is_capture_reason(reason));
    if (reason)
        count_out(o, &l->counters.skipped, reason, code);
    else
        pki_bump(&l->counters.captured, 1);
}

static void end_top(pki_cuda_lane *l)
{
    pki_cuda_open *o = &l->open[--l->depth];
    if (PKI_LIKELY(o->how == PKI_CUDA_RECORDED))
        end_plain(l, o);
    else if (o->how == PKI_CUDA_CAPTURED)
        end_captured(l, o);
    else if (o->how == PKI_CUDA_PENDING) /* its end would stand before it */
        cancel(l, o, PKI_CUDA_LATE, CUDA_SUCCESS);
}

/* Not the innermost one: those inside it end, too, if it is open at all. */
static PKI_COLD void end_below(pki_cuda_lane *l, uint32_t region)
{
    uint32_t depth = l->depth;
    while (depth > 0 && l->open[depth - 1].region != region)
        depth--;
    if (depth == 0) {
        pki_bump(&l->counters.stray_ends, 1);
        return;
    }
    pki_bump(&l->counters.unbalanced, l->depth - depth);
    while (l->depth >= depth)
        end_top(l);
}

static PKI_COLD bool wake_up(void)
{
    if (pki_cuda_decide() == PKI_CUDA_LIVE)
        return true;
    pki_store(&pk_gpu_gate_, 0u);
    return false;
}

static inline void end(pki_cuda_lane *l, uint32_t id)
{
    if (PKI_UNLIKELY(l->over > 0))
        l->over--;
    else if (PKI_LIKELY(l->depth > 0 && l->open[l->depth - 1].region == id))
        end_top(l);
    else
        end_below(l, id);
}

bool pki_cuda_is_ready(void)
{
    return PKI_LIKELY(pki_cuda_known() == PKI_CUDA_LIVE) || wake_up();
}

void pk_gpu_begin_on_(pk_region *region, void *stream)
{
    int saved = errno;
    uint32_t id = pki_load(&region->id);
    pki_cuda_lane *l =
        pki_cuda_is_ready() ? pki_cuda_lane_of(pki_cuda_stream_of(stream), true) : NULL;
    if (PKI_LIKELY(l))
        begin(l, PKI_LIKELY(id) ? id : pki_region_id(region), NULL);
    errno = saved;
}

void pk_gpu_end_on_(pk_region *region, void *stream)
{
    int saved = errno;
    uint32_t id = pki_load(&region->id);
    pki_cuda_lane *l =
        pki_cuda_is_ready() ? pki_cuda_lane_of(pki_cuda_stream_of(stream), false) : NULL;
    if (PKI_LIKELY(l))
        end(l, PKI_LIKELY(id) ? id : pki_region_id(region)); /* 0: it is thinned, or sampled */
    errno = saved;
}

void pki_cuda_operation_begin(pki_cuda_lane *l, uint32_t name, pki_cuda_operation *op)
{
    begin(l, name, op);
    if (op->what)
        pki_cuda_operation_unseen(op);
}

void pki_cuda_operation_end(pki_cuda_lane *l, uint32_t name)
{
    end(l, name);
}

static PKI_COLD pki_cuda_open *innermost(pki_cuda_lane *l, uint32_t name)
{
    pki_cuda_open *o = l->depth > 0 && l->over == 0 ? &l->open[l->depth - 1] : NULL;
    return o && o->region == name ? o : NULL;
}

PKI_COLD bool pki_cuda_operation_wait(pki_cuda_lane *l, uint32_t name)
{
    pki_cuda_open *o = innermost(l, name);
    if (!o || o->how != PKI_CUDA_RECORDED)
        return false;
    o->how = PKI_CUDA_PENDING;
    return true;
}

/* Nothing of the operation lies between the events, or it may not. */
PKI_COLD void pki_cuda_operation_refused(pki_cuda_lane *l, uint32_t name, bool by_error)
{
    pki_cuda_reason reason = by_error ? PKI_CUDA_REFUSED : PKI_CUDA_LATE;
    pki_cuda_open *o = innermost(l, name);
    if (!o || o->how == PKI_CUDA_COUNTED) {
        end(l, name);
        return;
    }
    l->depth--;
    pki_bump(&l->counters.refused, by_error);
    if (o->how != PKI_CUDA_CAPTURED) {
        cancel(l, o, reason, CUDA_SUCCESS);
    } else {
        pki_cuda_capture_cancel(l, o);
        count_out(o, &l->counters.skipped, reason, CUDA_SUCCESS);
    }
}

PKI_COLD void pki_cuda_operation_settle(pki_cuda_lane *l, uint32_t name, bool arrived,
                                        bool by_error)
{
    pki_cuda_open *o = innermost(l, name);
    if (!o || o->how != PKI_CUDA_PENDING)
        return;
    o->how = PKI_CUDA_RECORDED;
    if (arrived)
        end_top(l);
    else
        pki_cuda_operation_refused(l, name, by_error);
}
