/* lib/measure/machine/devices.h - what GPUs can do, as their vendor says. Not measured. */
#pragma once

#include <stddef.h>

/* Operations per second, dense (without the factor of two that sparsity may give), at the clock
 * that the data sheet assumes; bytes per second. 0: the data sheet has no such figure. */
typedef struct pki_device_limits {
    const char *name;   /* as NVML and /proc/driver/nvidia name it */
    const char *source; /* which document */
    double bandwidth;
    double fp64, fp64_tensor, fp32, tf32, bf16, fp16, fp8;
} pki_device_limits;

/* NULL: not in the table. Names are compared whole, since "A100-SXM4-40GB" and "-80GB" differ. */
const pki_device_limits *pki_device_find(const char *name);

/* All of them. */
extern const pki_device_limits pki_devices[];
extern const size_t pki_device_count;
