/* The mock of libnvidia-ml.so.1 that fake/nvml.h describes. */
#include "nvml.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OK 0
#define UNINITIALIZED 1
#define INVALID_ARGUMENT 2
#define NOT_SUPPORTED 3
#define NOT_FOUND 6
#define VERSION_MISMATCH 25

#define EXPORT __attribute__((visibility("default")))

extern EXPORT fake_nvml fake_nvml_script;
fake_nvml fake_nvml_script;
static fake_nvml *const f = &fake_nvml_script;

/* For a program that writes no script: one device, busy with products of matrices. */
__attribute__((constructor)) static void begin(void)
{
    const char *fault = getenv("FAKE_DEVICE_FAULT");
    if (!getenv("FAKE_NVML_DEVICE"))
        return;
    f->devices = 1;
    f->device[0].gpm = 1;
    f->device[0].rates[2] = 90;
    f->device[0].rates[5] = fault && strcmp(fault, "tensor") == 0 ? 0 : 60;
}

static void told(const char *function)
{
    void (*on_call)(const char *) = __atomic_load_n(&f->on_call, __ATOMIC_ACQUIRE);
    if (on_call)
        on_call(function);
}

static bool is_up(void)
{
    return fake_get(f->inits) > fake_get(f->shutdowns);
}

/* What every reading begins with. */
static int answer(fake_device *d, enum fake_reading which)
{
    if (!is_up())
        return UNINITIALIZED;
    __atomic_add_fetch(&d->calls[which], 1, __ATOMIC_SEQ_CST);
    while (fake_get(f->stuck))
        usleep(1000);
    usleep(fake_get(d->slow[which]));
    return fake_get(d->codes[which]);
}

EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    told(__func__);
    usleep(f->init_slow);
    if (f->init_code == OK)
        __atomic_add_fetch(&f->inits, 1, __ATOMIC_SEQ_CST);
    return f->init_code;
}

EXPORT int nvmlShutdown(void);
int nvmlShutdown(void)
{
    told(__func__);
    if (!is_up())
        return UNINITIALIZED;
    __atomic_add_fetch(&f->shutdowns, 1, __ATOMIC_SEQ_CST);
    return OK;
}

EXPORT const char *nvmlErrorString(int code);
const char *nvmlErrorString(int code)
{
    return code == 3 ? "Not Supported" : code == 15 ? "GPU is lost" : "Some Error";
}

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned size);
int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    told(__func__);
    snprintf(text, size, "999.11.22");
    return OK;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *devices);
int nvmlDeviceGetCount_v2(unsigned *devices)
{
    told(__func__);
    *devices = f->count_code == OK ? f->devices : 77;
    return f->count_code;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, fake_device **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, fake_device **device)
{
    told(__func__);
    if (!is_up() || index >= f->devices)
        return INVALID_ARGUMENT;
    if (f->device[index].open_code == OK)
        *device = &f->device[index];
    return f->device[index].open_code;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, fake_device **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, fake_device **device)
{
    told(__func__);
    for (unsigned i = 0; i < FAKE_DEVICES; i++)
        if (f->device[i].uuid && strcmp(f->device[i].uuid, uuid) == 0) {
            *device = &f->device[i];
            return OK;
        }
    return NOT_FOUND;
}

EXPORT int nvmlDeviceGetUUID(const fake_device *d, char *text, unsigned size);
int nvmlDeviceGetUUID(const fake_device *d, char *text, unsigned size)
{
    told(__func__);
    snprintf(text, size, "%s", d->uuid ? d->uuid : "GPU-none");
    return OK;
}

EXPORT int nvmlDeviceGetName(const fake_device *d, char *text, unsigned size);
int nvmlDeviceGetName(const fake_device *d, char *text, unsigned size)
{
    told(__func__);
    snprintf(text, size, "%s", d->name ? d->name : "Double");
    return OK;
}

EXPORT int nvmlDeviceGetMigMode(const fake_device *d, unsigned *current, unsigned *pending);
int nvmlDeviceGetMigMode(const fake_device *d, unsigned *current, unsigned *pending)
{
    told(__func__);
    *current = *pending = d->mig;
    return OK;
}

EXPORT int nvmlDeviceGetVirtualizationMode(const fake_device *d, int *mode);
int nvmlDeviceGetVirtualizationMode(const fake_device *d, int *mode)
{
    told(__func__);
    *mode = d->virtualization;
    return OK;
}

EXPORT int nvmlDeviceGetUtilizationRates(fake_device *d, unsigned *rates);
int nvmlDeviceGetUtilizationRates(fake_device *d, unsigned *rates)
{
    told(__func__);
    rates[0] = d->busy;
    rates[1] = d->memory_busy;
    return answer(d, FAKE_UTILIZATION);
}

EXPORT int nvmlDeviceGetPowerUsage(fake_device *d, unsigned *milliwatts);
int nvmlDeviceGetPowerUsage(fake_device *d, unsigned *milliwatts)
{
    told(__func__);
    *milliwatts = d->milliwatts;
    return answer(d, FAKE_POWER);
}

