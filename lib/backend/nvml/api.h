/* lib/backend/nvml/api.h - as much of libnvidia-ml.so.1 as is used here.
 *
 * NVML comes with the driver, its header with the toolkit's development files, which often are not
 * there; so the few functions are declared here, in our own words, after NVIDIA's NVML API
 * reference (API version 13; all of them are older). The versions bound by name do not change.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum pki_nvml_code {
    PKI_NVML_OK = 0,
    PKI_NVML_UNINITIALIZED = 1,
    PKI_NVML_INVALID_ARGUMENT = 2,
    PKI_NVML_NOT_SUPPORTED = 3,
    PKI_NVML_NO_PERMISSION = 4,
    PKI_NVML_NOT_FOUND = 6,
    PKI_NVML_DRIVER_NOT_LOADED = 9,
    PKI_NVML_TIMEOUT = 10,
    PKI_NVML_FUNCTION_NOT_FOUND = 13,
    PKI_NVML_GPU_IS_LOST = 15,
    PKI_NVML_RESET_REQUIRED = 16,
    PKI_NVML_BLOCKED = 17, /* by the operating system or a cgroup */
    PKI_NVML_DEPRECATED = 26,
    PKI_NVML_UNKNOWN = 999
};

/* Why clocks are where they are: bits of nvmlDeviceGetCurrentClocksEventReasons. */
enum pki_nvml_reason {
    PKI_NVML_IDLE = 0x1,
    PKI_NVML_SETTING = 0x2, /* somebody has set them */
    PKI_NVML_POWER_CAP = 0x4,
    PKI_NVML_HW_SLOWDOWN = 0x8,
    PKI_NVML_SYNC_BOOST = 0x10,
    PKI_NVML_SW_THERMAL = 0x20,
    PKI_NVML_HW_THERMAL = 0x40,
    PKI_NVML_POWER_BRAKE = 0x80,
    PKI_NVML_DISPLAY = 0x100
};

enum { PKI_NVML_CLOCK_SM = 1, PKI_NVML_CLOCK_MEMORY = 2, PKI_NVML_SENSOR_GPU = 0 };
enum { PKI_NVML_IN_VGPU = 2 }; /* nvmlDeviceGetVirtualizationMode */

typedef struct pki_nvml_utilization {
    unsigned gpu, memory; /* %, over the device's own sample period of 1/6 to 1 s */
} pki_nvml_utilization;

typedef struct pki_nvml_memory {
    unsigned long long total, free, used; /* bytes */
} pki_nvml_memory;

typedef struct nvmlDevice_st *pki_nvml_handle;

/* ---- events: XID errors ---- */

typedef struct nvmlEventSet_st *pki_nvml_event_set;

#define PKI_NVML_EVENT_XID 8ull

typedef struct pki_nvml_event {
    pki_nvml_handle device;
    unsigned long long type, data; /* the XID */
    unsigned gpu_instance, compute_instance;
} pki_nvml_event;

/* ---- GPM, from Hopper on: what the device was busy with between two samples ---- */

typedef struct nvmlGpmSample_st *pki_nvml_sample_handle;

enum { PKI_NVML_GPM_VERSION = 1 }; /* of both structures below */

typedef struct pki_nvml_gpm_support {
    unsigned version, supported;
} pki_nvml_gpm_support;

typedef struct pki_nvml_gpm_metric {
    unsigned id;
    int code; /* the value counts with 0 alone */
    double value;
    const char *short_name, *long_name, *unit;
} pki_nvml_gpm_metric;

/* How many metrics the header knows grows from version to version (98, 210, 333), without another
 * number: there is room for all. */
#define PKI_NVML_GPM_ROOM 512

typedef struct pki_nvml_gpm_metrics {
    unsigned version, count;
    pki_nvml_sample_handle from, to;
    pki_nvml_gpm_metric metrics[PKI_NVML_GPM_ROOM];
} pki_nvml_gpm_metrics;

typedef struct pki_nvml {
    int (*init)(void);     /* counted: others in the process may use NVML, too */
    int (*shutdown)(void); /* once for each init */
    const char *(*error_text)(int code);
    int (*driver_version)(char *text, unsigned size);
    int (*count)(unsigned *devices);
    int (*by_index)(unsigned index, pki_nvml_handle *device);
    int (*by_uuid)(const char *uuid, pki_nvml_handle *device);
    int (*uuid)(pki_nvml_handle device, char *text, unsigned size);
    int (*name)(pki_nvml_handle device, char *text, unsigned size);
    int (*mig_mode)(pki_nvml_handle device, unsigned *current, unsigned *pending);
    int (*virtualization)(pki_nvml_handle device, int *mode);
    int (*utilization)(pki_nvml_handle device, pki_nvml_utilization *rates);
    int (*power)(pki_nvml_handle device, unsigned *milliwatts);
    int (*energy)(pki_nvml_handle device, unsigned long long *millijoules);
    int (*temperature)(pki_nvml_handle device, int sensor, unsigned *celsius);
    int (*clock)(pki_nvml_handle device, int clock, unsigned *mhz);
    int (*memory)(pki_nvml_handle device, pki_nvml_memory *memory);
    int (*reasons)(pki_nvml_handle device, unsigned long long *bits);
    int (*old_reasons)(pki_nvml_handle device, unsigned long long *bits); /* its name before 535 */
    int (*remapped)(pki_nvml_handle device, unsigned *correctable, unsigned *uncorrectable,
                    unsigned *pending, unsigned *failed);
    int (*event_create)(pki_nvml_event_set *set);
    int (*event_register)(pki_nvml_handle device, unsigned long long types, pki_nvml_event_set set);
    int (*event_wait)(pki_nvml_event_set set, pki_nvml_event *event, unsigned ms);
    int (*event_free)(pki_nvml_event_set set);
    int (*gpm_support)(pki_nvml_handle device, pki_nvml_gpm_support *support);
    int (*gpm_alloc)(pki_nvml_sample_handle *sample);
    int (*gpm_free)(pki_nvml_sample_handle sample);
    int (*gpm_sample)(pki_nvml_handle device, pki_nvml_sample_handle sample);
    int (*gpm_metrics)(pki_nvml_gpm_metrics *metrics);
} pki_nvml;

/* The library's functions; NULL and why in words if it is not there. */
const pki_nvml *pki_nvml_open(char *reason, size_t size);
