/* tests/unit/device.h - activities, steps and what is made of them, for tests of
 * measure/device/device.h. All times in microseconds. */
#ifndef TESTS_DEVICE_H
#define TESTS_DEVICE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure/device/device.h"

#define US 1000u

static inline pki_activity on(pki_activity_kind kind, uint32_t track, uint64_t start, uint64_t end)
{
    static const char name[] = "work";
    return (pki_activity){.kind = kind,
                          .track = track,
                          .name = name,
                          .name_length = strlen(name),
                          .start = start * US,
                          .end = end * US};
}

static inline pki_activity kernel(uint32_t track, uint64_t start, uint64_t end)
{
    return on(PKI_ACTIVITY_KERNEL, track, start, end);
}

static inline pki_activity span(uint32_t track, uint64_t start, uint64_t end)
{
    return on(PKI_ACTIVITY_SPAN, track, start, end);
}

static inline pki_activity copy(pki_copy direction, uint64_t bytes, uint64_t start, uint64_t end)
{
    pki_activity a = on(PKI_ACTIVITY_MEMCPY, 9, start, end);
    a.copy = direction;
    a.bytes = bytes;
    return a;
}

static inline void add(pki_device *d, pki_activity a)
{
    pki_device_add(d, &a);
}

static inline void step(pki_device *d, uint64_t start, uint64_t end)
{
    const pki_step step = {.start = start * US, .duration = (end - start) * US};
    pki_device_step(d, &step);
}

static inline const char *no_name(void *user, uint32_t id)
{
    (void)user;
    (void)id;
    return NULL;
}

/* The summary of all that has been added, and no more of d. */
static inline void finish(pki_device *d, uint64_t warmup, pki_summary *s)
{
    pki_device_finalised(d, UINT64_MAX);
    pki_summary_init(s);
    assert_true(pki_device_fill(d, warmup, no_name, NULL, s));
    pki_device_destroy(d);
}

/* Over all steps, in microseconds or pieces. */
static inline void expect(const pki_gpu_row *gpu, int figure, double sum)
{
    double unit =
        strstr("gaps kernels short_kernels h2d_bytes d2h_bytes d2d_bytes p2p_bytes memory",
               pki_gpu_figures[figure])
            ? 1
            : US;
    double got = gpu->per_step[figure].sum / unit;
    if (got < sum || got > sum)
        fail_msg("%s is %g, not %g", pki_gpu_figures[figure], got, sum);
}

#endif