EXPORT int nvmlDeviceGetTemperature(fake_device *d, int sensor, unsigned *celsius);
int nvmlDeviceGetTemperature(fake_device *d, int sensor, unsigned *celsius)
{
    told(__func__);
    *celsius = sensor == 0 ? d->celsius : 0;
    return answer(d, FAKE_TEMPERATURE);
}

EXPORT int nvmlDeviceGetClockInfo(fake_device *d, int clock, unsigned *mhz);
int nvmlDeviceGetClockInfo(fake_device *d, int clock, unsigned *mhz)
{
    told(__func__);
    *mhz = clock == 1 ? d->sm_mhz : clock == 2 ? d->memory_mhz : 0;
    return answer(d, clock == 1 ? FAKE_SM_CLOCK : FAKE_MEMORY_CLOCK);
}

EXPORT int nvmlDeviceGetMemoryInfo(fake_device *d, unsigned long long *memory);
int nvmlDeviceGetMemoryInfo(fake_device *d, unsigned long long *memory)
{
    told(__func__);
    memory[0] = 1000000;
    memory[1] = 1000000 - d->used_bytes;
    memory[2] = d->used_bytes;
    return answer(d, FAKE_MEMORY);
}

EXPORT int nvmlDeviceGetCurrentClocksEventReasons(fake_device *d, unsigned long long *bits);
int nvmlDeviceGetCurrentClocksEventReasons(fake_device *d, unsigned long long *bits)
{
    told(__func__);
    *bits = fake_get(d->reasons);
    return answer(d, FAKE_REASONS);
}

/* 300 J more at each look. */
EXPORT int nvmlDeviceGetTotalEnergyConsumption(fake_device *d, unsigned long long *millijoules);
int nvmlDeviceGetTotalEnergyConsumption(fake_device *d, unsigned long long *millijoules)
{
    told(__func__);
    *millijoules = __atomic_add_fetch(&d->millijoules, 300000, __ATOMIC_SEQ_CST);
    return answer(d, FAKE_ENERGY);
}

EXPORT int nvmlDeviceGetRemappedRows(fake_device *d, unsigned *correctable, unsigned *uncorrectable,
                                     unsigned *pending, unsigned *failed);
int nvmlDeviceGetRemappedRows(fake_device *d, unsigned *correctable, unsigned *uncorrectable,
                              unsigned *pending, unsigned *failed)
{
    told(__func__);
    *correctable = d->rows[0];
    *uncorrectable = d->rows[1];
    *pending = d->rows[2];
    *failed = d->rows[3];
    return answer(d, FAKE_ROWS);
}

/* ---- events ---- */

#define XID 8ull
#define TIMEOUT 10

typedef struct event {
    fake_device *device;
    unsigned long long type, data;
    unsigned instances[2];
} event;

static int the_set;

EXPORT int nvmlEventSetCreate(int **set);
int nvmlEventSetCreate(int **set)
{
    told(__func__);
    if (!is_up())
        return UNINITIALIZED;
    __atomic_add_fetch(&f->sets, 1, __ATOMIC_SEQ_CST);
    *set = &the_set;
    return OK;
}

EXPORT int nvmlEventSetFree(const int *set);
int nvmlEventSetFree(const int *set)
{
    told(__func__);
    if (set != &the_set || !f->sets)
        return INVALID_ARGUMENT;
    for (unsigned i = 0; i < FAKE_DEVICES; i++)
        f->device[i].watched = false;
    __atomic_sub_fetch(&f->sets, 1, __ATOMIC_SEQ_CST);
    return OK;
}

EXPORT int nvmlDeviceRegisterEvents(fake_device *d, unsigned long long types, const int *set);
int nvmlDeviceRegisterEvents(fake_device *d, unsigned long long types, const int *set)
{
    told(__func__);
    if (set != &the_set || !f->sets || types != XID)
        return INVALID_ARGUMENT;
    __atomic_store_n(&d->watched, d->event_code == OK, __ATOMIC_SEQ_CST);
    return d->event_code;
}

EXPORT int nvmlEventSetWait_v2(const int *set, event *e, unsigned ms);
int nvmlEventSetWait_v2(const int *set, event *e, unsigned ms)
{
    told(__func__);
    if (set != &the_set || !f->sets)
        return INVALID_ARGUMENT;
    __atomic_add_fetch(&f->looks, 1, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < FAKE_DEVICES; i++)
        if (f->device[i].watched && fake_get(f->device[i].xid)) {
            *e = (event){&f->device[i], XID, fake_get(f->device[i].xid), {~0u, ~0u}};
            fake_set(f->device[i].xid, 0);
            return OK;
        }
    usleep(ms * 1000);
    return TIMEOUT;
}

/* ---- GPM ---- */

/* Structures as nvml.h of version 13 has them. */

#define METRICS_MOST 333
#define REFRESH 100000000ull /* ns */

typedef struct support {
    unsigned version, supported;
} support;

