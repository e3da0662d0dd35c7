/* lib/backend/nvml/gpm.h - what a device was busy with, by NVML's GPM: Hopper and later, without
 * CUPTI and without a privilege.
 *
 * A device counts all the time; a sample is a copy of its counts, and two of them say what was in
 * between. So reading k gives the means of the time since reading k - 1, and the first one gives
 * none. The device renews its counts every 100 ms: a sample may be as old as that.
 */
#pragma once

#include <stdint.h>

#include "backend/nvml/api.h"
#include "measure/device/load.h"

#define PKI_GPM_METRICS PKI_LOADS /* in the order of pki_load_metrics */

typedef struct pki_nvml_gpm {
    pki_nvml_sample_handle samples[2];
    unsigned next; /* which one the next sample goes to */
    bool asked, begun;
    uint64_t at;                /* CLOCK_MONOTONIC, ns, of the last sample */
    uint64_t since;             /* of the one before, which the values begin with */
    uint64_t impossible;        /* values that cannot be, left out */
    int codes[PKI_GPM_METRICS]; /* what NVML last said of each metric */
} pki_nvml_gpm;

/* The means since the last call, NAN where there is none: before the second sample, where NVML has
 * no value, and where it is none (a share above 100 %). After a failure it begins anew. */
int pki_nvml_gpm_read(const pki_nvml *nvml, pki_nvml_handle device, pki_nvml_gpm *gpm,
                      double *values);

void pki_nvml_gpm_close(const pki_nvml *nvml, pki_nvml_gpm *gpm);
