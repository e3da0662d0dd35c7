/* lib/backend/cuda/capture.h - a begin or an end on a stream that is being captured.
 *
 * An event that is recorded into a capture as an external one becomes a node of the graph: nothing
 * depends on it but what the stream does next, and each replay stamps it. Of the calls made here
 * none is one that a capture forbids, whatever its mode.
 */
#ifndef PKI_BACKEND_CUDA_CAPTURE_H
#define PKI_BACKEND_CUDA_CAPTURE_H

#include "backend/cuda/lane.h"
#include "backend/cuda/words.h"

/* Why not, or PKI_CUDA_FINE. The pair is the graph's from here on, or back in its pool. */
pki_cuda_reason pki_cuda_capture_begin(const pki_cuda_lane *lane, pki_cuda_open *open,
                                       uint32_t pair, CUresult *code);
pki_cuda_reason pki_cuda_capture_end(const pki_cuda_lane *lane, const pki_cuda_open *open,
                                     CUresult *code);

/* What was begun in the capture has no end: its replays are nothing. */
void pki_cuda_capture_cancel(const pki_cuda_lane *lane, const pki_cuda_open *open);

#endif
