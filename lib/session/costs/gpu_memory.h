/* lib/session/costs/gpu_memory.h - what CUDA allocates, by region (costs=memory).
 *
 * A backend hears of it and hands it over here, in the order of its times; it goes into the account
 * (lib/measure/memory/gpu.h) and, as counters, into the trace: "gpuN.allocated", "memory.pinned",
 * and "gpuN.pool_reserved". All under the drain lock.
 */
#pragma once

#include "measure/memory/gpu.h"
#include "session/session.h"

/* ns of the session. */
void pki_gpu_memory_do(const pki_gpu_operation *operation);
void pki_gpu_memory_pool(uint32_t device, uint64_t address, uint64_t size, uint64_t used, bool gone,
                         uint64_t ns);

/* How much the device has. */
void pki_gpu_memory_total(uint32_t device, uint64_t bytes);

/* All that is known until now has been handed over; so many records were dropped by CUPTI, and so
 * many here, ever. */
void pki_gpu_memory_complete(uint64_t dropped, uint64_t lost);

/* What is known so far, with the most since the last cut. False without memory. */
bool pki_gpu_memory_so_far(pki_gpu_memory_sums *out);
void pki_gpu_memory_cut(void);
