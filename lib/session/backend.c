#include "session/backend.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/memory.h"
#include "core/names.h"
#include "measure/device/regions.h"
#include "out/chrome/events.h"
#include "session/activity.h"
#include "session/session.h"
#include "session/trace/output.h"

/* ---- who hears of others' ranges ---- */

pk_heard_ *pki_heard;

void pk_nvtx_heard_(pk_heard_ *heard)
{
    pki_store(&pki_heard, heard);
}

/* ---- where backends hand over what devices and libraries did ---- */

/* Linux gives out no pid and no tid above 2^22. */
#define OS_ID_BITS 22
#define BESIDE (1u << 30)
#define DEVICE (1u << 31)

static pki_track *tracks; /* track id - 1 */
static uint32_t track_count;
static size_t track_room;
static pki_activity_counts counted;
static uint64_t measured_since; /* ns, and one; 0: devices are not measured */

/* Up to when all is known that each source has to say; UINT64_MAX: it is not in use. */
static uint64_t known_until[PKI_SOURCES] = {UINT64_MAX, UINT64_MAX};

static void forget(void)
{
    tracks = NULL;
    track_count = 0;
    track_room = 0;
    counted = (pki_activity_counts){0, 0};
    measured_since = 0;
    for (int i = 0; i < PKI_SOURCES; i++)
        known_until[i] = UINT64_MAX;
}

static void reset(void)
{
    for (uint32_t i = 0; i < track_count; i++) {
        free((char *)(uintptr_t)tracks[i].process);
        free((char *)(uintptr_t)tracks[i].thread);
    }
    free(tracks);
    forget();
}

pki_activity_counts pki_activity_counted(void)
{
    return counted;
}

uint32_t pki_track_device_pid(uint32_t device)
{
    uint32_t pid = pki_the_session.config.world.pid & ((1u << OS_ID_BITS) - 1);
    return DEVICE | pid << 8 | (device & 0xFF);
}

uint32_t pki_track_beside(uint32_t tid)
{
    return BESIDE | tid;
}

uint32_t pki_track_apart(uint32_t n)
{
    return BESIDE | 1u << OS_ID_BITS | n;
}

/* ---- tracks ---- */

static uint32_t find_activity(uint32_t pid, uint32_t tid)
{
    for (uint32_t i = track_count; i > 0; i--)
        if (tracks[i - 1].tid == tid && tracks[i - 1].pid == pid)
            return i;
    return 0;
}

static uint32_t make_track(const pki_track *t)
{
    pki_track copy = *t;
    copy.process = t->process ? strdup(t->process) : NULL;
    copy.thread = strdup(t->thread);
    if (!copy.thread || (t->process && !copy.process) ||
        !pki_array_fit(&tracks, &track_room, track_count + (size_t)1, sizeof *tracks)) {
        free((char *)(uintptr_t)copy.process);
        free((char *)(uintptr_t)copy.thread);
        return 0;
    }
    tracks[track_count++] = copy;
    return track_count;
}

uint32_t pki_track_unwritten(const pki_track *t)
{
    uint32_t id = find_activity(t->pid, t->tid);
    return id ? id : make_track(t);
}

uint32_t pki_track_add(const pki_track *t)
{
    pki_session *s = &pki_the_session;
    uint32_t id = find_activity(t->pid, t->tid);
    if (id)
        return id;
    id = make_track(t);
    if (id && pki_output_room(s))
        pki_output_wrote(s, pki_chrome_track(s->buffer + s->pending.buffered, &tracks[id - 1]), 0);
    return id;
}

void pki_activity_repeat_metadata(void (*put)(void *user, const char *text, size_t n), void *user)
{
    char event[PKI_EVENT_BYTES];
    for (uint32_t i = 0; i < track_count; i++)
        put(user, event, pki_chrome_track(event, &tracks[i]));
    if (measured_since)
        put(user, event,
            pki_chrome_measures(event, pki_the_session.config.world.pid, measured_since - 1, true));
}

/* ---- activities ---- */

