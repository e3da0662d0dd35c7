/* How a GPU feels while it is measured: lib/bench/device.h. */
#include "bench/device.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "backend/nvml/api.h"
#include "backend/nvml/reading.h"

static void read_reasons(const pki_nvml *nvml, pki_nvml_handle device, pki_bench_health *health)
{
    unsigned long long bits = 0;
    int (*read)(pki_nvml_handle, unsigned long long *) =
        nvml->reasons ? nvml->reasons : nvml->old_reasons;
    if (!read || read(device, &bits) != PKI_NVML_OK)
        return;
    for (uint64_t bit = 1; bit <= PKI_NVML_DISPLAY; bit <<= 1) {
        const char *text = bits & bit & PKI_NVML_HELD_DOWN ? pki_nvml_reason_text(bit) : NULL;
        size_t used = strlen(health->held_down);
        if (text)
            snprintf(health->held_down + used, sizeof health->held_down - used, "%s%s",
                     used ? ", " : "", text);
    }
}

static void read_device(const pki_nvml *nvml, const char *uuid, pki_bench_health *health)
{
    pki_nvml_handle device;
    if (!nvml->by_uuid || nvml->by_uuid(uuid, &device) != PKI_NVML_OK)
        return;
    if (!nvml->clock || nvml->clock(device, PKI_NVML_CLOCK_SM, &health->mhz) != PKI_NVML_OK)
        health->mhz = 0;
    read_reasons(nvml, device, health);
}

void pki_bench_health_read(const char *uuid, pki_bench_health *health)
{
    char reason[128];
    memset(health, 0, sizeof *health);
    const pki_nvml *nvml = *uuid ? pki_nvml_open(reason, sizeof reason) : NULL;
    if (!nvml || nvml->init() != PKI_NVML_OK)
        return;
    read_device(nvml, uuid, health);
    nvml->shutdown();
}
