/* How a GPU feels while it is measured: lib/bench/device.h. */
#include "bench/device.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/nvml/api.h"
#include "backend/nvml/reading.h"

struct pki_bench_health_source {
    const pki_nvml *nvml;
    pki_nvml_handle device;
};

static bool find_device(pki_bench_health_source *s, const char *uuid)
{
    char reason[128];
    s->nvml = *uuid ? pki_nvml_open(reason, sizeof reason) : NULL;
    if (!s->nvml || !s->nvml->by_uuid || s->nvml->init() != PKI_NVML_OK)
        return false;
    if (s->nvml->by_uuid(uuid, &s->device) == PKI_NVML_OK)
        return true;
    s->nvml->shutdown();
    return false;
}

pki_bench_health_source *pki_bench_health_open(const char *uuid)
{
    pki_bench_health_source *s = calloc(1, sizeof *s);
    if (s && find_device(s, uuid))
        return s;
    free(s);
    return NULL;
}

void pki_bench_health_close(pki_bench_health_source *s)
{
    if (s)
        s->nvml->shutdown();
    free(s);
}

static bool read_reasons(const pki_bench_health_source *s, pki_bench_health *health)
{
    unsigned long long bits = 0;
    int (*read)(pki_nvml_handle, unsigned long long *) =
        s->nvml->reasons ? s->nvml->reasons : s->nvml->old_reasons;
    if (!read || read(s->device, &bits) != PKI_NVML_OK)
        return false;
    for (uint64_t bit = 1; bit <= PKI_NVML_DISPLAY; bit <<= 1) {
        const char *text = bits & bit & PKI_NVML_HELD_DOWN ? pki_nvml_reason_text(bit) : NULL;
        size_t used = strlen(health->held_down);
        if (text)
            snprintf(health->held_down + used, sizeof health->held_down - used, "%s%s",
                     used ? ", " : "", text);
    }
    return true;
}

bool pki_bench_health_read(const pki_bench_health_source *s, pki_bench_health *health)
{
    memset(health, 0, sizeof *health);
    if (!s)
        return false;
    if (!s->nvml->clock ||
        s->nvml->clock(s->device, PKI_NVML_CLOCK_SM, &health->mhz) != PKI_NVML_OK)
        health->mhz = 0;
    return read_reasons(s, health) || health->mhz;
}
