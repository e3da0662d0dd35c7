/* lib/backend/cuda/capture.h - a begin or an end on a stream that is being captured.
 *
 * An event that is recorded into a capture as an external one becomes a node of the graph: nothing
 * depends on it but what the stream does next, and each replay stamps it. Of the calls made here
 * none is one that a capture forbids, whatever its mode.
 *
 * Where no such node may be, spans are kept out. That can be known of the body of a conditional
 * node, which the driver tells when the first one is added, and where what the stream does next
 * depends on a part of a kernel (programmatic dependent launch), which the stream's capture tells.
 * It cannot be known that a graph will be instantiated for launches from the device, that a later
 * kernel is launched with the programmatic attribute, or that the graph becomes the child of a
 * conditional node's body: for those there is PK_GPU_CAPTURE=off.
 */
#pragma once

#include "backend/cuda/lane.h"
#include "backend/cuda/reasons.h"

/* Off: captures are left alone (PK_GPU_CAPTURE). Between sessions. */
void pki_cuda_capture_want(bool on);

/* Why not, or PKI_CUDA_FINE. Takes a pair, which is the graph's from here on, and what lies between
 * its events, which may be NULL. */
pki_cuda_reason pki_cuda_capture_begin(const pki_cuda_lane *lane, pki_cuda_open *open,
                                       pki_cuda_operation *op, CUresult *code);
pki_cuda_reason pki_cuda_capture_end(const pki_cuda_lane *lane, const pki_cuda_open *open,
                                     CUresult *code);

/* What was begun in the capture has no end: its replays are nothing. */
void pki_cuda_capture_cancel(const pki_cuda_lane *lane, const pki_cuda_open *open);
