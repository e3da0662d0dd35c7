#include "backend/nvml/api.h"

#include "base/compiler.h"
#include "base/dl.h"

#define FUNCTION(member, name, optional)                                                           \
    {                                                                                              \
        name, offsetof(pki_nvml, member), optional                                                 \
    }

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
    FUNCTION(temperature, "nvmlDeviceGetTemperature", true),
    FUNCTION(clock, "nvmlDeviceGetClockInfo", true),
    FUNCTION(memory, "nvmlDeviceGetMemoryInfo", true),
    FUNCTION(reasons, "nvmlDeviceGetCurrentClocksEventReasons", true),
    FUNCTION(old_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons", true),
};

const pki_nvml *pki_nvml_open(char *reason, size_t size)
{
    static const char *const names[] = {"libnvidia-ml.so.1", NULL};
    static pki_nvml nvml;
    static bool bound;
    if (bound)
        return &nvml;
    void *library = pki_dl_open("PK_NVML_LIBRARY", names, reason, size);
    bound =
        library && pki_dl_bind(library, functions, PKI_COUNT_OF(functions), &nvml, reason, size);
    return bound ? &nvml : NULL;
}

const char *pki_nvml_text(const pki_nvml *nvml, int code)
{
    const char *text = nvml->error_text ? nvml->error_text(code) : NULL;
    return text ? text : "an error without a name";
}
