/* tests/unit/gpu_per_thread.h - see gpu_per_thread.c. */
#ifndef TESTS_GPU_PER_THREAD_H
#define TESTS_GPU_PER_THREAD_H

#include <pk/gpu.h>

/* Two of them. */
void span_of_this_thread(pk_region *region);

#endif
