/* lib/backend/cuda/comm/pending.h - operations of this thread whose call has answered
 * ncclInProgress: they come into their stream later, and have when ncclCommGetAsyncError answers
 * success for the first time. Only then their end is recorded, behind them.
 *
 * A lane is its thread's, so only the thread that made the call can end it. What is not asked about
 * there until the next operation on the communicator is given up: when it came is not known.
 */
#pragma once

#include "backend/cuda/lane.h"

/* False: there are too many. One entry for each communicator that a group has an operation of. */
bool pki_cuda_pending_add(pk_comm *comm, pki_cuda_lane *lane, CUstream stream, uint32_t name);

/* What has become of those on the communicator; NULL asks for nothing. */
typedef enum pki_cuda_arrival {
    PKI_CUDA_ARRIVED,
    PKI_CUDA_NEVER_ASKED,
    PKI_CUDA_FAILED
} pki_cuda_arrival;
void pki_cuda_pending_settle(const pk_comm *comm, pki_cuda_arrival how);

/* This thread ends. */
void pki_cuda_pending_free(void);