static bool write_activity(pki_session *s, const pki_activity *a)
{
    const pki_name *region = a->region ? pki_name_at(a->region) : NULL;
    if (a->track == 0 || a->track > track_count || !pki_output_room(s))
        return false;
    size_t n =
        pki_chrome_activity(&s->chrome, s->buffer + s->pending.buffered, &tracks[a->track - 1], a,
                            region ? region->name : NULL, region ? region->length : 0);
    pki_output_wrote(s, n, 0);
    return true;
}

static void fold_activity(pki_fold *fold, const pki_activity *a)
{
    if (a->kind == PKI_ACTIVITY_SPAN && a->region)
        pki_device_region_add(fold, a->region, pki_not_negative(a->end - a->start));
    if (pki_device_full(fold->device)) {
        pki_fold_all(fold); /* steps that have ended, so that none is cut too late */
        pki_device_make_room(fold->device);
    }
    pki_device_add(fold->device, a);
}

static void measure(const pki_activity *a)
{
    pki_fold_lock();
    if (pki_fold_now())
        fold_activity(pki_fold_now(), a);
    pki_fold_unlock();
}

static _Thread_local const bool *left_behind; /* of a thread that asks, under the drain lock */

bool pki_activity_lock(void)
{
    pthread_mutex_lock(&pki_drain_lock);
    if (!left_behind || !*left_behind)
        return true;
    pthread_mutex_unlock(&pki_drain_lock);
    return false;
}

void pki_activity_unlock(void)
{
    pthread_mutex_unlock(&pki_drain_lock);
}

void pki_activity_add(const pki_activity *a)
{
    pki_session *s = &pki_the_session;
    counted.added++;
    measure(a);
    if (a->track && a->track <= track_count)
        pki_history_activity(s->history, a, &tracks[a->track - 1]);
    if (!write_activity(s, a))
        counted.unwritten += s->writing;
}

void pki_activity_tell(const pki_activity *a, bool traced)
{
    if (a->track && a->track <= track_count)
        pki_history_activity(pki_the_session.history, a, &tracks[a->track - 1]);
    if (traced)
        write_activity(&pki_the_session, a);
}

void pki_activity_count_operation(const pki_timed_operation *operation, uint32_t calls)
{
    pki_fold_lock();
    if (pki_fold_now())
        pki_comm_figures_add_calls(pki_fold_now()->collectives, operation, calls);
    pki_fold_unlock();
}

void pki_activity_dropped_operations(uint64_t events, uint64_t operations)
{
    pki_fold_lock();
    if (pki_fold_now())
        pki_comm_figures_set_dropped(pki_fold_now()->collectives, events, operations);
    pki_fold_unlock();
}

static void fold_sample(pki_fold *fold, const pki_record *r, double value)
{
    const pki_name *name = pki_name_at(pki_what_id(r->what));
    uint32_t device;
    pki_fold_point(fold, r);
    if (fold && name && pki_device_is_memory(name->name, &device))
        pki_device_memory(fold->device, device, pki_activity_ns_of_ticks(r->start), value);
}

static void add_sample(pk_counter *counter, double value, uint64_t ticks)
{
    pki_session *s = &pki_the_session;
    pki_record r = {ticks, 0, PKI_WHAT(pki_counter_id(counter), PKI_RECORD_COUNTER, 0), 0};
    memcpy(&r.value, &value, sizeof value);
    pki_fold_lock();
    fold_sample(pki_fold_now(), &r, value);
    pki_fold_unlock();
    if (pki_output_room(s))
        pki_output_wrote(s,
                         pki_chrome_event(&s->chrome, s->buffer + s->pending.buffered,
                                          s->config.world.pid, &r, &r),
                         0);
    pki_history_record(s->history, s->config.world.pid, &r, &r);
}

void pki_activity_counter(pk_counter *counter, double value)
{
    add_sample(counter, value, pki_activity_ticks());
}

