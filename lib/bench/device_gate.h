/* lib/bench/device_gate.h - a CUDA stream that waits until the processor lets it go on.
 *
 * One word of host memory that the device sees. Shutting the gate puts a wait for the word's next
 * value into the stream (cuStreamWaitValue32); opening it stores that value, which asks nothing of
 * the driver. The word counts up, so an opening that comes late opens nothing of later.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct pki_bench_gate {
    CUresult(CUDAAPI *wait)(CUstream, CUdeviceptr, cuuint32_t value, unsigned flags);
    CUresult(CUDAAPI *old_wait)(CUstream, CUdeviceptr, cuuint32_t value, unsigned flags);
    CUresult(CUDAAPI *allocate)(void **block, size_t bytes, unsigned flags);
    CUresult(CUDAAPI *address)(CUdeviceptr *device, void *block, unsigned flags);
    CUresult(CUDAAPI *release)(void *block);
    uint32_t *word;
    CUdeviceptr place; /* the device's name for it */
    uint32_t shut;     /* how often; the word follows */
} pki_bench_gate;

/* With the stream's context current. NULL: it is there, and open. Else why it cannot be. */
const char *pki_bench_gate_make(pki_bench_gate *gate, void *library, CUdevice device,
                                CUstream stream);
void pki_bench_gate_destroy(pki_bench_gate *gate);

CUresult pki_bench_gate_shut(pki_bench_gate *gate, CUstream stream);
void pki_bench_gate_open(pki_bench_gate *gate); /* from any thread */
