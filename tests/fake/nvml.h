/* fake/nvml.h - a scripted NVML: the test writes what the devices say, the mock counts who asks.
 *
 * libfake-nvml.so comes in by PK_NVML_LIBRARY, as a library in an unusual place would; the test
 * opens the same file and finds the script under its name. A test writes the script while nobody
 * samples, or with fake_set.
 */
#ifndef TESTS_FAKE_NVML_H
#define TESTS_FAKE_NVML_H

#include <stdbool.h>

#define FAKE_DEVICES 8
#define FAKE_READINGS 8

#define fake_set(place, value) __atomic_store_n(&(place), (value), __ATOMIC_SEQ_CST)
#define fake_get(place) __atomic_load_n(&(place), __ATOMIC_SEQ_CST)

enum fake_reading {
    FAKE_UTILIZATION,
    FAKE_POWER,
    FAKE_TEMPERATURE,
    FAKE_SM_CLOCK,
    FAKE_MEMORY_CLOCK,
    FAKE_MEMORY,
    FAKE_REASONS,
    FAKE_ENERGY
};

typedef struct fake_device {
    int open_code; /* of nvmlDeviceGetHandleByIndex_v2 */
    const char *uuid, *name;
    unsigned mig;
    int virtualization;
    unsigned busy, memory_busy, milliwatts, celsius, sm_mhz, memory_mhz;
    unsigned long long used_bytes, reasons, millijoules;
    int codes[FAKE_READINGS];     /* what each reading answers */
    unsigned slow[FAKE_READINGS]; /* us that it takes */
    unsigned calls[FAKE_READINGS];
} fake_device;

typedef struct fake_nvml {
    unsigned devices;
    int init_code, count_code;
    unsigned init_slow; /* us */
    bool stuck;         /* readings do not come back while it is set */
    unsigned inits, shutdowns;
    fake_device device[FAKE_DEVICES];
} fake_nvml;

#define FAKE_NVML_SCRIPT "fake_nvml_script" /* the name of the fake_nvml in the library */

#endif
