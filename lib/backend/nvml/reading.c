#include "backend/nvml/reading.h"

static int read_utilization(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    pki_nvml_utilization rates = {0, 0};
    int code =
        nvml->utilization ? nvml->utilization(device->handle, &rates) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = rates.gpu;
    values[1] = rates.memory;
    return code;
}

static int read_power(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    unsigned milliwatts = 0;
    int code = nvml->power ? nvml->power(device->handle, &milliwatts) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = milliwatts / 1000.0;
    return code;
}

static int read_energy(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    unsigned long long millijoules = 0;
    int code =
        nvml->energy ? nvml->energy(device->handle, &millijoules) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = (double)millijoules / 1000.0;
    return code;
}

static int read_temperature(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    unsigned celsius = 0;
    int code = nvml->temperature ? nvml->temperature(device->handle, PKI_NVML_SENSOR_GPU, &celsius)
                                 : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = celsius;
    return code;
}

static int read_clock(const pki_nvml *nvml, pki_nvml_source *device, int clock, double *values)
{
    unsigned mhz = 0;
    int code = nvml->clock ? nvml->clock(device->handle, clock, &mhz) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = mhz;
    return code;
}

static int read_sm_clock(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    return read_clock(nvml, device, PKI_NVML_CLOCK_SM, values);
}

static int read_memory_clock(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    return read_clock(nvml, device, PKI_NVML_CLOCK_MEMORY, values);
}

static int read_memory(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    pki_nvml_memory memory = {0, 0, 0};
    int code = nvml->memory ? nvml->memory(device->handle, &memory) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = (double)memory.used;
    return code;
}

static int read_reasons(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    unsigned long long bits = 0;
    int code = nvml->reasons       ? nvml->reasons(device->handle, &bits)
               : nvml->old_reasons ? nvml->old_reasons(device->handle, &bits)
                                   : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = (double)bits;
    return code;
}

static int read_gpm(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    return pki_nvml_gpm_read(nvml, device->handle, &device->gpm, values);
}

static int read_rows(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    unsigned correctable = 0, uncorrectable = 0, pending = 0, failed = 0;
    int code = nvml->remapped
                   ? nvml->remapped(device->handle, &correctable, &uncorrectable, &pending, &failed)
                   : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = (double)correctable + uncorrectable;
    values[1] = (pending ? PKI_NVML_ROWS_PENDING : 0) | (failed ? PKI_NVML_ROWS_FAILED : 0);
    return code;
}

const pki_nvml_reading pki_nvml_readings[PKI_NVML_READINGS] = {
    {"nvmlDeviceGetUtilizationRates",
     NULL,
     0,
     {{"utilization", "%"}, {"memory_utilization", "%"}},
     read_utilization},
    {"nvmlDeviceGetPowerUsage", NULL, 0, {{"power", "W"}}, read_power},
    {"nvmlDeviceGetTemperature", NULL, 0, {{"temperature", "C"}}, read_temperature},
    {"nvmlDeviceGetClockInfo(SM)", NULL, 0, {{"sm_clock", "MHz"}}, read_sm_clock},
    {"nvmlDeviceGetClockInfo(memory)", NULL, 0, {{"memory_clock", "MHz"}}, read_memory_clock},
    {"nvmlDeviceGetMemoryInfo", NULL, 0, {{"memory", "bytes"}}, read_memory},
    {"nvmlDeviceGetCurrentClocksEventReasons", NULL, 0, {{"throttle", "bits"}}, read_reasons},
    {"nvmlGpmSampleGet",
     "GPM",
     200, /* NVML wants more than the 100 ms in which the device renews its counts */
     {{"sm_active", "%"},
      {"sm_occupancy", "%"},
      {"tensor_active", "%"},
      {"fp64_active", "%"},
      {"fp32_active", "%"},
      {"fp16_active", "%"},
      {"dram_bandwidth", "%"},
      {"nvlink_in", "B/s"},
      {"nvlink_out", "B/s"},
      {"pcie_in", "B/s"},
      {"pcie_out", "B/s"}},
     read_gpm},
    {"nvmlDeviceGetRemappedRows", NULL, 10000, {{"remapped_rows", "rows"}}, read_rows},
    {"nvmlDeviceGetTotalEnergyConsumption", NULL, 0, {{"energy", "J"}}, read_energy},
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
