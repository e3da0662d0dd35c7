/* lib/bench/device.h - timing what runs on a device: where the time of a sample comes from
 * when it is not the processor's clock.
 *
 * One table, filled in by the build (device_cuda.c). A timer belongs to one stream and one
 * thread; begin and end put their marks into the stream, elapsed waits for them.
 */
#ifndef PKI_BENCH_DEVICE_H
#define PKI_BENCH_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct pki_bench_device {
    const char *name;

    /* A timer on that stream; NULL, and in words why not. */
    void *(*open)(void *stream, char *reason, size_t size);
    void (*close)(void *timer);

    /* False: the device reported an error, which `why` puts in words. */
    bool (*begin)(void *timer);
    bool (*end)(void *timer);
    bool (*elapsed)(void *timer, double *ns);
    const char *(*why)(void *timer);

    /* Empties the device's cache, in the stream; before begin. */
    bool (*flush)(void *timer);

    /* The warm-up is over: what the clocks are now is what they should stay. */
    void (*warmed_up)(void *timer);

    /* What spoiled the samples since then (throttling, clock changes), in words; "" if nothing did
     * or nothing is known. */
    void (*disturbance)(void *timer, char *text, size_t size);
} pki_bench_device;

/* The device's table; NULL: this build or this machine has none, and *why_not says so. */
const pki_bench_device *pki_bench_device_find(const char **why_not);

/* How a device feels, by who can ask it without using it (NVML): its clock, and why it is where it
 * is. */
typedef struct pki_bench_health {
    unsigned mhz;        /* of the processors; 0: unknown */
    char held_down[128]; /* what keeps it below, in words; "" if nothing does or nothing is known */
} pki_bench_health;

/* uuid: "GPU-..." */
void pki_bench_health_read(const char *uuid, pki_bench_health *health);

#endif
