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
static struct {
    uint32_t logged, held; /* reasons that have been logged; that hold clocks down now... */
    uint64_t since[32];    /* ...each since then, and were seen at last: ns of the session */
    uint64_t seen;
    unsigned ordinal; /* CUDA's */
    bool rows_known;
    double rows;
    uint32_t rows_state;
} said[PKI_NVML_DEVICES];

extern const pki_backend pki_backend_nvml;

static bool start(const pki_config *config)
{
    const pki_nvml_wish wish = {.list = secure_getenv("CUDA_VISIBLE_DEVICES"),
                                .order = secure_getenv("CUDA_DEVICE_ORDER"),
                                .local_rank = (unsigned)config->world.local_rank,
                                .local_size = (unsigned)config->world.local_size,
                                .energy = config->costs_energy};
    off[0] = 0;
    memset(said, 0, sizeof said);
    const pki_nvml *nvml = child ? NULL : pki_nvml_open(off, sizeof off);
    const char *why = nvml ? pki_nvml_sampler_start(nvml, &wish) : NULL;
    if (why)
        snprintf(off, sizeof off, "%s", why);
    ran = nvml && !why;
    return ran;
}

static void log_reasons(const pki_nvml_sample *sample)
{
    uint32_t bits = sample->reasons & ~said[sample->device].logged;
    for (uint32_t bit = 1; bit; bit <<= 1)
        if (bits & bit & PKI_NVML_HELD_DOWN)
            pki_log(PK_LOG_INFO, "gpu%u: clocks are held down by %s", sample->ordinal,
                    pki_nvml_reason_text(bit));
    said[sample->device].logged |= bits;
}

/* What holds the clocks down, the first of it; NULL: nothing does. */
static const char *holder(uint32_t reasons)
{
    uint32_t bits = reasons & PKI_NVML_HELD_DOWN;
    return bits ? pki_nvml_reason_text(bits & -bits) : NULL;
}

/* ---- what a device says of itself ---- */

/* In our own words, after NVIDIA's list; others have their number alone. */
static const char *xid_text(unsigned xid)
{
    static const struct {
        unsigned xid;
        const char *text;
    } known[] = {{13, "an exception in a kernel"},
                 {31, "a memory access to an address that is not there"},
                 {43, "a fault stopped the work of a process"},
                 {45, "work was cleaned up behind an error or a kill"},
                 {48, "a double-bit error of memory"},
                 {63, "a row of memory was replaced"},
                 {64, "a row of memory could not be replaced"},
                 {74, "an error of NVLink"},
                 {79, "the device has fallen off the bus"},
                 {92, "many single-bit errors of memory"},
                 {94, "an error of memory that stayed in one process"},
                 {95, "an error of memory that may have reached others"},
                 {119, "the device's own processor does not answer"},
                 {120, "an error of the device's own processor"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].xid == xid)
            return known[i].text;
    return NULL;
}

static void take_xid(const pki_nvml_sample *sample)
{
    char text[96];
    unsigned xid = sample->value < 1e6 ? (unsigned)sample->value : 999;
    uint64_t ns = pki_activity_ns(sample->when);
    const char *means = xid_text(xid);
    snprintf(text, sizeof text, "XID %u%s%s", xid, means ? ": " : "", means ? means : "");
    pki_log(PK_LOG_WARNING, "gpu%u: %s", sample->ordinal, text);
    pki_gpu_event(sample->ordinal, "xid", xid, text, ns, ns);
}

/* From the first reading that finds clocks held down by it to the last one that does. */
static void end_holds(unsigned device, unsigned ordinal, uint32_t bits)
{
    for (unsigned i = 0; i < 32; i++) {
        const char *why = bits >> i & 1 ? pki_nvml_reason_text(1u << i) : NULL;
        char text[64];
        if (!why)
            continue;
        snprintf(text, sizeof text, "clocks held down by %s", why);
        pki_gpu_event(ordinal, "clocks", 1u << i, text, said[device].since[i], said[device].seen);
    }
    said[device].held &= ~bits;
}

static void take_reasons(const pki_nvml_sample *sample)
{
    unsigned d = sample->device;
    uint64_t ns = pki_activity_ns(sample->when);
    uint32_t bits = sample->reasons & PKI_NVML_HELD_DOWN;
    end_holds(d, sample->ordinal, said[d].held & ~bits);
    for (unsigned i = 0; i < 32; i++)
        if ((bits & ~said[d].held) >> i & 1)
            said[d].since[i] = ns;
    said[d].held = bits;
    said[d].seen = ns;
    said[d].ordinal = sample->ordinal;
}

/* What was so before the session is said once, too, where it asks for something. */
static void take_rows(const pki_nvml_sample *sample)
{
    unsigned d = sample->device;
    uint64_t ns = pki_activity_ns(sample->when);
    uint32_t news = sample->reasons & ~said[d].rows_state;
    if (said[d].rows_known && sample->value > said[d].rows)
        pki_gpu_event(sample->ordinal, "rows", (uint64_t)(sample->value - said[d].rows),
                      "rows of memory were replaced", ns, ns);
    if (news & PKI_NVML_ROWS_PENDING)
        pki_gpu_event(sample->ordinal, "rows", 0,
                      "a row of memory is to be replaced: it waits for a reset", ns, ns);
    if (news & PKI_NVML_ROWS_FAILED)
        pki_gpu_event(sample->ordinal, "rows", 0, "a row of memory could not be replaced", ns, ns);
    said[d].rows_known = true;
    said[d].rows = sample->value;
    said[d].rows_state = sample->reasons;
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
    if (sample->reading == PKI_NVML_XID) {
        take_xid(sample);
        return;
    }
    if (sample->reading == PKI_NVML_READING_ROWS)
        take_rows(sample);
    if (sample->reading == PKI_NVML_READING_REASONS) {
        take_reasons(sample);
        log_reasons(sample);
    }
    pki_activity_counter_at(sample->counter, sample->value, pki_activity_ns(sample->when));
    if (sample->reading == PKI_NVML_READING_ENERGY)
        pki_energy_of_gpu(sample->ordinal, sample->value, sample->when);
    if (sample->reading == PKI_NVML_READING_REASONS)
        pki_energy_of_clocks(sample->ordinal, holder(sample->reasons));
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

static void stop(void)
{
    collect();
    for (unsigned d = 0; d < PKI_NVML_DEVICES; d++)
        end_holds(d, said[d].ordinal, said[d].held);
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
                                      .stop = stop,
                                      .after_fork = after_fork};
