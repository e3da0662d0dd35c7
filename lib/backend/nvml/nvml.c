/* lib/backend/nvml/nvml.c - what the devices say about themselves: utilisation, power, temperature,
 * clocks, memory, what holds the clocks down and, by GPM, what it was busy with, as counters of the
 * trace and the report.
 *
 * A call of NVML takes some microseconds, now and then milliseconds, and where the driver is in
 * trouble it does not come back. So a thread of our own makes the calls, and the
 * collector only takes what is there: nothing of the program, no pk_flush and no ring waits for
 * NVML. pk_stop waits for a call under way, a second at most.
 */
#include <pk/counter.h>
#include <pk/session.h>

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "backend/nvml/reading.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/process.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/costs/energy.h"
#include "session/costs/gpu_load.h"

/* ---- what the sampling thread knows, and that in words ---- */

/* Under its lock, but for what only the thread reads. */

typedef struct pki_nvml_slot { /* one reading of one device */
    pk_counter *counters[PKI_NVML_VALUES];
    uint64_t due, period, took; /* ns */
    unsigned failures;          /* in a row */
    int code;                   /* of the last failure */
    bool off;
} pki_nvml_slot;

typedef struct pki_nvml_device {
    pki_nvml_source source;
    unsigned ordinal, mig;
    bool vgpu;
    int lost; /* NVML's code, after which there are no more calls; 0: it is there */
    pki_nvml_slot slots[PKI_NVML_READINGS];
    uint64_t looked, held[9]; /* times that there were reasons to be read, and each bit was set */
} pki_nvml_device;

typedef struct pki_nvml_state {
    pthread_mutex_t lock;
    const pki_nvml *nvml;
    pki_nvml_wish wish;
    char list[1024], order[32]; /* its strings */
    pki_nvml_visible visible;
    pki_nvml_device devices[PKI_NVML_DEVICES];
    unsigned device_count;
    char version[32];
    pki_nvml_event_set events;     /* NULL: there is none */
    int events_code;               /* why not, or not any more */
    bool running, ready, stopping; /* the thread is there; has looked for devices; is to end */
    const char *calling;           /* function of NVML that it is in */
    uint64_t called_at;
    const char *failed; /* the last one that failed while looking for devices, and its code */
    int code;
    uint64_t cpu; /* of the thread, ns */
} pki_nvml_state;

#define LONG 1000000000u /* ns that no call should take */
#define RARE 400000000u  /* ns between two readings, if that is worth a line */
#define LISTED 4u        /* devices by number; more are counted */

/* A code in words: NVML's own, or a number. */
static const char *pki_nvml_text(const pki_nvml *nvml, int code)
{
    const char *text = nvml->error_text ? nvml->error_text(code) : NULL;
    return text ? text : "an error without a name";
}

typedef struct sentence {
    char text[1024];
    size_t used;
} sentence;

static void PKI_PRINTF(2, 3) state_add(sentence *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(w->text + w->used, sizeof w->text - w->used, format, list);
    va_end(list);
    if (n > 0)
        w->used = PKI_MIN(w->used + (size_t)n, sizeof w->text - 1);
}

static void add_devices(sentence *w, const pki_nvml_state *s)
{
    if (s->device_count > LISTED)
        state_add(w, "%u devices", s->device_count);
    for (unsigned i = 0; s->device_count <= LISTED && i < s->device_count; i++)
        state_add(w, "%sgpu%u", i ? ", " : "", s->devices[i].ordinal);
    if (s->visible.seen > s->device_count)
        state_add(w, " of %u (the node's ranks share them)", s->visible.seen);
}

static void add_stuck(sentence *w, const pki_nvml_state *s)
{
    uint64_t now = pki_monotonic_ns();
    if (s->calling && now - s->called_at > LONG)
        state_add(w, "; %s has not returned for %.0f s", s->calling,
                  (double)(now - s->called_at) / 1e9);
}

static void add_lost(sentence *w, const pki_nvml_state *s)
{
    for (unsigned i = 0; i < s->device_count; i++)
        if (s->devices[i].lost)
            state_add(w, "; gpu%u was given up: %s", s->devices[i].ordinal,
                      pki_nvml_text(s->nvml, s->devices[i].lost));
}

