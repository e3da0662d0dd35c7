/* lib/backend/cuda/cuda.h - the collector's part: asks the events, and makes spans of them */
#pragma once

#include <pk/gpu.h>

#include <stdbool.h>
#include <stdint.h>

#include "backend/cuda/api.h"
#include "backend/cuda/lane.h"
#include "base/log.h"

/* ---- why a span is missing, in words, for pk_backend_status ---- */

typedef enum pki_cuda_reason {
    PKI_CUDA_FINE,
    PKI_CUDA_SAMPLED, /* the mildest first: a milder one does not replace another */
    PKI_CUDA_CAPTURE_OFF,
    PKI_CUDA_REFUSED,
    PKI_CUDA_LATE,
    PKI_CUDA_CAPTURE_NO_EVENTS,
    PKI_CUDA_CAPTURE_PROGRAMMATIC,
    PKI_CUDA_CAPTURE_NO_PAIR,
    PKI_CUDA_NO_PAIR,
    PKI_CUDA_NO_ROOM,
    PKI_CUDA_NO_MEMORY,
    PKI_CUDA_NO_END,
    PKI_CUDA_NOT_REACHED,
    PKI_CUDA_LEGACY_CAPTURED,
    PKI_CUDA_CAPTURE_INVALID,
    PKI_CUDA_CAPTURE_SPLIT,
    PKI_CUDA_CAPTURE_OLD,
    PKI_CUDA_CAPTURE_FAILED,
    PKI_CUDA_NO_CONTEXT,
    PKI_CUDA_CALL_FAILED,
    PKI_CUDA_CONTEXT_GONE,
    PKI_CUDA_CONTEXT_DEAD,
    PKI_CUDA_REASONS
} pki_cuda_reason;

/* Is it one for which a capture was left alone? */
static inline bool pki_cuda_is_capture_reason(pki_cuda_reason reason)
{
    return reason == PKI_CUDA_CAPTURE_OFF || reason == PKI_CUDA_CAPTURE_NO_EVENTS ||
           reason == PKI_CUDA_CAPTURE_PROGRAMMATIC;
}

/* Remembers it, if nothing graver is remembered. Any thread. context: its number, or 0. */
void pki_cuda_note_reason(pki_cuda_reason reason, CUresult code, uint32_t context);

/* ---- from what the events say to spans on a track (cuda/lane.c) ---- */

/* Called by the asker, for the begins and ends of a lane in their order. What the map of the
 * device's clock says is raised to what has been said before on this lane, by no more than the
 * steps of the driver's floats: so spans of a lane keep their order and nest. */

/* device: when, on the device's clock; NaN: that could not be read. */
void pki_cuda_emit_begin(pki_cuda_lane *lane, uint32_t region, double device);

/* Where the innermost begin of this region lies on the device's clock; NaN: it could not be read,
 * or there is none. */
double pki_cuda_emit_begun(pki_cuda_lane *lane, uint32_t region);

/* Its begin could not be read, or its end cannot: no span. */
void pki_cuda_emit_cancel(pki_cuda_lane *lane, uint32_t region);

/* The span that began there ends. */
void pki_cuda_emit_end(pki_cuda_lane *lane, uint32_t region, double device);

/* The same for one that is an operation, which is complete then; of a replay, its pattern. */
void pki_cuda_emit_operation(pki_cuda_lane *lane, uint32_t region, double device,
                             pki_cuda_operation *op, bool replayed);
