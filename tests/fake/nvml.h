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
#define FAKE_READINGS 10
#define FAKE_METRICS 64 /* of GPM, by its numbers */

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
    FAKE_ENERGY,
    FAKE_GPM, /* nvmlGpmSampleGet */
    FAKE_ROWS
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

    int event_code;   /* of nvmlDeviceRegisterEvents */
    bool watched;     /* for XIDs, by the set that there is */
    unsigned xid;     /* not 0: it is told at the next look, once */
    unsigned rows[4]; /* correctable, uncorrectable, pending, failed */

    /* GPM: what the device does from now on, as nvml.h's metrics count it, and what it has done:
     * each sample takes the sums over time as they are then. */
    unsigned gpm;                      /* it is supported */
    int gpm_code;                      /* of nvmlGpmMetricsGet */
    double rates[FAKE_METRICS];        /* %; MiB/s */
    int metric_codes[FAKE_METRICS];    /* 3: that one is not supported */
    double wrong[FAKE_METRICS];        /* not 0: said in place of what is so */
    double sums[FAKE_METRICS];         /* rate times ns, up to... */
    unsigned long long at, first;      /* ...the last sample, from the first one, ns */
    unsigned too_close, metrics_asked; /* samples within 100 ms; calls of nvmlGpmMetricsGet */
} fake_device;

typedef struct fake_nvml {
    unsigned devices;
    int init_code, count_code;
    unsigned init_slow; /* us */
    bool stuck;         /* readings do not come back while it is set */
    unsigned inits, shutdowns;
    unsigned sets, looks;      /* sets of events that are there; times that one was asked */
    unsigned samples, misused; /* of GPM that are allocated; calls that nvml.h forbids */
    void (*on_call)(const char *function); /* before each, by who makes it */
    fake_device device[FAKE_DEVICES];
} fake_nvml;

#define FAKE_NVML_SCRIPT "fake_nvml_script" /* the name of the fake_nvml in the library */

#endif