static void add_held(sentence *w, const pki_nvml_device *d)
{
    for (unsigned bit = 0; bit < PKI_COUNT_OF(d->held); bit++)
        if (d->held[bit] && (1u << bit & PKI_NVML_HELD_DOWN))
            state_add(w, "; gpu%u: clocks held down by %s in %.0f %% of %llu samples", d->ordinal,
                      pki_nvml_reason_text(1u << bit),
                      100.0 * (double)d->held[bit] / (double)d->looked,
                      (unsigned long long)d->looked);
}

static const char *title_of(unsigned reading)
{
    const pki_nvml_reading *r = &pki_nvml_readings[reading];
    return r->title ? r->title : r->values[0].name;
}

/* Of GPM: metrics that NVML refuses, each with its reason, and values that were none. */
static void add_metrics(sentence *w, const pki_nvml_state *s, const pki_nvml_device *d)
{
    const pki_nvml_gpm *gpm = &d->source.gpm;
    const char *before = "; ";
    for (unsigned i = 0; i < PKI_GPM_METRICS; i++) {
        int code = pki_load(&gpm->codes[i]);
        if (code) {
            if (*before == ';')
                state_add(w, "; gpu%u: GPM without ", d->ordinal);
            else
                state_add(w, "%s", before);
            before = ", ";
            state_add(w, "%s (%s)", pki_load_names[i], pki_nvml_text(s->nvml, code));
        }
    }
    uint64_t impossible = pki_load(&gpm->impossible);
    if (impossible)
        state_add(w, "; gpu%u: GPM gave %llu values that cannot be: left out", d->ordinal,
                  (unsigned long long)impossible);
}

static void add_missing(sentence *w, const pki_nvml_state *s, const pki_nvml_device *d)
{
    const char *before = "; ";
    for (unsigned i = 0; i < PKI_NVML_READINGS; i++)
        if (d->slots[i].off) {
            if (*before == ';')
                state_add(w, "%sgpu%u%s: no ", before, d->ordinal,
                          d->mig    ? " (MIG)"
                          : d->vgpu ? " (vGPU)"
                                    : "");
            else
                state_add(w, "%s", before);
            before = ", ";
            state_add(w, "%s (%s)", title_of(i), pki_nvml_text(s->nvml, d->slots[i].code));
        }
}

static void add_rare(sentence *w, const pki_nvml_state *s, const pki_nvml_device *d)
{
    for (unsigned i = 0; i < PKI_NVML_READINGS; i++) {
        const pki_nvml_slot *slot = &d->slots[i];
        bool as_meant =
            !slot->failures && slot->period <= pki_nvml_readings[i].period_ms * 1000000ull;
        if (slot->off || slot->period < RARE || as_meant)
            continue;
        state_add(w, "; gpu%u.%s every %.1f s: ", d->ordinal, title_of(i),
                  (double)slot->period / 1e9);
        if (slot->failures)
            state_add(w, "%s", pki_nvml_text(s->nvml, slot->code));
        else
            state_add(w, "a call takes %.1f ms", (double)slot->took / 1e6);
    }
}

static void add_all(sentence *w, const pki_nvml_state *s)
{
    add_devices(w, s);
    add_stuck(w, s);
    add_lost(w, s);
    for (unsigned i = 0; i < s->device_count; i++)
        add_held(w, &s->devices[i]);
    for (unsigned i = 0; i < s->device_count; i++)
        add_missing(w, s, &s->devices[i]);
    for (unsigned i = 0; i < s->device_count; i++)
        add_metrics(w, s, &s->devices[i]);
    for (unsigned i = 0; i < s->device_count; i++)
        add_rare(w, s, &s->devices[i]);
    if (s->events_code)
        state_add(w, "; XID errors are not told (%s)", pki_nvml_text(s->nvml, s->events_code));
    if (s->visible.doubtful)
        state_add(
            w, "; devices differ: CUDA may number them otherwise (CUDA_DEVICE_ORDER=PCI_BUS_ID)");
}

