/* tests/unit/gpu_capture.h - a graph with spans in it. */
#ifndef TESTS_GPU_CAPTURE_H
#define TESTS_GPU_CAPTURE_H

#include "gpu.h"

static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_COMPUTE, "inner");
static pk_region other = PK_REGION("other");

/* outer { inner, inner } and what is in them */
static inline CUgraph capture_with(CUstreamCaptureMode mode)
{
    CUgraph graph;
    assert_int_equal(gpu->capture_begin(the_stream, mode), CUDA_SUCCESS);
    gpu->work(the_stream);
    pk_gpu_begin(&outer, the_stream);
    for (int i = 0; i < 2; i++)
        PK_GPU_SCOPE(inner, the_stream)
        {
            gpu->work(the_stream);
        }
    pk_gpu_end(&outer, the_stream);
    assert_int_equal(gpu->capture_end(the_stream, &graph), CUDA_SUCCESS);
    return graph;
}

static inline CUgraph capture(void)
{
    return capture_with(CU_STREAM_CAPTURE_MODE_GLOBAL);
}

#endif
