#include "backend/nvml/reading.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* ---- GPM ---- */

#define MIB 1048576.0
#define SHARE_MOST 100.5 /* %, with what rounding may add */
#define RATE_MOST 1.0e8  /* MiB/s; no link has a hundredth of it */

/* GPM's numbers, in the order of pki_load_metrics. */
static const unsigned ids[PKI_GPM_METRICS] = {
    [PKI_LOAD_SM] = 2,       [PKI_LOAD_OCCUPANCY] = 3,  [PKI_LOAD_TENSOR] = 5,
    [PKI_LOAD_FP64] = 11,    [PKI_LOAD_FP32] = 12,      [PKI_LOAD_FP16] = 13,
    [PKI_LOAD_DRAM] = 10,    [PKI_LOAD_NVLINK_IN] = 60, [PKI_LOAD_NVLINK_OUT] = 61,
    [PKI_LOAD_PCIE_IN] = 21, [PKI_LOAD_PCIE_OUT] = 20,
};

static bool is_there(const pki_nvml *nvml)
{
    return nvml->gpm_support && nvml->gpm_alloc && nvml->gpm_free && nvml->gpm_sample &&
           nvml->gpm_metrics;
}

static int open_gpm(const pki_nvml *nvml, pki_nvml_handle device, pki_nvml_gpm *gpm)
{
    pki_nvml_gpm_support support = {.version = PKI_NVML_GPM_VERSION};
    int code = nvml->gpm_support(device, &support);
    if (code == PKI_NVML_OK && !support.supported)
        code = PKI_NVML_NOT_SUPPORTED;
    for (int i = 0; i < 2 && code == PKI_NVML_OK; i++)
        if (!gpm->samples[i])
            code = nvml->gpm_alloc(&gpm->samples[i]);
    gpm->asked = code == PKI_NVML_OK;
    return code;
}

/* Counts wrap, and the device may have been reset between: what comes of it is no figure. */
static double value_of(pki_nvml_gpm *gpm, int i, const pki_nvml_gpm_metric *metric)
{
    bool share = i < PKI_LOAD_SHARES;
    pki_store(&gpm->codes[i], (int)metric->code); /* read by who describes */
    if (metric->code != PKI_NVML_OK)
        return NAN;
    if (!(metric->value >= 0 && metric->value <= (share ? SHARE_MOST : RATE_MOST))) {
        pki_store(&gpm->impossible, gpm->impossible + 1);
        return NAN;
    }
    return share ? fmin(metric->value, 100) : metric->value * MIB;
}

/* Only the thread that samples calls it. */
static int compute(const pki_nvml *nvml, pki_nvml_gpm *gpm, unsigned last, double *values)
{
    static pki_nvml_gpm_metrics m;
    memset(&m, 0, sizeof m.version + sizeof m.count);
    m.version = PKI_NVML_GPM_VERSION;
    m.count = PKI_GPM_METRICS;
    m.from = gpm->samples[!last];
    m.to = gpm->samples[last];
    memset(m.metrics, 0, PKI_GPM_METRICS * sizeof *m.metrics);
    for (int i = 0; i < PKI_GPM_METRICS; i++)
        m.metrics[i].id = ids[i];
    int code = nvml->gpm_metrics(&m);
    for (int i = 0; i < PKI_GPM_METRICS && code == PKI_NVML_OK; i++)
        values[i] = value_of(gpm, i, &m.metrics[i]);
    return code;
}

/* The means since the last call, NAN where there is none: before the second sample, where NVML has
 * no value, and where it is none (a share above 100 %). After a failure it begins anew. */
static int pki_nvml_gpm_read(const pki_nvml *nvml, pki_nvml_handle device, pki_nvml_gpm *gpm,
                             double *values)
{
    for (int i = 0; i < PKI_GPM_METRICS; i++)
        values[i] = NAN;
    if (!is_there(nvml))
        return PKI_NVML_FUNCTION_NOT_FOUND;
    int code = gpm->asked ? PKI_NVML_OK : open_gpm(nvml, device, gpm);
    unsigned last = gpm->next;
    bool both = gpm->begun;
    gpm->begun = false;
    if (code == PKI_NVML_OK)
        code = nvml->gpm_sample(device, gpm->samples[last]);
    if (code != PKI_NVML_OK)
        return code;
    gpm->since = gpm->at;
    gpm->at = pki_monotonic_ns();
    gpm->next = !last;
    if (both)
        code = compute(nvml, gpm, last, values);
    gpm->begun = code == PKI_NVML_OK;
    return code;
}

/* ---- the readings ---- */

static int read_utilization(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    pki_nvml_utilization rates = {0, 0};
    int code =
        nvml->utilization ? nvml->utilization(device->handle, &rates) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = rates.gpu;
    values[1] = rates.memory;
    return code;
}

