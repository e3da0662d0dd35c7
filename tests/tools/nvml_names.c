/* An NVML of two devices that knows nothing but their names: one of the table, one of nobody's. */
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

static const char *const names[] = {"NVIDIA H100 80GB HBM3", "Nobody's"};

EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    return 0;
}

EXPORT int nvmlShutdown(void);
int nvmlShutdown(void)
{
    return 0;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *devices);
int nvmlDeviceGetCount_v2(unsigned *devices)
{
    *devices = 2;
    return 0;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, const char **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, const char **device)
{
    *device = names[index];
    return 0;
}

EXPORT int nvmlDeviceGetName(const char *device, char *text, unsigned size);
int nvmlDeviceGetName(const char *device, char *text, unsigned size)
{
    snprintf(text, size, "%s", device);
    return 0;
}