/* Back from now at the clock's rate: a microsecond or so off after seconds, if it is corrected. */
void pki_activity_counter_at(pk_counter *counter, double value, uint64_t ns)
{
    uint64_t ticks = pki_activity_ticks(), now = pki_activity_ns_of_ticks(ticks);
    double unit = pki_clock_unit_ns(&pki_the_session.arena->header->clock);
    uint64_t ago = now > ns ? (uint64_t)((double)(now - ns) / unit) : 0;
    add_sample(counter, value, ticks - PKI_MIN(ago, ticks));
}

/* ---- up to when each source is known ---- */

uint64_t pki_activity_known_until(void)
{
    uint64_t first = UINT64_MAX;
    for (int i = 0; i < PKI_SOURCES; i++)
        first = PKI_MIN(first, known_until[i]);
    return first;
}

static void finalise(void)
{
    uint64_t first = pki_activity_known_until();
    pki_fold_lock();
    if (pki_fold_now() && first < UINT64_MAX)
        pki_device_finalised(pki_fold_now()->device, first);
    pki_fold_unlock();
}

static void await(bool anybody)
{
    pki_fold_lock();
    if (pki_fold_now())
        pki_device_await(pki_fold_now()->device, anybody);
    pki_fold_unlock();
}

void pki_activity_begins(pki_source source, uint64_t ns)
{
    await(true);
    known_until[source] = ns;
}

void pki_activity_finalised(pki_source source, uint64_t ns)
{
    if (known_until[source] == UINT64_MAX)
        return;
    known_until[source] = PKI_MAX(known_until[source], ns);
    finalise();
}

void pki_activity_ends(pki_source source)
{
    known_until[source] = UINT64_MAX;
    finalise();
}

/* The trace says so too: whoever makes a report of it has to know which steps are measured. */
static void tell_measures(uint64_t ns, bool on)
{
    pki_session *s = &pki_the_session;
    if (pki_output_room(s))
        pki_output_wrote(
            s, pki_chrome_measures(s->buffer + s->pending.buffered, s->config.world.pid, ns, on),
            0);
    pki_fold_lock();
    if (pki_fold_now())
        pki_device_measures(pki_fold_now()->device, ns, on);
    pki_fold_unlock();
}

void pki_activity_measures(uint64_t ns, bool on)
{
    tell_measures(ns, on);
    measured_since = on ? ns + 1 : 0;
    pki_history_measures(pki_the_session.history, ns, on);
}

void pki_activity_untold(uint64_t ns)
{
    tell_measures(ns, false);
}

/* ---- time ---- */

/* Of the arena's clock, for threads that ask when that is gone. */
static uint64_t origin; /* CLOCK_MONOTONIC, ns, as the session started */
static pki_clock_sleeps sleeps;

void pki_activity_slept(const pki_clock_sleeps *now)
{
    pki_store(&sleeps.all, now->all);
    pki_store(&sleeps.last, now->last);
    pki_store(&sleeps.end, now->end);
}

uint64_t pki_activity_ns(uint64_t monotonic_ns)
{
    pki_clock_sleeps now = {pki_load(&sleeps.all), pki_load(&sleeps.last), pki_load(&sleeps.end)};
    return pki_clock_slept_ns(&now, pki_saturating_sub(monotonic_ns, pki_load(&origin)));
}

uint64_t pki_activity_ns_of_ticks(uint64_t ticks)
{
    return pki_clock_ns(&pki_the_session.arena->header->clock, ticks);
}

uint64_t pki_activity_ticks(void)
{
    return pki_ticks(pki_the_session.config.monotonic);
}

/* ---- the table of backends ---- */

extern const pki_backend pki_backend_cuda, pki_backend_cupti, pki_backend_nvtx, pki_backend_nccl,
    pki_backend_nvml;

const pki_backend *const pki_backends[] = {&pki_backend_cuda, &pki_backend_cupti, &pki_backend_nvtx,
                                           &pki_backend_nccl, &pki_backend_nvml};
const size_t pki_backend_count = PKI_COUNT_OF(pki_backends);

