/* lib/bench/device.h - timing what runs on a device: where the time of a sample comes from
 * when it is not the processor's clock.
 *
 * One table, filled in by the build (device_cuda.c). A timer belongs to one stream and one
 * thread; begin and end put their marks into the stream, elapsed waits for them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* How a device feels, by who can ask it without using it (NVML): its clock, and why it is where it
 * is. */
typedef struct pki_bench_health {
    unsigned mhz;        /* of the processors; 0: unknown */
    char held_down[128]; /* what keeps it below, in words; "" if nothing does or nothing is known */
} pki_bench_health;

typedef struct pki_bench_device {
    const char *name;
    double resolution; /* ns: a mark is so exact */

    /* A timer on that stream, which will be asked to flush if it is `cold`; NULL, and in words why
     * not. */
    void *(*open)(void *stream, bool cold, char *reason, size_t size);
    void (*close)(void *timer);

    /* False: the device reported an error, which `why` puts in words. */
    bool (*begin)(void *timer);
    bool (*end)(void *timer);
    bool (*elapsed)(void *timer, double *ns);
    const char *(*why)(void *timer);

    /* Empties the device's cache, in the stream; before begin. */
    bool (*flush)(void *timer);

    /* What is put into the stream after hold does not begin before release, which may come from any
     * thread, more than once, or with nothing held, and asks nothing of the driver. cannot_hold:
     * why that cannot be done here; NULL if it can. */
    const char *(*cannot_hold)(void *timer);
    bool (*hold)(void *timer);
    void (*release)(void *timer);

    /* False: unknown. */
    bool (*health)(void *timer, pki_bench_health *health);
} pki_bench_device;

/* The device's table; NULL: this build or this machine has none, and *why_not says so. */
const pki_bench_device *pki_bench_device_find(const char **why_not);

/* By NVML, of the device with that UUID ("GPU-..."): NULL if NVML is not there or does not know it.
 * What is open keeps NVML initialised. */
typedef struct pki_bench_health_source pki_bench_health_source;