static void add_none(sentence *w, const pki_nvml_state *s)
{
    if (s->failed)
        state_add(w, "%s: %s", s->failed, pki_nvml_text(s->nvml, s->code));
    else if (s->visible.seen)
        state_add(w, "the %u devices are left to other ranks of this node", s->visible.seen);
    else if (s->visible.machine)
        state_add(w, "CUDA_VISIBLE_DEVICES names none of %u devices", s->visible.machine);
    else
        state_add(w, "there is no device");
}

/* Some of it may not fit: it ends in three dots then. */
static void cut(const sentence *w, pk_backend_info *info)
{
    size_t room = sizeof info->reason;
    snprintf(info->reason, room, "%.*s", (int)room - 1, w->text);
    if (w->used >= room)
        memcpy(info->reason + room - 4, "...", 4);
}

static void pki_nvml_state_describe(const pki_nvml_state *s, pk_backend_info *info)
{
    sentence w = {.used = 0};
    bool any = false;
    for (unsigned i = 0; i < s->device_count; i++)
        any = any || !s->devices[i].lost;
    info->live = any;
    memcpy(info->version, s->version, sizeof info->version);
    if (s->device_count) {
        add_all(&w, s);
    } else if (s->ready) {
        add_none(&w, s);
    } else {
        info->live = 1;
        state_add(&w, "NVML is starting");
        add_stuck(&w, s);
    }
    cut(&w, info);
}

/* ---- a thread that reads the devices, and what it has read ---- */

/* Each reading of each device has a period of its own: 100 ms (GPM 200 ms), or a hundred times what
 * the call took, whichever is longer; a single slow call no more than doubles it. A reading that
 * fails is tried again more and more rarely, and given up where NVML says that it will never work,
 * or after eight failures in a row.
 *
 * All functions but the thread's own are called under the session's drain lock, in halt, or by a
 * probe. */

typedef struct pki_nvml_sample {
    pk_counter *counter; /* NULL: it is an event */
    double value;
    uint64_t when;            /* CLOCK_MONOTONIC, ns */
    unsigned device, ordinal; /* of this process's list; of CUDA */
    uint32_t reasons; /* pki_nvml_reason bits, PKI_NVML_ROWS_..., of the readings with them */
    unsigned reading, index; /* which one of pki_nvml_readings, and of its values */
    uint64_t since;          /* of GPM's: they are of the time from there to `when` */
} pki_nvml_sample;

#define MS ((uint64_t)1000000)
#define PERIOD (100 * MS)
#define PERIOD_MOST (10000 * MS)
#define SHARE 100u /* a call may take a hundredth of the time */
#define FAILURES_MOST 8u
#define PATIENCE (1000 * MS) /* pk_stop's */
#define QUEUE 4096u

static pki_nvml_state the_sampler = {.lock = PTHREAD_MUTEX_INITIALIZER};
static pthread_cond_t wake, gone;
static pthread_t thread;
static pki_nvml_sample queue[2][QUEUE]; /* the thread fills one, the collector reads the other */
static unsigned filling;
static size_t filled;

/* ---- the thread ---- */

/* From here on until `back` the thread is NVML's. */
static void call(const char *function)
{
    pthread_mutex_lock(&the_sampler.lock);
    the_sampler.calling = function;
    the_sampler.called_at = pki_monotonic_ns();
    pthread_mutex_unlock(&the_sampler.lock);
}

static void back(int code)
{
    pthread_mutex_lock(&the_sampler.lock);
    the_sampler.failed = code ? the_sampler.calling : the_sampler.failed;
    the_sampler.code = code ? code : the_sampler.code;
    the_sampler.calling = NULL;
    the_sampler.cpu = pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
    pthread_mutex_unlock(&the_sampler.lock);
}

