/* lib/backend/nvml/nvml.c - what the devices say about themselves: utilisation, power, temperature,
 * clocks, memory, what holds the clocks down and, by GPM, what it was busy with, as counters of the
 * trace and the report.
 *
 * A call of NVML takes some microseconds, now and then milliseconds, and where the driver is in
 * trouble it does not come back. So a thread of our own makes the calls (nvml/sampler.c), and the
 * collector only takes what is there: nothing of the program, no pk_flush and no ring waits for
 * NVML. pk_stop waits for a call under way, a second at most.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/nvml/sampler.h"
#include "base/log.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/costs/energy.h"
#include "session/costs/gpu_load.h"

static bool ran;      /* a session had it on; what it found stands in the report */
static bool child;    /* of a process that had it on */
static char off[192]; /* why the session's start could not have it on */
static uint32_t logged[PKI_NVML_DEVICES]; /* reasons that have been logged, by device */

extern const pki_backend pki_backend_nvml;

static bool start(const pki_config *config)
{
    const pki_nvml_wish wish = {.list = secure_getenv("CUDA_VISIBLE_DEVICES"),
                                .order = secure_getenv("CUDA_DEVICE_ORDER"),
                                .local_rank = (unsigned)config->world.local_rank,
                                .local_size = (unsigned)config->world.local_size,
                                .energy = config->costs_energy};
    off[0] = 0;
    memset(logged, 0, sizeof logged);
    const pki_nvml *nvml = child ? NULL : pki_nvml_open(off, sizeof off);
    const char *why = nvml ? pki_nvml_sampler_start(nvml, &wish) : NULL;
    if (why)
        snprintf(off, sizeof off, "%s", why);
    ran = nvml && !why;
    return ran;
}

static void log_reasons(const pki_nvml_sample *sample)
{
    uint32_t bits = sample->reasons & ~logged[sample->device];
    for (uint32_t bit = 1; bit; bit <<= 1)
        if (bits & bit & PKI_NVML_HELD_DOWN)
            pki_log(PK_LOG_INFO, "gpu%u: clocks are held down by %s", sample->ordinal,
                    pki_nvml_reason_text(bit));
    logged[sample->device] |= bits;
}

/* What holds the clocks down, the first of it; NULL: nothing does. */
static const char *holder(uint32_t reasons)
{
    uint32_t bits = reasons & PKI_NVML_HELD_DOWN;
    return bits ? pki_nvml_reason_text(bits & -bits) : NULL;
}

/* The values of one reading stand side by side. */
static size_t load_of(const pki_nvml_sample *samples, size_t count)
{
    double values[PKI_LOADS];
    size_t n = 0;
    for (int i = 0; i < PKI_LOADS; i++)
        values[i] = NAN;
    for (; n < count && samples[n].since && samples[n].device == samples->device &&
           samples[n].when == samples->when;
         n++)
        values[samples[n].index] = samples[n].value;
    pki_gpu_load_read(samples->ordinal, pki_activity_ns(samples->since),
                      pki_activity_ns(samples->when), values);
    return n;
}

static void take(const pki_nvml_sample *sample)
{
    pki_activity_counter_at(sample->counter, sample->value, pki_activity_ns(sample->when));
    if (sample->reading == PKI_NVML_READING_ENERGY)
        pki_energy_of_gpu(sample->ordinal, sample->value, sample->when);
    if (sample->reading == PKI_NVML_READING_REASONS)
        pki_energy_of_clocks(sample->ordinal, holder(sample->reasons));
    log_reasons(sample);
}

static void collect(void)
{
    size_t count;
    const pki_nvml_sample *samples = pki_nvml_sampler_drain(&count);
    for (size_t i = 0; i < count; i++)
        take(&samples[i]);
    for (size_t i = 0; i < count;)
        i += samples[i].since ? load_of(&samples[i], count - i) : 1;
}

/* NVML's locks may be held by a thread that is not here. */
static void after_fork(void)
{
    child = child || ran;
    ran = false;
    pki_nvml_sampler_after_fork();
}

/* Without a session: does it answer, and how many devices are there? */
static void probe_devices(pk_backend_info *info)
{
    unsigned devices = 0;
    const pki_nvml *nvml = pki_nvml_open(info->reason, sizeof info->reason);
    int code = nvml ? nvml->init() : PKI_NVML_OK;
    if (!nvml)
        return;
    if (code != PKI_NVML_OK) {
        snprintf(info->reason, sizeof info->reason, "nvmlInit_v2: %s", pki_nvml_text(nvml, code));
        return;
    }
    if (nvml->driver_version)
        nvml->driver_version(info->version, sizeof info->version);
    code = nvml->count(&devices);
    info->live = code == PKI_NVML_OK && devices > 0;
    if (code != PKI_NVML_OK)
        snprintf(info->reason, sizeof info->reason, "nvmlDeviceGetCount_v2: %s",
                 pki_nvml_text(nvml, code));
    else
        snprintf(info->reason, sizeof info->reason, "%u device%s", devices,
                 devices == 1 ? "" : "s");
    nvml->shutdown();
}

static void probe(pk_backend_info *info)
{
    if (child)
        snprintf(info->reason, sizeof info->reason,
                 "this process was forked while its parent sampled: NVML may be locked here");
    else if (off[0])
        memcpy(info->reason, off, sizeof off);
    else if (ran)
        pki_nvml_sampler_describe(info);
    else
        probe_devices(info);
}

const pki_backend pki_backend_nvml = {.name = "nvml",
                                      .by_default = true,
                                      .probe = probe,
                                      .start = start,
                                      .collect = collect,
                                      .cpu = pki_nvml_sampler_cpu,
                                      .halt = pki_nvml_sampler_stop,
                                      .stop = collect,
                                      .after_fork = after_fork};