static int read_power(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    unsigned milliwatts = 0;
    int code = nvml->power ? nvml->power(device->handle, &milliwatts) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = milliwatts / 1000.0;
    return code;
}

static int read_energy(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    unsigned long long millijoules = 0;
    int code =
        nvml->energy ? nvml->energy(device->handle, &millijoules) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = (double)millijoules / 1000.0;
    return code;
}

static int read_temperature(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    unsigned celsius = 0;
    int code = nvml->temperature ? nvml->temperature(device->handle, PKI_NVML_SENSOR_GPU, &celsius)
                                 : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = celsius;
    return code;
}

static int read_clock(const pki_nvml *nvml, pki_nvml_source *device, int clock, double *values)
{
    unsigned mhz = 0;
    int code = nvml->clock ? nvml->clock(device->handle, clock, &mhz) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = mhz;
    return code;
}

static int read_sm_clock(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    return read_clock(nvml, device, PKI_NVML_CLOCK_SM, values);
}

static int read_memory_clock(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    return read_clock(nvml, device, PKI_NVML_CLOCK_MEMORY, values);
}

static int read_memory(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    pki_nvml_memory memory = {0, 0, 0};
    int code = nvml->memory ? nvml->memory(device->handle, &memory) : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = (double)memory.used;
    return code;
}

static int read_reasons(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    unsigned long long bits = 0;
    int code = nvml->reasons       ? nvml->reasons(device->handle, &bits)
               : nvml->old_reasons ? nvml->old_reasons(device->handle, &bits)
                                   : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = (double)bits;
    return code;
}

static int read_gpm(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    return pki_nvml_gpm_read(nvml, device->handle, &device->gpm, values);
}

static int read_rows(const pki_nvml *nvml, pki_nvml_source *device, double *values)
{
    unsigned correctable = 0, uncorrectable = 0, pending = 0, failed = 0;
    int code = nvml->remapped
                   ? nvml->remapped(device->handle, &correctable, &uncorrectable, &pending, &failed)
                   : PKI_NVML_FUNCTION_NOT_FOUND;
    values[0] = (double)correctable + uncorrectable;
    values[1] = (pending ? PKI_NVML_ROWS_PENDING : 0) | (failed ? PKI_NVML_ROWS_FAILED : 0);
    return code;
}

const pki_nvml_reading pki_nvml_readings[PKI_NVML_READINGS] = {
    {"nvmlDeviceGetUtilizationRates",
     NULL,
     0,
     {{"utilization", "%"}, {"memory_utilization", "%"}},
     read_utilization},
    {"nvmlDeviceGetPowerUsage", NULL, 0, {{"power", "W"}}, read_power},
    {"nvmlDeviceGetTemperature", NULL, 0, {{"temperature", "C"}}, read_temperature},
    {"nvmlDeviceGetClockInfo(SM)", NULL, 0, {{"sm_clock", "MHz"}}, read_sm_clock},
    {"nvmlDeviceGetClockInfo(memory)", NULL, 0, {{"memory_clock", "MHz"}}, read_memory_clock},
    {"nvmlDeviceGetMemoryInfo", NULL, 0, {{"memory", "bytes"}}, read_memory},
    {"nvmlDeviceGetCurrentClocksEventReasons", NULL, 0, {{"throttle", "bits"}}, read_reasons},
    {"nvmlGpmSampleGet",
     "GPM",
     200, /* NVML wants more than the 100 ms in which the device renews its counts */
     {{"sm_active", "%"},
      {"sm_occupancy", "%"},
      {"tensor_active", "%"},
      {"fp64_active", "%"},
      {"fp32_active", "%"},
      {"fp16_active", "%"},
      {"dram_bandwidth", "%"},
      {"nvlink_in", "B/s"},
      {"nvlink_out", "B/s"},
      {"pcie_in", "B/s"},
      {"pcie_out", "B/s"}},
     read_gpm},
    {"nvmlDeviceGetRemappedRows", NULL, 10000, {{"remapped_rows", "rows"}}, read_rows},
    {"nvmlDeviceGetTotalEnergyConsumption", NULL, 0, {{"energy", "J"}}, read_energy},
};

const char *pki_nvml_reason_text(uint64_t bit)
{
    switch (bit) {
    case PKI_NVML_POWER_CAP:
        return "the power cap";
    case PKI_NVML_HW_SLOWDOWN:
        return "hardware slowdown";
    case PKI_NVML_SYNC_BOOST:
        return "sync boost";
    case PKI_NVML_SW_THERMAL:
        return "temperature";
    case PKI_NVML_HW_THERMAL:
        return "temperature (hardware)";
    case PKI_NVML_POWER_BRAKE:
        return "the power brake";
    default:
        return NULL;
    }
}

/* ---- which devices of NVML are the process's, and as which CUDA ordinals ---- */

#define UUID_BYTES 96
#define NAME_BYTES 96

#define MACHINE_MOST 64 /* devices of one machine */

