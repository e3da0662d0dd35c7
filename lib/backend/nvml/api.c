#include "backend/nvml/api.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/loader.h"

#include <stdio.h>
#include <stdlib.h>

#define FUNCTION(member, name, optional) PKI_DL_FUNCTION(pki_nvml, member, name, optional)

static const pki_dl_function functions[] = {
    FUNCTION(init, "nvmlInit_v2", false),
    FUNCTION(shutdown, "nvmlShutdown", false),
    FUNCTION(count, "nvmlDeviceGetCount_v2", false),
    FUNCTION(by_index, "nvmlDeviceGetHandleByIndex_v2", false),
    FUNCTION(error_text, "nvmlErrorString", true),
    FUNCTION(driver_version, "nvmlSystemGetDriverVersion", true),
    FUNCTION(by_uuid, "nvmlDeviceGetHandleByUUID", true),
    FUNCTION(uuid, "nvmlDeviceGetUUID", true),
    FUNCTION(name, "nvmlDeviceGetName", true),
    FUNCTION(mig_mode, "nvmlDeviceGetMigMode", true),
    FUNCTION(virtualization, "nvmlDeviceGetVirtualizationMode", true),
    FUNCTION(utilization, "nvmlDeviceGetUtilizationRates", true),
    FUNCTION(power, "nvmlDeviceGetPowerUsage", true),
    FUNCTION(energy, "nvmlDeviceGetTotalEnergyConsumption", true),
    FUNCTION(temperature, "nvmlDeviceGetTemperature", true),
    FUNCTION(clock, "nvmlDeviceGetClockInfo", true),
    FUNCTION(memory, "nvmlDeviceGetMemoryInfo", true),
    FUNCTION(reasons, "nvmlDeviceGetCurrentClocksEventReasons", true),
    FUNCTION(old_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons", true),
    FUNCTION(remapped, "nvmlDeviceGetRemappedRows", true),
    FUNCTION(event_create, "nvmlEventSetCreate", true),
    FUNCTION(event_register, "nvmlDeviceRegisterEvents", true),
    FUNCTION(event_wait, "nvmlEventSetWait_v2", true),
    FUNCTION(event_free, "nvmlEventSetFree", true),
    FUNCTION(gpm_support, "nvmlGpmQueryDeviceSupport", true),
    FUNCTION(gpm_alloc, "nvmlGpmSampleAlloc", true),
    FUNCTION(gpm_free, "nvmlGpmSampleFree", true),
    FUNCTION(gpm_sample, "nvmlGpmSampleGet", true),
    FUNCTION(gpm_metrics, "nvmlGpmMetricsGet", true),
};

/* Bound, or NULL and why. */
static pki_nvml *bind_all(char *reason, size_t size)
{
    static const char *const names[] = {"libnvidia-ml.so.1", NULL};
    void *library = pki_dl_open("PK_NVML_LIBRARY", names, reason, size);
    pki_nvml *nvml = library ? calloc(1, sizeof *nvml) : NULL;
    if (library && !nvml)
        snprintf(reason, size, "no memory for NVML's functions");
    if (nvml && pki_dl_bind(library, functions, PKI_COUNT_OF(functions), nvml, reason, size))
        return nvml;
    free(nvml);
    return NULL;
}

/* A session and a benchmark may both be the first. No lock: a child that was forked amid one would
 * wait for ever. */
const pki_nvml *pki_nvml_open(char *reason, size_t size)
{
    static pki_nvml *bound; /* for the process's life */
    pki_nvml *known = pki_load_acquire(&bound), *mine = known ? NULL : bind_all(reason, size);
    if (mine && !__atomic_compare_exchange_n(&bound, &known, mine, false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_ACQUIRE))
        free(mine);
    else if (mine)
        known = mine;
    return known;
}
