/* lib/backend/nvml/sampler.h - a thread that reads the devices, and what it has read.
 *
 * Each reading of each device has a period of its own: 100 ms, or a hundred times what the call
 * took, whichever is longer; a single slow call no more than doubles it. A reading that fails is
 * tried again more and more rarely, and given up where NVML says that it will never work, or after
 * eight failures in a row.
 *
 * All functions but the thread's own are called under the session's drain lock, or by a probe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <pk/counter.h>
#include <pk/session.h>

#include "backend/nvml/reading.h"
#include "backend/nvml/visible.h"

typedef struct pki_nvml_sample {
    pk_counter *counter;
    double value;
    uint64_t when;            /* CLOCK_MONOTONIC, ns */
    unsigned device, ordinal; /* of this process's list; of CUDA */
    uint32_t reasons;         /* pki_nvml_reason bits, of the reading that has them */
    bool energy, clocks;      /* it is J, of the counter; it is the reasons */
} pki_nvml_sample;

/* NULL, or why not: there is no thread to be had, or the last one has not come back from NVML. The
 * strings of the wish are copied. */
const char *pki_nvml_sampler_start(const pki_nvml *nvml, const pki_nvml_wish *wish);

/* What has been read since the last call; valid until the next one. */
const pki_nvml_sample *pki_nvml_sampler_drain(size_t *count);

/* What the thread has taken of the processors, ns, as of its last reading. */
uint64_t pki_nvml_sampler_cpu(void);

/* Waits for the thread, a second at most. */
void pki_nvml_sampler_stop(void);

/* What it does or did, in words; live if it samples any device, or did until it was stopped. */
void pki_nvml_sampler_describe(pk_backend_info *info);

void pki_nvml_sampler_after_fork(void);
