/* lib/backend/cuda/none.c - a build without CUDA's headers: pk/gpu.h is there and does nothing. */
#include <pk/gpu.h>

#include "backend/cuda/counts.h"
#include "backend/none.h"

PKI_BACKEND_NONE(cuda, true, "this build of perfkit was made without CUDA's headers");

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

pk_status pk_get_gpu_counts(pk_gpu_counts *counts)
{
    const pk_gpu_counts none = {.size = sizeof none};
    return pki_cuda_give_counts(counts, &none);
}
