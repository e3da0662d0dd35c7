/* What stream 0 is in a file that is compiled for default streams of threads, as nvcc does with
 * --default-stream per-thread. */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM 1

#include "gpu.h"

void span_of_this_thread(pk_region *region)
{
    pk_gpu_begin(region, NULL);
    pk_gpu_end(region, NULL);
    PK_GPU_SCOPE(*region, NULL);
}
