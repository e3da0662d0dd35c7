/* lib/backend/cuda/emit.h - from what the events say to spans on a track.
 *
 * Called by the collector, for the begins and ends of a lane in their order. What the map of the
 * device's clock says is raised to what has been said before on this lane, by no more than the
 * steps of the driver's floats: so spans of a lane keep their order and nest.
 */
#pragma once

#include "backend/cuda/lane.h"

/* device: when, on the device's clock. */
void pki_cuda_emit_begin(pki_cuda_lane *lane, uint32_t region, double device);

/* Its begin could not be read, or its end cannot: no span. */
void pki_cuda_emit_begin_failed(pki_cuda_lane *lane, uint32_t region);
void pki_cuda_emit_cancel(pki_cuda_lane *lane, uint32_t region);

/* Where the innermost begin of this region lies on the device's clock; NaN: it could not be read,
 * or there is none. */
double pki_cuda_emit_begun(pki_cuda_lane *lane, uint32_t region);

/* The span that began there ends. */
void pki_cuda_emit_end(pki_cuda_lane *lane, uint32_t region, double device);

/* The same for one that is an operation, which is complete then; of a replay, its pattern. */
void pki_cuda_emit_operation(pki_cuda_lane *lane, uint32_t region, double device,
                             pki_cuda_operation *op, bool replayed);
