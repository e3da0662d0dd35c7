/* Devices by their names, from NVML, of which four functions are all that is needed here. */
#include "machine/measure.h"

#include "base/compiler.h"
#include "base/dl.h"

#include <stdio.h>

typedef struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *devices);
    int (*by_index)(unsigned index, void **device);
    int (*name)(void *device, char *text, unsigned size);
} nvml;

static const pki_dl_function functions[] = {
    PKI_DL_FUNCTION(nvml, init, "nvmlInit_v2", false),
    PKI_DL_FUNCTION(nvml, shutdown, "nvmlShutdown", false),
    PKI_DL_FUNCTION(nvml, count, "nvmlDeviceGetCount_v2", false),
    PKI_DL_FUNCTION(nvml, by_index, "nvmlDeviceGetHandleByIndex_v2", false),
    PKI_DL_FUNCTION(nvml, name, "nvmlDeviceGetName", false),
};

static void list(const nvml *n, machine_found *found)
{
    unsigned count = 0;
    void *device;
    if (n->count(&count) != 0)
        count = 0;
    for (unsigned i = 0; i < count && found->device_count < MACHINE_DEVICES; i++) {
        char *name = found->devices[found->device_count];
        if (n->by_index(i, &device) == 0 && n->name(device, name, sizeof *found->devices) == 0)
            found->device_count++;
    }
    if (!found->device_count)
        snprintf(found->no_devices, sizeof found->no_devices, "NVML knows of none");
}

void machine_find_devices(machine_found *found)
{
    static const char *const names[] = {"libnvidia-ml.so.1", NULL};
    char *why = found->no_devices;
    nvml n;
    void *library = pki_dl_open("PK_NVML_LIBRARY", names, why, sizeof found->no_devices);
    if (!library || !pki_dl_bind(library, functions, PKI_COUNT_OF(functions), &n, why,
                                 sizeof found->no_devices))
        return;
    if (n.init() != 0) {
        snprintf(why, sizeof found->no_devices, "NVML is there, and no driver behind it");
        return;
    }
    list(&n, found);
    n.shutdown();
}