typedef struct machine {
    pki_nvml_handle devices[MACHINE_MOST];
    unsigned count, all; /* that can be opened; that there are */
} machine;

typedef struct entry {
    char text[UUID_BYTES];
    pki_nvml_handle handle;
    bool is_slice;
} entry;

static bool begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Those that this process may open: a cgroup hides the others from CUDA, which counts without
 * them, while NVML counts them too. */
static int find_machine(const pki_nvml *nvml, machine *m)
{
    m->count = m->all = 0;
    int code = nvml->count(&m->all);
    for (unsigned i = 0; code == PKI_NVML_OK && i < m->all && m->count < MACHINE_MOST; i++)
        m->count += nvml->by_index(i, &m->devices[m->count]) == PKI_NVML_OK;
    return code;
}

/* The one device whose UUID begins so. CUDA takes a beginning that fits two for nothing. */
static pki_nvml_handle by_uuid(const pki_nvml *nvml, const machine *m, const char *beginning)
{
    pki_nvml_handle found = NULL;
    for (unsigned i = 0; i < m->count && nvml->uuid; i++) {
        char uuid[UUID_BYTES] = "";
        if (nvml->uuid(m->devices[i], uuid, sizeof uuid) != PKI_NVML_OK ||
            !begins_with(uuid, beginning))
            continue;
        if (found)
            return NULL;
        found = m->devices[i];
    }
    return found;
}

static bool resolve(const pki_nvml *nvml, const machine *m, entry *e)
{
    char *end = e->text;
    unsigned long index = *e->text >= '0' && *e->text <= '9' ? strtoul(e->text, &end, 10) : 0;
    e->is_slice = begins_with(e->text, "MIG");
    e->handle = NULL;
    if (end != e->text && *end == 0)
        e->handle = index < m->count ? m->devices[index] : NULL;
    else if (e->is_slice && nvml->by_uuid && nvml->by_uuid(e->text, &e->handle) != PKI_NVML_OK)
        e->handle = NULL;
    else if (begins_with(e->text, "GPU-"))
        e->handle = by_uuid(nvml, m, e->text);
    return e->handle;
}

/* The next part of the list, without blanks; false at its end, or if it is too long to mean
 * anything. */
static bool next_part(const char **list, entry *e)
{
    const char *p = *list + strspn(*list, " ");
    size_t n = strcspn(p, ", ");
    if (n == 0 || n >= sizeof e->text)
        return false;
    memcpy(e->text, p, n);
    e->text[n] = 0;
    p += n;
    p += strspn(p, " ");
    *list = p + (*p == ',');
    return true;
}

static void add(pki_nvml_visible *out, const entry *e)
{
    unsigned ordinal = out->seen++;
    if (ordinal >= PKI_NVML_DEVICES)
        return;
    out->devices[ordinal].handle = e->handle;
    out->devices[ordinal].ordinal = ordinal;
    out->devices[ordinal].is_slice = e->is_slice;
    out->count++;
}

/* Who sees all devices of the machine is taken to be one of several who do. */
static void share(const pki_nvml_wish *wish, const machine *m, pki_nvml_visible *out)
{
    unsigned kept = 0;
    if (wish->local_size < 2 || out->seen != m->all || out->seen < wish->local_size)
        return;
    for (unsigned i = 0; i < out->count; i++)
        if (i % wish->local_size == wish->local_rank)
            out->devices[kept++] = out->devices[i];
    out->count = kept;
}

static bool same_models(const pki_nvml *nvml, const machine *m)
{
    char first[NAME_BYTES] = "";
    for (unsigned i = 0; i < m->count; i++) {
        char name[NAME_BYTES] = "";
        if (!nvml->name || nvml->name(m->devices[i], name, sizeof name) != PKI_NVML_OK)
            return false;
        if (i == 0)
            memcpy(first, name, sizeof first);
        if (strcmp(first, name) != 0)
            return false;
    }
    return true;
}

int pki_nvml_find(const pki_nvml *nvml, const pki_nvml_wish *wish, pki_nvml_visible *out)
{
    machine m;
    entry e = {.is_slice = false};
    memset(out, 0, sizeof *out);
    int code = find_machine(nvml, &m);
    out->machine = m.count;
    for (unsigned i = 0; !wish->list && i < m.count; i++) {
        e.handle = m.devices[i];
        add(out, &e);
    }
    for (const char *p = wish->list; p && next_part(&p, &e) && resolve(nvml, &m, &e);)
        add(out, &e);
    share(wish, &m, out);
    bool by_address = wish->order && strcmp(wish->order, "PCI_BUS_ID") == 0;
    bool by_name =
        wish->list && (begins_with(wish->list, "GPU-") || begins_with(wish->list, "MIG"));
    out->doubtful = m.count > 1 && !by_address && !by_name && !same_models(nvml, &m);
    return code;
}
