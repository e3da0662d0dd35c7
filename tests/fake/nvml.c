/* The mock of libnvidia-ml.so.1 that fake/nvml.h describes. */
#include "nvml.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OK 0
#define UNINITIALIZED 1
#define INVALID_ARGUMENT 2
#define NOT_FOUND 6

#define EXPORT __attribute__((visibility("default")))

extern EXPORT fake_nvml fake_nvml_script;
fake_nvml fake_nvml_script;
static fake_nvml *const f = &fake_nvml_script;

static bool is_up(void)
{
    return fake_get(f->inits) > fake_get(f->shutdowns);
}

/* What every reading begins with. */
static int answer(fake_device *d, enum fake_reading which)
{
    if (!is_up())
        return UNINITIALIZED;
    __atomic_add_fetch(&d->calls[which], 1, __ATOMIC_SEQ_CST);
    while (fake_get(f->stuck))
        usleep(1000);
    usleep(fake_get(d->slow[which]));
    return fake_get(d->codes[which]);
}

EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    usleep(f->init_slow);
    if (f->init_code == OK)
        __atomic_add_fetch(&f->inits, 1, __ATOMIC_SEQ_CST);
    return f->init_code;
}

EXPORT int nvmlShutdown(void);
int nvmlShutdown(void)
{
    if (!is_up())
        return UNINITIALIZED;
    __atomic_add_fetch(&f->shutdowns, 1, __ATOMIC_SEQ_CST);
    return OK;
}

EXPORT const char *nvmlErrorString(int code);
const char *nvmlErrorString(int code)
{
    return code == 3 ? "Not Supported" : code == 15 ? "GPU is lost" : "Some Error";
}

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned size);
int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    snprintf(text, size, "999.11.22");
    return OK;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *devices);
int nvmlDeviceGetCount_v2(unsigned *devices)
{
    *devices = f->count_code == OK ? f->devices : 77;
    return f->count_code;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, fake_device **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, fake_device **device)
{
    if (!is_up() || index >= f->devices)
        return INVALID_ARGUMENT;
    if (f->device[index].open_code == OK)
        *device = &f->device[index];
    return f->device[index].open_code;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, fake_device **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, fake_device **device)
{
    for (unsigned i = 0; i < FAKE_DEVICES; i++)
        if (f->device[i].uuid && strcmp(f->device[i].uuid, uuid) == 0) {
            *device = &f->device[i];
            return OK;
        }
    return NOT_FOUND;
}

EXPORT int nvmlDeviceGetUUID(const fake_device *d, char *text, unsigned size);
int nvmlDeviceGetUUID(const fake_device *d, char *text, unsigned size)
{
    snprintf(text, size, "%s", d->uuid ? d->uuid : "GPU-none");
    return OK;
}

EXPORT int nvmlDeviceGetName(const fake_device *d, char *text, unsigned size);
int nvmlDeviceGetName(const fake_device *d, char *text, unsigned size)
{
    snprintf(text, size, "%s", d->name ? d->name : "Double");
    return OK;
}

EXPORT int nvmlDeviceGetMigMode(const fake_device *d, unsigned *current, unsigned *pending);
int nvmlDeviceGetMigMode(const fake_device *d, unsigned *current, unsigned *pending)
{
    *current = *pending = d->mig;
    return OK;
}

EXPORT int nvmlDeviceGetVirtualizationMode(const fake_device *d, int *mode);
int nvmlDeviceGetVirtualizationMode(const fake_device *d, int *mode)
{
    *mode = d->virtualization;
    return OK;
}

EXPORT int nvmlDeviceGetUtilizationRates(fake_device *d, unsigned *rates);
int nvmlDeviceGetUtilizationRates(fake_device *d, unsigned *rates)
{
    rates[0] = d->busy;
    rates[1] = d->memory_busy;
    return answer(d, FAKE_UTILIZATION);
}

EXPORT int nvmlDeviceGetPowerUsage(fake_device *d, unsigned *milliwatts);
int nvmlDeviceGetPowerUsage(fake_device *d, unsigned *milliwatts)
{
    *milliwatts = d->milliwatts;
    return answer(d, FAKE_POWER);
}

EXPORT int nvmlDeviceGetTemperature(fake_device *d, int sensor, unsigned *celsius);
int nvmlDeviceGetTemperature(fake_device *d, int sensor, unsigned *celsius)
{
    *celsius = sensor == 0 ? d->celsius : 0;
    return answer(d, FAKE_TEMPERATURE);
}

EXPORT int nvmlDeviceGetClockInfo(fake_device *d, int clock, unsigned *mhz);
int nvmlDeviceGetClockInfo(fake_device *d, int clock, unsigned *mhz)
{
    *mhz = clock == 1 ? d->sm_mhz : clock == 2 ? d->memory_mhz : 0;
    return answer(d, clock == 1 ? FAKE_SM_CLOCK : FAKE_MEMORY_CLOCK);
}

EXPORT int nvmlDeviceGetMemoryInfo(fake_device *d, unsigned long long *memory);
int nvmlDeviceGetMemoryInfo(fake_device *d, unsigned long long *memory)
{
    memory[0] = 1000000;
    memory[1] = 1000000 - d->used_bytes;
    memory[2] = d->used_bytes;
    return answer(d, FAKE_MEMORY);
}

EXPORT int nvmlDeviceGetCurrentClocksEventReasons(fake_device *d, unsigned long long *bits);
int nvmlDeviceGetCurrentClocksEventReasons(fake_device *d, unsigned long long *bits)
{
    *bits = fake_get(d->reasons);
    return answer(d, FAKE_REASONS);
}

/* 300 J more at each look. */
EXPORT int nvmlDeviceGetTotalEnergyConsumption(fake_device *d, unsigned long long *millijoules);
int nvmlDeviceGetTotalEnergyConsumption(fake_device *d, unsigned long long *millijoules)
{
    *millijoules = __atomic_add_fetch(&d->millijoules, 300000, __ATOMIC_SEQ_CST);
    return answer(d, FAKE_ENERGY);
}
