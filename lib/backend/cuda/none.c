/* lib/backend/cuda/none.c - a build without CUDA's headers: pk/gpu.h is there and does nothing. */
#include <pk/gpu.h>
#include <pk/nccl.h>

#include "backend/cuda/counts.h"
#include "backend/none.h"

PKI_BACKEND_NONE(cuda, true, "perfkit was built without CUDA's headers");

uint32_t pk_gpu_gate_;

void pk_gpu_begin_on_(pk_region *region, void *stream)
{
    (void)region, (void)stream;
}

void pk_gpu_end_on_(pk_region *region, void *stream)
{
    (void)region, (void)stream;
}

void pk_gpu_graph_launching_on_(void *exec, void *graph, void *stream)
{
    (void)exec, (void)graph, (void)stream;
}

void pk_nccl_begin_on_(pk_comm *comm, pk_comm_op op, pk_comm_type type, uint64_t count,
                       int32_t peer, void *stream)
{
    (void)comm, (void)op, (void)type, (void)count, (void)peer, (void)stream;
}

void pk_nccl_end_on_(pk_comm *comm, void *stream, int32_t result)
{
    (void)comm, (void)stream, (void)result;
}

void pk_nccl_group_start(void) {}

void pk_nccl_group_launch(void) {}

void pk_nccl_group_end(int32_t result)
{
    (void)result;
}

void pk_nccl_async(pk_comm *comm, int32_t state)
{
    (void)comm, (void)state;
}

void pk_nccl_abort(pk_comm *comm)
{
    (void)comm;
}

pk_status(pk_get_gpu_counts)(pk_gpu_counts *counts)
{
    const pk_gpu_counts none = {.size = sizeof none};
    return pki_cuda_copy_counts(counts, &none);
}