/* Who asks for the status may do so while a session starts. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char wanted_list[sizeof((pki_config *)0)->backends];
static bool in_use[PKI_COUNT_OF(pki_backends)]; /* in the running or the last session */
static bool any_session;                        /* in this process */
static bool live[PKI_COUNT_OF(pki_backends)];
static uint64_t stopped_cpu; /* of those that are no longer live */

pthread_mutex_t pki_asking_lock = PTHREAD_MUTEX_INITIALIZER;

/* +1: named, -1: named with a minus, 0: not named. */
static int named(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; *p; p += *p == ',') {
        int sign = *p == '-' ? -1 : 1;
        p += *p == '-';
        size_t length = strcspn(p, ",");
        if (length == n && memcmp(p, name, n) == 0)
            return sign;
        p += length;
    }
    return 0;
}

/* A list of names asks for those, a list of names with a minus for all default ones but those. */
bool pki_backend_wanted(const pki_backend *b, const char *list)
{
    if (strcmp(list, "none") == 0)
        return false;
    int sign = named(list, b->name);
    bool only_without = !*list || *list == '-';
    return sign > 0 || (sign == 0 && only_without && b->by_default);
}

static bool is_requested(const pki_backend *b, const pki_config *config)
{
    const char *list = config->backends;
    if (pki_backend_wanted(b, list))
        return true;
    return b->requested && strcmp(list, "none") != 0 && named(list, b->name) == 0 &&
           b->requested(config);
}

/* ---- who asks, and does not come back ---- */

#define LONG_NS 1000000000u /* for a call */

static bool away[PKI_COUNT_OF(pki_backends)]; /* in use by a thread that is left behind */
static size_t asked; /* its place in the table, and one; 0: none. By who asks */
static uint64_t asked_ns;
static double patience; /* s, of who has left it behind */

/* Under `lock`: what the status has to say of that. */
static enum { NOTHING, STUCK, UNASKED, REFUSED } asking[PKI_COUNT_OF(pki_backends)];
static size_t stuck; /* its place in the table */

static bool is_away(size_t i)
{
    return pki_load_acquire(&away[i]); /* pairs with the release in pki_backends_come_back */
}

static bool is_asked(size_t i)
{
    return pki_backends[i]->ask || pki_backends[i]->flush;
}

/* By who is left behind the libraries are given back, which the session has done with. */
static bool may_be_asked(size_t i)
{
    /* Pairs with the release in start. */
    return left_behind && pki_load(&away[i]) ? true : pki_load_acquire(&live[i]);
}

static void begin_asking(size_t i)
{
    pki_store(&asked_ns, pki_monotonic_ns());
    pki_store(&asked, i + 1);
}

/* A new session has nothing to say of what the one before has left out. */
static void forget_asking(size_t i)
{
    asking[i] = in_use[i] && is_away(i) ? REFUSED : NOTHING;
}

void pki_backends_flush(pki_flush why)
{
    for (size_t i = 0; i < pki_backend_count; i++)
        if (may_be_asked(i) && pki_backends[i]->flush) {
            begin_asking(i);
            pki_backends[i]->flush(why);
        }
    pki_store(&asked, (size_t)0);
}

void pki_backends_ask(pki_flush why)
{
    if (!left_behind && !pki_backends_asking())
        return; /* the lock may be with who is left behind */
    pthread_mutex_lock(&pki_asking_lock);
    for (size_t i = 0; i < pki_backend_count; i++)
        if (may_be_asked(i) && pki_backends[i]->ask) {
            begin_asking(i);
            pki_backends[i]->ask(why);
        }
    pki_store(&asked, (size_t)0);
    pthread_mutex_unlock(&pki_asking_lock);
}

void pki_backends_asked_by(const bool *left)
{
    left_behind = left;
}

void pki_backends_leave(double seconds)
{
    size_t within = pki_load(&asked);
    pthread_mutex_lock(&lock);
    patience = seconds;
    stuck = within ? within - 1 : pki_backend_count;
    for (size_t i = 0; i < pki_backend_count; i++) {
        if (!live[i] || !is_asked(i))
            continue;
        asking[i] = i == stuck ? STUCK : UNASKED;
        pki_store(&away[i], true);
        if (pki_backends[i]->leave)
            pki_backends[i]->leave();
    }
    pthread_mutex_unlock(&lock);
}