static void push(const pki_nvml_device *d, unsigned which, const double *values, uint32_t reasons,
                 uint64_t when)
{
    const pki_nvml_slot *slot = &d->slots[which];
    for (unsigned i = 0; i < PKI_NVML_VALUES && slot->counters[i]; i++) {
        if (filled == QUEUE)
            return; /* nobody has come for them for a minute */
        if (isnan(values[i]))
            continue;
        queue[filling][filled++] =
            (pki_nvml_sample){.counter = slot->counters[i],
                              .value = values[i],
                              .when = when,
                              .device = (unsigned)(d - the_sampler.devices),
                              .ordinal = d->ordinal,
                              .reasons = reasons,
                              .reading = which,
                              .index = i,
                              .since = which == PKI_NVML_READING_GPM ? d->source.gpm.since : 0};
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

static uint64_t period_of(unsigned which)
{
    unsigned ms = pki_nvml_readings[which].period_ms;
    return ms ? ms * MS : PERIOD;
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
    uint32_t reasons = which == PKI_NVML_READING_REASONS ? (uint32_t)values[0]
                       : which == PKI_NVML_READING_ROWS  ? (uint32_t)values[1]
                                                         : 0;
    slot->failures = 0;
    uint64_t least = period_of(which);
    slot->period = PKI_MIN(PKI_MAX(least, SHARE * slot->took),
                           PKI_MIN(PKI_MAX(least, 2 * slot->period), PERIOD_MOST));
    if (which == PKI_NVML_READING_REASONS)
        count_reasons(d, reasons);
    push(d, which, values, reasons, when);
}

static void read_one(pki_nvml_device *d, unsigned which)
{
    const pki_nvml_reading *reading = &pki_nvml_readings[which];
    pki_nvml_slot *slot = &d->slots[which];
    double values[PKI_NVML_VALUES] = {0};
    call(reading->function);
    uint64_t begun = pki_monotonic_ns();
    int code = reading->read(the_sampler.nvml, &d->source, values);
    uint64_t ended = which == PKI_NVML_READING_GPM ? d->source.gpm.at : pki_monotonic_ns();
    pthread_mutex_lock(&the_sampler.lock);
    the_sampler.calling = NULL;
    the_sampler.cpu = pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
    slot->took = ended - begun;
    if (code == PKI_NVML_OK)
        succeed(d, slot, which, values, ended);
    else
        fail(d, slot, code);
    slot->due = begun + slot->period;
    pthread_mutex_unlock(&the_sampler.lock);
}

/* At the end, what has not been read at all yet is. */
static bool is_due(const pki_nvml_device *d, const pki_nvml_slot *slot)
{
    bool ending = pki_load(&the_sampler.stopping);
    if (slot == &d->slots[PKI_NVML_READING_ENERGY] && !the_sampler.wish.energy)
        return false;
    return !d->lost && !slot->off && slot->due <= (ending ? 0 : pki_monotonic_ns());
}

/* Reads what is due; when the next one will be. */
static uint64_t read_due(void)
{
    uint64_t next = pki_monotonic_ns() + PERIOD_MOST;
    for (unsigned i = 0; i < the_sampler.device_count; i++)
        for (unsigned which = 0; which < PKI_NVML_READINGS; which++) {
            pki_nvml_device *d = &the_sampler.devices[i];
            const pki_nvml_slot *slot = &d->slots[which];
            if (is_due(d, slot))
                read_one(d, which);
            if (!d->lost && !slot->off)
                next = PKI_MIN(next, slot->due);
        }
    return next;
}

/* ---- XID errors ---- */

static void end_events(int code)
{
    if (the_sampler.events) {
        call("nvmlEventSetFree");
        the_sampler.nvml->event_free(the_sampler.events);
        back(PKI_NVML_OK);
    }
    pthread_mutex_lock(&the_sampler.lock);
    the_sampler.events = NULL;
    the_sampler.events_code = code;
    pthread_mutex_unlock(&the_sampler.lock);
}

/* A set that one device refuses is still one for the others. */
static void begin_events(void)
{
    const pki_nvml *nvml = the_sampler.nvml;
    unsigned registered = 0;
    bool there = nvml->event_create && nvml->event_register && nvml->event_wait && nvml->event_free;
    pki_nvml_event_set set = NULL;
    call("nvmlDeviceRegisterEvents");
    int code = there ? nvml->event_create(&set) : PKI_NVML_FUNCTION_NOT_FOUND, refused = code;
    the_sampler.events = set;
    for (unsigned i = 0; code == PKI_NVML_OK && i < the_sampler.device_count; i++) {
        code = nvml->event_register(the_sampler.devices[i].source.handle, PKI_NVML_EVENT_XID, set);
        registered += code == PKI_NVML_OK;
        refused = code != PKI_NVML_OK ? code : refused;
        code = code == PKI_NVML_NOT_SUPPORTED ? PKI_NVML_OK : code;
    }
    back(PKI_NVML_OK);
    if (code != PKI_NVML_OK || !registered)
        end_events(refused);
}

static const pki_nvml_device *device_of(pki_nvml_handle handle)
{
    for (unsigned i = 0; i < the_sampler.device_count; i++)
        if (the_sampler.devices[i].source.handle == handle)
            return &the_sampler.devices[i];
    return the_sampler.devices;
}

static void push_event(const pki_nvml_event *event)
{
    const pki_nvml_device *d = device_of(event->device);
    pthread_mutex_lock(&the_sampler.lock);
    if (filled < QUEUE)
        queue[filling][filled++] = (pki_nvml_sample){.value = (double)event->data,
                                                     .when = pki_monotonic_ns(),
                                                     .device = (unsigned)(d - the_sampler.devices),
                                                     .ordinal = d->ordinal,
                                                     .reading = PKI_NVML_XID};
    pthread_mutex_unlock(&the_sampler.lock);
}

/* What has been told since the last look; no call waits for more. A lost device ends its own
 * readings, and a set that fails is given up. */
static void look_for_events(void)
{
    pki_nvml_event event;
    int code = PKI_NVML_OK;
    for (unsigned n = 0; the_sampler.events && code == PKI_NVML_OK && n < 64; n++) {
        call("nvmlEventSetWait_v2");
        code = the_sampler.nvml->event_wait(the_sampler.events, &event, 0);
        back(PKI_NVML_OK);
        if (code == PKI_NVML_OK && event.type == PKI_NVML_EVENT_XID)
            push_event(&event);
    }
    if (code != PKI_NVML_OK && code != PKI_NVML_TIMEOUT)
        end_events(code);
}

/* False when it is time to end. */
static bool wait_until(uint64_t ns)
{
    struct timespec until = pki_moment(ns);
    pthread_mutex_lock(&the_sampler.lock);
    while (!the_sampler.stopping && pthread_cond_timedwait(&wake, &the_sampler.lock, &until) == 0)
        ;
    bool go_on = !the_sampler.stopping;
    pthread_mutex_unlock(&the_sampler.lock);
    return go_on;
}

static void set_up(pki_nvml_device *d, pki_nvml_handle handle, unsigned ordinal)
{
    unsigned pending = 0;
    int mode = 0;
    d->source.handle = handle;
    d->ordinal = ordinal;
    if (!the_sampler.nvml->mig_mode ||
        the_sampler.nvml->mig_mode(handle, &d->mig, &pending) != PKI_NVML_OK)
        d->mig = 0;
    if (the_sampler.nvml->virtualization &&
        the_sampler.nvml->virtualization(handle, &mode) == PKI_NVML_OK)
        d->vgpu = mode == PKI_NVML_IN_VGPU;
    unsigned count =
        the_sampler.wish.energy ? PKI_NVML_READINGS : PKI_NVML_READING_ENERGY; /* the last */
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
    char version[sizeof the_sampler.version] = "";
    call("looking for devices"); /* which wakes one up, if nothing holds it open */
    int code = pki_nvml_find(the_sampler.nvml, &the_sampler.wish, &visible);
    for (unsigned i = 0; i < visible.count; i++)
        set_up(&the_sampler.devices[i], visible.devices[i].handle, visible.devices[i].ordinal);
    if (the_sampler.nvml->driver_version)
        the_sampler.nvml->driver_version(version, sizeof version);
    back(code);
    pthread_mutex_lock(&the_sampler.lock);
    memcpy(the_sampler.version, version, sizeof version);
    the_sampler.visible = visible;
    the_sampler.device_count = visible.count;
    the_sampler.ready = true;
    pthread_mutex_unlock(&the_sampler.lock);
}

static void pki_nvml_gpm_close(const pki_nvml *nvml, pki_nvml_gpm *gpm)
{
    for (int i = 0; i < 2; i++)
        if (gpm->samples[i])
            nvml->gpm_free(gpm->samples[i]);
    memset(gpm->samples, 0, sizeof gpm->samples);
    gpm->asked = gpm->begun = false;
}

static void *sample(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "pk-nvml", 0, 0, 0);
    call("nvmlInit_v2");
    int code = the_sampler.nvml->init();
    back(code);
    if (code == PKI_NVML_OK) {
        find_devices();
        if (the_sampler.device_count)
            begin_events();
        while (the_sampler.device_count && wait_until(read_due()))
            look_for_events();
        look_for_events();
        end_events(the_sampler.events_code);
        call("nvmlGpmSampleFree");
        for (unsigned i = 0; i < the_sampler.device_count; i++)
            pki_nvml_gpm_close(the_sampler.nvml, &the_sampler.devices[i].source.gpm);
        call("nvmlShutdown");
        the_sampler.nvml->shutdown();
        back(PKI_NVML_OK);
    }
    pthread_mutex_lock(&the_sampler.lock);
    the_sampler.ready = true;
    the_sampler.running = false;
    pthread_cond_signal(&gone);
    pthread_mutex_unlock(&the_sampler.lock);
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
    pthread_mutex_t lock = the_sampler.lock;
    the_sampler = (pki_nvml_state){.lock = lock};
    filled = 0;
}

static void copy_wish(const pki_nvml_wish *wish)
{
    the_sampler.wish = *wish;
    if (wish->list)
        the_sampler.wish.list =
            memcpy(the_sampler.list, wish->list, strnlen(wish->list, sizeof the_sampler.list - 1));
    if (wish->order)
        the_sampler.wish.order = memcpy(the_sampler.order, wish->order,
                                        strnlen(wish->order, sizeof the_sampler.order - 1));
}

/* NULL, or why not: there is no thread to be had, or the last one has not come back from NVML. The
 * strings of the wish are copied. */
static const char *pki_nvml_sampler_start(const pki_nvml *nvml, const pki_nvml_wish *wish)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_conditions);
    pthread_mutex_lock(&the_sampler.lock);
    bool free = !the_sampler.running;
    pthread_mutex_unlock(&the_sampler.lock);
    if (!free)
        return "NVML has not come back from a call that the session before made";
    forget();
    the_sampler.nvml = nvml;
    copy_wish(wish);
    the_sampler.running = true;
    if (pki_spawn(&thread, sample, NULL) == 0)
        return NULL;
    the_sampler.running = false;
    return "the thread that calls NVML could not be created";
}

