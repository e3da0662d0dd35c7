#include "backend/nvml/sampler.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "backend/nvml/state.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/spawn.h"

#define MS ((uint64_t)1000000)
#define PERIOD (100 * MS)
#define PERIOD_MOST (10000 * MS)
#define SHARE 100u /* a call may take a hundredth of the time */
#define FAILURES_MOST 8u
#define PATIENCE (1000 * MS) /* pk_stop's */
#define QUEUE 2048u

static pki_nvml_state s = {.lock = PTHREAD_MUTEX_INITIALIZER};
static pthread_cond_t wake, gone;
static pthread_t thread;
static pki_nvml_sample queue[2][QUEUE]; /* the thread fills one, the collector reads the other */
static unsigned filling;
static size_t filled;

/* ---- the thread ---- */

/* From here on until `back` the thread is NVML's. */
static void call(const char *function)
{
    pthread_mutex_lock(&s.lock);
    s.calling = function;
    s.called_at = pki_monotonic_ns();
    pthread_mutex_unlock(&s.lock);
}

static void back(int code)
{
    pthread_mutex_lock(&s.lock);
    s.failed = code ? s.calling : s.failed;
    s.code = code ? code : s.code;
    s.calling = NULL;
    s.cpu = pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
    pthread_mutex_unlock(&s.lock);
}

static void push(const pki_nvml_device *d, const pki_nvml_slot *slot, const double *values,
                 uint32_t reasons, uint64_t when)
{
    for (unsigned i = 0; i < PKI_NVML_VALUES && slot->counters[i]; i++) {
        if (filled == QUEUE)
            return; /* nobody has come for them for a minute */
        queue[filling][filled++] = (pki_nvml_sample){slot->counters[i],
                                                     values[i],
                                                     when,
                                                     (unsigned)(d - s.devices),
                                                     d->ordinal,
                                                     reasons,
                                                     slot == &d->slots[PKI_NVML_READING_ENERGY],
                                                     slot == &d->slots[PKI_NVML_READING_REASONS]};
    }
}

static void count_reasons(pki_nvml_device *d, uint32_t bits)
{
    d->looked++;
    for (unsigned i = 0; i < PKI_COUNT_OF(d->held); i++)
        d->held[i] += bits >> i & 1;
}

/* Those that the next call will not answer, either. */
static bool is_for_good(int code)
{
    return code == PKI_NVML_NOT_SUPPORTED || code == PKI_NVML_NO_PERMISSION ||
           code == PKI_NVML_INVALID_ARGUMENT || code == PKI_NVML_FUNCTION_NOT_FOUND ||
           code == PKI_NVML_DEPRECATED;
}

static bool is_lost(int code)
{
    return code == PKI_NVML_GPU_IS_LOST || code == PKI_NVML_RESET_REQUIRED ||
           code == PKI_NVML_UNINITIALIZED || code == PKI_NVML_BLOCKED;
}

static void fail(pki_nvml_device *d, pki_nvml_slot *slot, int code)
{
    slot->failures++;
    slot->code = code;
    slot->period = PKI_MIN(PERIOD << slot->failures, PERIOD_MOST);
    slot->off = is_for_good(code) || slot->failures == FAILURES_MOST;
    d->lost = is_lost(code) ? code : d->lost;
}

static void succeed(pki_nvml_device *d, pki_nvml_slot *slot, unsigned which, const double *values,
                    uint64_t when)
{
    uint32_t reasons = which == PKI_NVML_READING_REASONS ? (uint32_t)values[0] : 0;
    slot->failures = 0;
    slot->period = PKI_MIN(PKI_MAX(PERIOD, SHARE * slot->took),
                           PKI_MIN(PKI_MAX(PERIOD, 2 * slot->period), PERIOD_MOST));
    if (which == PKI_NVML_READING_REASONS)
        count_reasons(d, reasons);
    push(d, slot, values, reasons, when);
}

static void read_one(pki_nvml_device *d, unsigned which)
{
    const pki_nvml_reading *reading = &pki_nvml_readings[which];
    pki_nvml_slot *slot = &d->slots[which];
    double values[PKI_NVML_VALUES] = {0, 0};
    call(reading->function);
    uint64_t begun = pki_monotonic_ns();
    int code = reading->read(s.nvml, d->handle, values);
    uint64_t ended = pki_monotonic_ns();
    pthread_mutex_lock(&s.lock);
    s.calling = NULL;
    s.cpu = pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
    slot->took = ended - begun;
    if (code == PKI_NVML_OK)
        succeed(d, slot, which, values, ended);
    else
        fail(d, slot, code);
    slot->due = begun + slot->period;
    pthread_mutex_unlock(&s.lock);
}

/* At the end, what has not been read at all yet is. */
static bool is_due(const pki_nvml_device *d, const pki_nvml_slot *slot)
{
    bool ending = pki_load(&s.stopping);
    if (slot == &d->slots[PKI_NVML_READING_ENERGY] && !s.wish.energy)
        return false;
    return !d->lost && !slot->off && slot->due <= (ending ? 0 : pki_monotonic_ns());
}

/* Reads what is due; when the next one will be. */
static uint64_t read_due(void)
{
    uint64_t next = pki_monotonic_ns() + PERIOD_MOST;
    for (unsigned i = 0; i < s.device_count; i++)
        for (unsigned which = 0; which < PKI_NVML_READINGS; which++) {
            pki_nvml_device *d = &s.devices[i];
            const pki_nvml_slot *slot = &d->slots[which];
            if (is_due(d, slot))
                read_one(d, which);
            if (!d->lost && !slot->off)
                next = PKI_MIN(next, slot->due);
        }
    return next;
}