void pki_backends_come_back(void)
{
    left_behind = NULL;
    for (size_t i = 0; i < pki_backend_count; i++)
        pki_store_release(&away[i], false); /* pairs with the acquire in is_away */
}

static bool is_long_asked(size_t i)
{
    return pki_load(&live[i]) && pki_load(&asked) == i + 1 &&
           pki_monotonic_ns() - pki_load(&asked_ns) > LONG_NS;
}

/* Under `lock`. False: nothing stands in the way of asking the backend itself. */
static bool describe_asking(size_t i, pk_backend_info *info)
{
    if (asking[i] == STUCK)
        snprintf(
            info->reason, sizeof info->reason,
            "a call of its library has not come back, for %g s of pk_stop: what it had not told "
            "by then is left out",
            patience);
    else if (asking[i] == UNASKED)
        snprintf(info->reason, sizeof info->reason,
                 "not asked any more, as a call for %s has not come back for %g s of pk_stop: what "
                 "it had not told by then is left out",
                 stuck < pki_backend_count ? pki_backends[stuck]->name : "another backend",
                 patience);
    else if (asking[i] == REFUSED)
        snprintf(info->reason, sizeof info->reason,
                 "off: a call that an earlier session made has not come back yet");
    else if (is_long_asked(i))
        snprintf(info->reason, sizeof info->reason,
                 "a call of its library has not come back for %.0f s",
                 (double)(pki_monotonic_ns() - pki_load(&asked_ns)) / 1e9);
    else
        return false;
    info->live = asking[i] != REFUSED;
    return true;
}

/* ---- from start to stop ---- */

/* Those who asked for it hear of regions from here on. */
static void open_mirrors(void)
{
    const pki_mirror *mirrors[PKI_COUNT_OF(pki_backends)];
    unsigned count = 0;
    for (size_t i = 0; i < pki_backend_count; i++)
        if (live[i] && pki_backends[i]->mirror && pki_backends[i]->mirror->begin)
            mirrors[count++] = pki_backends[i]->mirror;
    if (count)
        pki_mirrors_open(mirrors, count);
}

static void remember(const pki_config *config)
{
    pthread_mutex_lock(&lock);
    memcpy(wanted_list, config->backends, sizeof wanted_list);
    any_session = true;
    for (size_t i = 0; i < pki_backend_count; i++)
        in_use[i] = is_requested(pki_backends[i], config);
    for (size_t i = 0; i < pki_backend_count; i++)
        forget_asking(i);
    pthread_mutex_unlock(&lock);
}

static pk_status open_activities(pki_session *s)
{
    pki_store(&origin, s->arena->header->clock.origin_ns);
    pki_activity_slept(&s->arena->header->clock.sleeps);
    for (size_t i = 0; i < pki_backend_count; i++)
        if (pki_backends[i]->foresee && is_requested(pki_backends[i], &s->config))
            pki_backends[i]->foresee();
    return PK_OK;
}

/* Where nobody tells of devices no step waits for it, and nothing is kept. */
static void start(pki_session *s)
{
    remember(&s->config);
    pki_store(&stopped_cpu, 0);
    for (size_t i = 0; i < pki_backend_count; i++)
        pki_store_release(&live[i], in_use[i] && !is_away(i) && pki_backends[i]->start &&
                                        pki_backends[i]->start(&s->config));
    open_mirrors();
    await(pki_backends_tell_of_devices(NULL));
}

bool pki_backends_asking(void)
{
    for (size_t i = 0; i < pki_backend_count; i++)
        if (pki_load(&live[i]) && is_asked(i))
            return true;
    return false;
}

bool pki_backends_collecting(void)
{
    for (size_t i = 0; i < pki_backend_count; i++)
        if (pki_load(&live[i]) && pki_backends[i]->collect &&
            !(pki_backends[i]->idle && pki_backends[i]->idle()))
            return true;
    return false;
}