/* What has been read since the last call; valid until the next one. */
static const pki_nvml_sample *pki_nvml_sampler_drain(size_t *count)
{
    pthread_mutex_lock(&the_sampler.lock);
    const pki_nvml_sample *taken = queue[filling];
    *count = filled;
    filling ^= 1;
    filled = 0;
    pthread_mutex_unlock(&the_sampler.lock);
    return taken;
}

/* What the thread has taken of the processors, ns, as of its last reading. */
static uint64_t pki_nvml_sampler_cpu(void)
{
    pthread_mutex_lock(&the_sampler.lock);
    uint64_t ns = the_sampler.cpu;
    pthread_mutex_unlock(&the_sampler.lock);
    return ns;
}

/* Waits for the thread, a second at most. */
static void pki_nvml_sampler_stop(void)
{
    struct timespec until = pki_moment(pki_monotonic_ns() + PATIENCE);
    pthread_mutex_lock(&the_sampler.lock);
    pki_store(&the_sampler.stopping, true);
    pthread_cond_signal(&wake);
    while (the_sampler.running && pthread_cond_timedwait(&gone, &the_sampler.lock, &until) == 0)
        ;
    bool ended = !the_sampler.running;
    pthread_mutex_unlock(&the_sampler.lock);
    if (ended)
        pthread_join(thread, NULL);
    else
        pthread_detach(thread);
}

/* What it does or did, in words; live if it samples any device, or did until it was stopped. */
static void pki_nvml_sampler_describe(pk_backend_info *info)
{
    pthread_mutex_lock(&the_sampler.lock);
    pki_nvml_state_describe(&the_sampler, info);
    pthread_mutex_unlock(&the_sampler.lock);
}

static void pki_nvml_sampler_after_fork(void)
{
    pthread_mutex_init(&the_sampler.lock, NULL);
    make_conditions();
    forget();
}

/* ---- the backend ---- */

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