/* False when it is time to end. */
static bool wait_until(uint64_t ns)
{
    struct timespec until = pki_moment(ns);
    pthread_mutex_lock(&s.lock);
    while (!s.stopping && pthread_cond_timedwait(&wake, &s.lock, &until) == 0)
        ;
    bool go_on = !s.stopping;
    pthread_mutex_unlock(&s.lock);
    return go_on;
}

static void set_up(pki_nvml_device *d, pki_nvml_handle handle, unsigned ordinal)
{
    unsigned pending = 0;
    int mode = 0;
    d->handle = handle;
    d->ordinal = ordinal;
    if (!s.nvml->mig_mode || s.nvml->mig_mode(handle, &d->mig, &pending) != PKI_NVML_OK)
        d->mig = 0;
    if (s.nvml->virtualization && s.nvml->virtualization(handle, &mode) == PKI_NVML_OK)
        d->vgpu = mode == PKI_NVML_IN_VGPU;
    unsigned count = s.wish.energy ? PKI_NVML_READINGS : PKI_NVML_READING_ENERGY; /* the last */
    for (unsigned i = 0; i < count; i++)
        for (unsigned v = 0; v < PKI_NVML_VALUES && pki_nvml_readings[i].values[v].name; v++) {
            char name[64];
            snprintf(name, sizeof name, "gpu%u.%s", ordinal, pki_nvml_readings[i].values[v].name);
            d->slots[i].counters[v] = pk_counter_named(name, pki_nvml_readings[i].values[v].unit);
        }
}

static void find_devices(void)
{
    pki_nvml_visible visible;
    char version[sizeof s.version] = "";
    call("looking for devices"); /* which wakes one up, if nothing holds it open */
    int code = pki_nvml_find(s.nvml, &s.wish, &visible);
    for (unsigned i = 0; i < visible.count; i++)
        set_up(&s.devices[i], visible.devices[i].handle, visible.devices[i].ordinal);
    if (s.nvml->driver_version)
        s.nvml->driver_version(version, sizeof version);
    back(code);
    pthread_mutex_lock(&s.lock);
    memcpy(s.version, version, sizeof version);
    s.visible = visible;
    s.device_count = visible.count;
    s.ready = true;
    pthread_mutex_unlock(&s.lock);
}

static void *sample(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "pk-nvml", 0, 0, 0);
    call("nvmlInit_v2");
    int code = s.nvml->init();
    back(code);
    if (code == PKI_NVML_OK) {
        find_devices();
        while (s.device_count && wait_until(read_due()))
            ;
        call("nvmlShutdown");
        s.nvml->shutdown();
        back(PKI_NVML_OK);
    }
    pthread_mutex_lock(&s.lock);
    s.ready = true;
    s.running = false;
    pthread_cond_signal(&gone);
    pthread_mutex_unlock(&s.lock);
    return NULL;
}

/* ---- the session ---- */

static void make_conditions(void)
{
    pki_condition_make(&wake);
    pki_condition_make(&gone);
}

static void forget(void)
{
    pthread_mutex_t lock = s.lock;
    s = (pki_nvml_state){.lock = lock};
    filled = 0;
}

static void copy_wish(const pki_nvml_wish *wish)
{
    s.wish = *wish;
    if (wish->list)
        s.wish.list = memcpy(s.list, wish->list, strnlen(wish->list, sizeof s.list - 1));
    if (wish->order)
        s.wish.order = memcpy(s.order, wish->order, strnlen(wish->order, sizeof s.order - 1));
}

const char *pki_nvml_sampler_start(const pki_nvml *nvml, const pki_nvml_wish *wish)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_conditions);
    pthread_mutex_lock(&s.lock);
    bool free = !s.running;
    pthread_mutex_unlock(&s.lock);
    if (!free)
        return "NVML has not come back from a call that the session before made";
    forget();
    s.nvml = nvml;
    copy_wish(wish);
    s.running = true;
    if (pki_spawn(&thread, sample, NULL) == 0)
        return NULL;
    s.running = false;
    return "the thread that calls NVML could not be created";
}

const pki_nvml_sample *pki_nvml_sampler_drain(size_t *count)
{
    pthread_mutex_lock(&s.lock);
    const pki_nvml_sample *taken = queue[filling];
    *count = filled;
    filling ^= 1;
    filled = 0;
    pthread_mutex_unlock(&s.lock);
    return taken;
}

uint64_t pki_nvml_sampler_cpu(void)
{
    pthread_mutex_lock(&s.lock);
    uint64_t ns = s.cpu;
    pthread_mutex_unlock(&s.lock);
    return ns;
}

void pki_nvml_sampler_stop(void)
{
    struct timespec until = pki_moment(pki_monotonic_ns() + PATIENCE);
    pthread_mutex_lock(&s.lock);
    pki_store(&s.stopping, true);
    pthread_cond_signal(&wake);
    while (s.running && pthread_cond_timedwait(&gone, &s.lock, &until) == 0)
        ;
    bool ended = !s.running;
    pthread_mutex_unlock(&s.lock);
    if (ended)
        pthread_join(thread, NULL);
    else
        pthread_detach(thread);
}

void pki_nvml_sampler_describe(pk_backend_info *info)
{
    pthread_mutex_lock(&s.lock);
    pki_nvml_state_describe(&s, info);
    pthread_mutex_unlock(&s.lock);
}

void pki_nvml_sampler_after_fork(void)
{
    pthread_mutex_init(&s.lock, NULL);
    make_conditions();
    forget();
}
