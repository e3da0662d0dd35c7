#include "backend/nvml/reading.h"

static int read_utilization(const pki_nvml *nvml, pki_nvml_handle device, double *values)
{
    pki_nvml_utilization rates = {0, 0};
    int code = nvml->utilization ? nvml->utilization(device, &rates) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = rates.gpu;
    values[1] = rates.memory;
    return code;
}

static int read_power(const pki_nvml *nvml, pki_nvml_handle device, double *values)
{
    unsigned milliwatts = 0;
    int code = nvml->power ? nvml->power(device, &milliwatts) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = milliwatts / 1000.0;
    return code;
}

static int read_energy(const pki_nvml *nvml, pki_nvml_handle device, double *values)
{
    unsigned long long millijoules = 0;
    int code = nvml->energy ? nvml->energy(device, &millijoules) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = (double)millijoules / 1000.0;
    return code;
}

static int read_temperature(const pki_nvml *nvml, pki_nvml_handle device, double *values)
{
    unsigned celsius = 0;
    int code = nvml->temperature ? nvml->temperature(device, PKI_NVML_SENSOR_GPU, &celsius)
                                 : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = celsius;
    return code;
}

static int read_clock(const pki_nvml *nvml, pki_nvml_handle device, int clock, double *values)
{
    unsigned mhz = 0;
    int code = nvml->clock ? nvml->clock(device, clock, &mhz) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = mhz;
    return code;
}

static int read_sm_clock(const pki_nvml *nvml, pki_nvml_handle device, double *values)
{
    return read_clock(nvml, device, PKI_NVML_CLOCK_SM, values);
}

static int read_memory_clock(const pki_nvml *nvml, pki_nvml_handle device, double *values)
{
    return read_clock(nvml, device, PKI_NVML_CLOCK_MEMORY, values);
}

static int read_memory(const pki_nvml *nvml, pki_nvml_handle device, double *values)
{
    pki_nvml_memory memory = {0, 0, 0};
    int code = nvml->memory ? nvml->memory(device, &memory) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = (double)memory.used;
    return code;
}

static int read_reasons(const pki_nvml *nvml, pki_nvml_handle device, double *values)
{
    unsigned long long bits = 0;
    int code = nvml->reasons       ? nvml->reasons(device, &bits)
               : nvml->old_reasons ? nvml->old_reasons(device, &bits)
                                   : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = (double)bits;
    return code;
}

const pki_nvml_reading pki_nvml_readings[PKI_NVML_READINGS] = {
    {"nvmlDeviceGetUtilizationRates",
     {{"utilization", "%"}, {"memory_utilization", "%"}},
     read_utilization},
    {"nvmlDeviceGetPowerUsage", {{"power", "W"}}, read_power},
    {"nvmlDeviceGetTemperature", {{"temperature", "C"}}, read_temperature},
    {"nvmlDeviceGetClockInfo(SM)", {{"sm_clock", "MHz"}}, read_sm_clock},
    {"nvmlDeviceGetClockInfo(memory)", {{"memory_clock", "MHz"}}, read_memory_clock},
    {"nvmlDeviceGetMemoryInfo", {{"memory", "bytes"}}, read_memory},
    {"nvmlDeviceGetCurrentClocksEventReasons", {{"throttle", "bits"}}, read_reasons},
    {"nvmlDeviceGetTotalEnergyConsumption", {{"energy", "J"}}, read_energy},
};

const char *pki_nvml_reason_text(uint64_t bit)
{
    switch (bit) {
    case PKI_NVML_POWER_CAP:
        return "the power cap";
    case PKI_NVML_HW_SLOWDOWN:
        return "hardware slowdown";
    case PKI_NVML_SYNC_BOOST:
        return "sync boost";
    case PKI_NVML_SW_THERMAL:
        return "temperature";
    case PKI_NVML_HW_THERMAL:
        return "temperature (hardware)";
    case PKI_NVML_POWER_BRAKE:
        return "the power brake";
    default:
        return NULL;
    }
}
