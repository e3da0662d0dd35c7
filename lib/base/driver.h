/* lib/base/driver.h - is there a CUDA driver with a device? The one answer that all who would use
 * CUDA's libraries go by.
 *
 * Many of those libraries say "success" where there is no driver, and look for it again at each
 * call that fails. cuInit and cuDeviceGetCount do not lie; they are called once per process, at the
 * first question. libcuda.so.1 is opened while the program runs, or the file that PK_CUDA_LIBRARY
 * names.
 *
 * Threads: any. Fork: a child asks again, since the driver does not survive one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* If not, why not. */
bool pki_driver_live(char *reason, size_t size);

/* Devices that the driver shows to this process; 0 if it is not live. */
unsigned pki_driver_devices(void);

typedef struct pki_driver_device {
    char name[128];
    uint64_t memory_bytes;
    int major, minor; /* compute capability */
    int processors, warp, block_threads, processor_threads;
    int block_registers, processor_registers;
    int block_shared, block_shared_most, processor_shared; /* bytes */
} pki_driver_device;

/* False if the driver does not know it. What it does not tell is 0. */
bool pki_driver_device_get(unsigned ordinal, pki_driver_device *device);

void pki_driver_after_fork(void);