typedef struct sample {
    const fake_device *device; /* NULL: nothing has been read into it */
    unsigned long long at;
    double sums[FAKE_METRICS];
} sample;

typedef struct metric {
    unsigned id;
    int code;
    double value;
    const char *names[3];
} metric;

typedef struct metrics {
    unsigned version, count;
    sample *from, *to;
    metric metrics[METRICS_MOST];
} metrics;

_Static_assert(sizeof(metric) == 40 && offsetof(metrics, metrics) == 24, "as in nvml.h");

static sample *live[2 * FAKE_DEVICES];

static bool is_live(const sample *s)
{
    for (unsigned i = 0; i < sizeof live / sizeof *live; i++)
        if (s && live[i] == s)
            return true;
    return false;
}

/* What a program must not do. */
static int misuse(int code)
{
    __atomic_add_fetch(&f->misused, 1, __ATOMIC_SEQ_CST);
    return code;
}

EXPORT int nvmlGpmQueryDeviceSupport(const fake_device *d, support *s);
int nvmlGpmQueryDeviceSupport(const fake_device *d, support *s)
{
    told(__func__);
    if (!is_up())
        return misuse(UNINITIALIZED);
    if (s->version != 1)
        return misuse(VERSION_MISMATCH);
    s->supported = d->gpm;
    return OK;
}

EXPORT int nvmlGpmSampleAlloc(sample **out);
int nvmlGpmSampleAlloc(sample **out)
{
    told(__func__);
    unsigned i = 0;
    while (i < sizeof live / sizeof *live && live[i])
        i++;
    if (!is_up() || i == sizeof live / sizeof *live)
        return misuse(UNINITIALIZED);
    live[i] = *out = calloc(1, sizeof **out);
    __atomic_add_fetch(&f->samples, 1, __ATOMIC_SEQ_CST);
    return OK;
}

EXPORT int nvmlGpmSampleFree(sample *s);
int nvmlGpmSampleFree(sample *s)
{
    told(__func__);
    if (!is_live(s))
        return misuse(INVALID_ARGUMENT);
    for (unsigned i = 0; i < sizeof live / sizeof *live; i++)
        live[i] = live[i] == s ? NULL : live[i];
    free(s);
    __atomic_sub_fetch(&f->samples, 1, __ATOMIC_SEQ_CST);
    return OK;
}

/* The device goes on until now. */
static void advance(fake_device *d)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    unsigned long long ns = (unsigned long long)now.tv_sec * 1000000000 + (unsigned)now.tv_nsec;
    d->too_close += d->at && ns - d->at <= REFRESH;
    for (unsigned i = 0; i < FAKE_METRICS && d->at; i++) {
        double rate;
        __atomic_load(&d->rates[i], &rate, __ATOMIC_SEQ_CST);
        d->sums[i] += rate * (double)(ns - d->at);
    }
    d->first = d->first ? d->first : ns;
    d->at = ns;
}

/* One that fails may have written half of it. */
EXPORT int nvmlGpmSampleGet(fake_device *d, sample *s);
int nvmlGpmSampleGet(fake_device *d, sample *s)
{
    told(__func__);
    if (!is_live(s) || !d->gpm)
        return misuse(INVALID_ARGUMENT);
    int code = answer(d, FAKE_GPM);
    memset(s, 0, sizeof *s);
    if (code != OK)
        return code;
    advance(d);
    s->device = d;
    s->at = d->at;
    memcpy(s->sums, d->sums, sizeof s->sums);
    return OK;
}

static void measure(const fake_device *d, const sample *from, const sample *to, metric *m)
{
    static const unsigned known[] = {2, 3, 5, 10, 11, 12, 13, 20, 21, 60, 61};
    m->code = NOT_SUPPORTED;
    m->value = 1e300; /* nobody may look at it then */
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == m->id)
            m->code = d->metric_codes[m->id];
    if (m->code != OK)
        return;
    m->value = (to->sums[m->id] - from->sums[m->id]) / (double)(to->at - from->at);
    m->value = d->wrong[m->id] == 0 ? m->value : d->wrong[m->id]; /* NAN is not 0 */
}

EXPORT int nvmlGpmMetricsGet(metrics *m);
int nvmlGpmMetricsGet(metrics *m)
{
    told(__func__);
    if (m->version != 1)
        return misuse(VERSION_MISMATCH);
    if (m->count > METRICS_MOST || !is_live(m->from) || !is_live(m->to) || !m->from->device ||
        m->from->device != m->to->device || m->from->at >= m->to->at)
        return misuse(INVALID_ARGUMENT);
    fake_device *d = &f->device[m->from->device - f->device];
    __atomic_add_fetch(&d->metrics_asked, 1, __ATOMIC_SEQ_CST);
    if (fake_get(d->gpm_code) != OK)
        return fake_get(d->gpm_code);
    for (unsigned i = 0; i < m->count; i++)
        measure(d, m->from, m->to, &m->metrics[i]);
    return OK;
}
