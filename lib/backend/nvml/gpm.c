#include "backend/nvml/gpm.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

#define MIB 1048576.0
#define SHARE_MOST 100.5 /* %, with what rounding may add */
#define RATE_MOST 1.0e8  /* MiB/s; no link has a hundredth of it */

/* GPM's numbers, in the order of pki_load_metrics. */
static const unsigned ids[PKI_GPM_METRICS] = {
    [PKI_LOAD_SM] = 2,       [PKI_LOAD_OCCUPANCY] = 3,  [PKI_LOAD_TENSOR] = 5,
    [PKI_LOAD_FP64] = 11,    [PKI_LOAD_FP32] = 12,      [PKI_LOAD_FP16] = 13,
    [PKI_LOAD_DRAM] = 10,    [PKI_LOAD_NVLINK_IN] = 60, [PKI_LOAD_NVLINK_OUT] = 61,
    [PKI_LOAD_PCIE_IN] = 21, [PKI_LOAD_PCIE_OUT] = 20,
};

static bool is_there(const pki_nvml *nvml)
{
    return nvml->gpm_support && nvml->gpm_alloc && nvml->gpm_free && nvml->gpm_sample &&
           nvml->gpm_metrics;
}

static int open_gpm(const pki_nvml *nvml, pki_nvml_handle device, pki_nvml_gpm *gpm)
{
    pki_nvml_gpm_support support = {.version = PKI_NVML_GPM_VERSION};
    int code = nvml->gpm_support(device, &support);
    if (code == PKI_NVML_OK && !support.supported)
        code = PKI_NVML_NOT_SUPPORTED;
    for (int i = 0; i < 2 && code == PKI_NVML_OK; i++)
        if (!gpm->samples[i])
            code = nvml->gpm_alloc(&gpm->samples[i]);
    gpm->asked = code == PKI_NVML_OK;
    return code;
}

/* Counts wrap, and the device may have been reset between: what comes of it is no figure. */
static double value_of(pki_nvml_gpm *gpm, int i, const pki_nvml_gpm_metric *metric)
{
    bool share = i < PKI_LOAD_SHARES;
    pki_store(&gpm->codes[i], (int)metric->code); /* read by who describes */
    if (metric->code != PKI_NVML_OK)
        return NAN;
    if (!(metric->value >= 0 && metric->value <= (share ? SHARE_MOST : RATE_MOST))) {
        pki_store(&gpm->impossible, gpm->impossible + 1);
        return NAN;
    }
    return share ? fmin(metric->value, 100) : metric->value * MIB;
}

/* Only the thread that samples calls it. */
static int compute(const pki_nvml *nvml, pki_nvml_gpm *gpm, unsigned last, double *values)
{
    static pki_nvml_gpm_metrics m;
    memset(&m, 0, sizeof m.version + sizeof m.count);
    m.version = PKI_NVML_GPM_VERSION;
    m.count = PKI_GPM_METRICS;
    m.from = gpm->samples[!last];
    m.to = gpm->samples[last];
    memset(m.metrics, 0, PKI_GPM_METRICS * sizeof *m.metrics);
    for (int i = 0; i < PKI_GPM_METRICS; i++)
        m.metrics[i].id = ids[i];
    int code = nvml->gpm_metrics(&m);
    for (int i = 0; i < PKI_GPM_METRICS && code == PKI_NVML_OK; i++)
        values[i] = value_of(gpm, i, &m.metrics[i]);
    return code;
}

int pki_nvml_gpm_read(const pki_nvml *nvml, pki_nvml_handle device, pki_nvml_gpm *gpm,
                      double *values)
{
    for (int i = 0; i < PKI_GPM_METRICS; i++)
        values[i] = NAN;
    if (!is_there(nvml))
        return PKI_NVML_FUNCTION_NOT_FOUND;
    int code = gpm->asked ? PKI_NVML_OK : open_gpm(nvml, device, gpm);
    unsigned last = gpm->next;
    bool both = gpm->begun;
    gpm->begun = false;
    if (code == PKI_NVML_OK)
        code = nvml->gpm_sample(device, gpm->samples[last]);
    if (code != PKI_NVML_OK)
        return code;
    gpm->since = gpm->at;
    gpm->at = pki_monotonic_ns();
    gpm->next = !last;
    if (both)
        code = compute(nvml, gpm, last, values);
    gpm->begun = code == PKI_NVML_OK;
    return code;
}

void pki_nvml_gpm_close(const pki_nvml *nvml, pki_nvml_gpm *gpm)
{
    for (int i = 0; i < 2; i++)
        if (gpm->samples[i])
            nvml->gpm_free(gpm->samples[i]);
    memset(gpm->samples, 0, sizeof gpm->samples);
    gpm->asked = gpm->begun = false;
}