bool pki_backends_tell_of_devices(const pki_backend *but)
{
    for (size_t i = 0; i < pki_backend_count; i++)
        if (pki_load(&live[i]) && pki_backends[i]->devices && pki_backends[i] != but)
            return true;
    return false;
}

void pki_backends_collect(void)
{
    for (size_t i = 0; i < pki_backend_count; i++)
        if (pki_load_acquire(&live[i]) && /* pairs with the release in start */
            pki_backends[i]->collect)
            pki_backends[i]->collect();
}

static uint64_t cpu_of(size_t i)
{
    return pki_backends[i]->cpu ? pki_backends[i]->cpu() : 0;
}

uint64_t pki_backends_cpu(void)
{
    uint64_t ns = pki_load(&stopped_cpu);
    for (size_t i = 0; i < pki_backend_count; i++)
        if (pki_load_acquire(&live[i])) /* pairs with the release in start */
            ns += cpu_of(i);
    return ns;
}

static void halt(pki_session *s)
{
    (void)s;
    pki_mirrors_close();
    for (size_t i = 0; i < pki_backend_count; i++)
        if (live[i] && pki_backends[i]->halt)
            pki_backends[i]->halt();
}

static void stop(pki_session *s)
{
    (void)s;
    for (size_t i = 0; i < pki_backend_count; i++) {
        if (live[i] && pki_backends[i]->stop)
            pki_backends[i]->stop();
        pki_bump(&stopped_cpu, live[i] ? cpu_of(i) : 0);
        pki_store(&live[i], false);
    }
}

static void after_fork(void)
{
    forget(); /* it may be half of something */
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&pki_asking_lock, NULL);
    any_session = false;
    left_behind = NULL;
    asked = 0;
    for (size_t i = 0; i < pki_backend_count; i++) {
        pki_store(&live[i], false); /* threads that are not here wrote these */
        pki_store(&away[i], false);
        pki_store(&asking[i], NOTHING);
        if (pki_backends[i]->after_fork)
            pki_backends[i]->after_fork();
    }
}

const pki_service pki_service_activity = {
    .name = "activity",
    .reset = reset,
    .open = open_activities,
    .start = start,
    .halt = halt,
    .close = stop,
    .after_fork = after_fork,
};

/* Its place in the table; pki_backend_count: there is none. */
static size_t find(const char *name)
{
    size_t i = 0;
    while (i < pki_backend_count && (!name || strcmp(pki_backends[i]->name, name) != 0))
        i++;
    return i;
}

static void describe(size_t i, bool asks, pk_backend_info *full)
{
    memset(full, 0, sizeof *full);
    pthread_mutex_lock(&lock);
    bool wanted = in_use[i] || pki_backend_wanted(pki_backends[i], wanted_list), any = any_session;
    bool said = describe_asking(i, full);
    pthread_mutex_unlock(&lock);
    if (!said && (wanted || !any)) /* a session without a backend leaves its library alone */
        (asks || !pki_backends[i]->told ? pki_backends[i]->probe : pki_backends[i]->told)(full);
    if (!full->reason[0] && !wanted)
        strcpy(full->reason, "not asked for");
}

void pki_backend_told(size_t i, pk_backend_info *info)
{
    describe(i, false, info);
}

pk_status(pk_backend_status)(const char *name, pk_backend_info *info)
{
    size_t i = find(name);
    pk_backend_info full;
    if (i == pki_backend_count)
        return pki_fail(PK_ENOENT, "there is no backend %.40s: cuda, cupti, nvtx, nccl and nvml",
                        name ? name : "NULL");
    if (!info || info->size < 8 || info->size > sizeof *info)
        return pki_fail(PK_EINVAL, "pk_backend_info.size has to be sizeof(pk_backend_info)");
    describe(i, true, &full);
    full.size = info->size;
    memcpy(info, &full, info->size);
    return PK_OK;
}
