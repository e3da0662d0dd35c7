/* lib/session/control.c - pk/session.h: start, flush, stop, counts. */
#include "session/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "core/inside.h"
#include "core/overhead.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/collect.h"
#include "session/copies.h"
#include "session/drain.h"
#include "session/output.h"
#include "session/process.h"
#include "session/progress.h"
#include "session/report_file.h"
#include "session/run.h"
#include "session/stepper.h"
#include "session/tail.h"
#include "session/toll.h"

#define CALIBRATION_NS                                                                             \
    1000000u /* between the first two clock samples: 50 ns of doubt in 1 ms, corrected 4 ms later  \
              */

/* At exit() nobody is waited for any longer who does nothing: the arena then stays for pk recover. */
#define EXIT_PATIENCE_NS 10000000000u

pki_session pki_the_session;
pthread_mutex_t pki_drain_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static bool gone;             /* exit() has given up on the session */
static pk_counts last_counts; /* of the session before, once it has ended */
static bool have_last_counts;

static bool is_free(pthread_mutex_t *mutex)
{
    return pthread_mutex_trylock(mutex) == 0 && pthread_mutex_unlock(mutex) == 0;
}

bool pki_control_after_fork(void)
{
    bool quiet = is_free(&control) && is_free(&pki_drain_lock);
    pthread_mutex_init(&control, NULL);
    pthread_mutex_init(&pki_drain_lock, NULL);
    have_last_counts = gone = false;
    return quiet;
}

/* Every control call; PK_OK: it has the lock. */
static pk_status take_control(void)
{
    if (pki_load(&gone))
        return pki_fail_unheard(PK_EOFF, "the process is ending");
    if (!pki_go_inside())
        return pki_fail_inside();
    pthread_mutex_lock(&control);
    return PK_OK;
}

static void give_control(void)
{
    pthread_mutex_unlock(&control);
    pki_go_outside();
}

static void describe_in_arena(const pki_session *s)
{
    pki_arena_header *h = s->arena->header;
    const char *name = strrchr(s->place.trace, '/');
    h->pid = s->config.world.pid;
    h->rank = s->config.world.rank;
    h->world_size = s->config.world.size;
    h->start_unix = s->start_unix;
    h->compressed = s->config.compressed;
    h->ring_records = s->config.ring_records;
    snprintf(h->host, sizeof h->host, "%s", s->config.world.host);
    snprintf(h->program, sizeof h->program, "%s", s->config.world.program);
    snprintf(h->trace_name, sizeof h->trace_name, "%.255s", name ? name + 1 : s->place.trace);
    h->running = 1;
}

static void calibrate(pki_session *s, pki_clock_sample first)
{
    uint64_t passed = pki_monotonic_ns() - first.ns;
    if (passed < CALIBRATION_NS && !s->config.monotonic) {
        struct timespec rest = {0, (long)(CALIBRATION_NS - passed)};
        nanosleep(&rest, NULL);
    }
    pki_clock_map *map = &s->arena->header->clock;
    pki_clock_map_init(map, s->config.monotonic, first, pki_clock_read(s->config.monotonic));
    map->step_ticks = pki_clock_step(s->config.monotonic);
    s->next_clock_check = 0;
}

static void remember_start(pki_session *s)
{
    s->start_unix = pki_read_clock(CLOCK_REALTIME);
    s->start_cpu = pki_read_clock(CLOCK_PROCESS_CPUTIME_ID);
    s->last_write = pki_monotonic_ns();
}

/* Undoes what open_session has done so far. The child of a fork looks at s->arena. */
static pk_status give_up(pki_session *s, pk_status status)
{
    if (s->writing && pki_own_is_at(&s->file.own, s->place.trace))
        unlink(s->place.trace);
    pki_drain_abandon(s);
    pki_arena *arena = pki_place_undo(&s->place, &s->arena);
    if (s->registry) {
        pki_fold_open(NULL, false, 0);
        pki_registry_discard(s->registry);
    } else {
        pki_arena_destroy(arena);
    }
    memset(s, 0, sizeof *s);
    pki_copies_release();
    return status;
}

/* The gate opens last but one: with the collector there is somebody to take what is recorded. */
static pk_status open_gate(pki_session *s)
{
    pki_fold_open(NULL, false, 0); /* the statistics of the session before end here */
    s->registry = pki_registry_open(s->arena, s->config.ring_records, s->config.monotonic);
    if (!s->registry)
        return pki_fail(PK_ENOMEM, "no memory for the list of threads, or no thread key left");
    if (!pki_fold_open(s->registry, s->config.report_threads, s->config.warmup_steps))
        return pki_fail(PK_ENOMEM, "no memory for the statistics");
    pk_status status = pki_collect_start(s);
    if (status)
        return status;
    pki_registry_lock();
    pki_registry_on_drain(s->registry, pki_collect_left);
    pki_registry_unlock();
    return PK_OK;
}

static pk_status open_session(pki_session *s, const pk_options *options)
{
    pk_status status = pki_config_read(&s->config, options);
    if (status)
        return status;
    status = pki_report_check(s->config.report);
    status = status ? status : pki_copies_claim();
    if (status)
        return status;
    pki_clock_sample first = pki_clock_read(s->config.monotonic);
    remember_start(s);
    status = pki_place_open(&s->config, &s->place, &s->arena);
    if (status)
        return pki_copies_release(), status;
    if (strcmp(s->config.report, "-") != 0)
        pki_place_anchor(s->config.report);
    describe_in_arena(s);
    calibrate(s, first);
    s->toll.region_ns = pki_measure_region_ns(s->config.monotonic);
    status = pki_drain_open(s);
    memcpy(s->trace_at, s->place.trace, sizeof s->trace_at);
    pki_place_anchor(s->trace_at);
    status = status ? status : open_gate(s);
    return status ? give_up(s, status) : PK_OK;
}

static void say_hello(const pki_session *s)
{
    pki_log(PK_LOG_INFO, "perfkit %s: clock %s%s%s, trace %s, rank %d of %d", pk_version(),
            pki_clock_name(s->config.monotonic), s->config.clock_reason ? ": " : "",
            s->config.clock_reason ? s->config.clock_reason : "",
            s->place.trace[0] ? s->place.trace : "none", s->config.world.rank,
            s->config.world.size);
}

/* Whoever asked to hear what perfkit says in a session need not be there after it. */
static void hush(void)
{
    pki_log_to(NULL, NULL, PK_LOG_DEFAULT);
}

static pk_status start(pki_session *s, const pk_options *options)
{
    if (s->open)
        return pki_fail(PK_EBUSY, "perfkit is already started in this process");
    memset(s, 0, sizeof *s);
    pki_activity_reset();
    pki_tail_reset();
    pki_progress_reset();
    pk_status status = open_session(s, options);
    s->open = status == PK_OK;
    if (!s->open) {
        hush();
        return status;
    }
    have_last_counts = false;
    pki_backends_start(&s->config);
    say_hello(s);
    return PK_OK;
}

pk_status pk_start(const pk_options *options)
{
    int saved = errno;
    pk_status status = take_control();
    if (status)
        return status;
    pki_process_prepare();
    status = start(&pki_the_session, options);
    give_control();
    errno = saved;
    return status;
}

static pk_status not_open(void)
{
    return pki_fail(PK_EOFF, "perfkit is not started in this process");
}

static const char *trouble_text(const pki_session *s, pk_status status)
{
    return s->trace_place == PKI_TRACE_GONE ? PKI_TRACE_GONE_TEXT : pk_status_text(status);
}

static pk_status flush(pki_session *s)
{
    uint64_t before = pki_toll_begin();
    pki_backends_flush(PKI_FLUSH_NOW);
    pthread_mutex_lock(&pki_drain_lock);
    pki_backends_collect();
    pki_drain_round(s, true);
    pki_output_look(s);
    pk_status status = s->untold;
    s->untold = PK_OK;
    pki_stepper_look(s, true);
    pki_toll_of_caller(s, before);
    pki_toll_publish(s);
    pthread_mutex_unlock(&pki_drain_lock);
    return status ? pki_fail(status, "trace %s: %s", s->place.trace, trouble_text(s, status))
                  : PK_OK;
}

pk_status pk_flush(void)
{
    int saved = errno;
    pk_status status = take_control();
    if (status)
        return status;
    status = pki_the_session.open ? flush(&pki_the_session) : not_open();
    give_control();
    errno = saved;
    return status;
}

/* What is in the rings, and what is still open, at one moment. */
static void last_rounds(pki_session *s)
{
    uint64_t now = pki_ticks(s->config.monotonic), before = pki_toll_begin();
    pki_backends_flush(PKI_FLUSH_LAST);
    pthread_mutex_lock(&pki_drain_lock);
    pki_backends_stop();
    pthread_mutex_unlock(&pki_drain_lock);
    pki_registry_close(s->registry);
    pki_collect_stop(s);
    pthread_mutex_lock(&pki_drain_lock);
    pki_collect_check_clock(s, true);
    pki_stepper_look(s, true);
    s->stop_ns = pki_clock_ns(&s->arena->header->clock, now);
    pki_drain_seal(s);
    pki_drain_round(s, false);
    pki_drain_settle(s);
    pki_drain_open_regions(s, pki_ticks(s->config.monotonic));
    pki_drain_round(s, true);
    pki_output_look(s);
    pki_run_counts(s, &s->final);
    last_counts = s->final;
    have_last_counts = true;
    pki_toll_of_caller(s, before);
    pthread_mutex_unlock(&pki_drain_lock);
}

static pk_status write_reports(pki_session *s)
{
    pki_summary summary;
    char *line = NULL;
    size_t n = 0;
    pk_status status = PK_OK;
    pthread_mutex_lock(&pki_drain_lock);
    if (pki_run_gather(s, &summary)) {
        status = pki_report_file(&summary, s->config.report, s->config.report_json);
        if (s->writing)
            line = pki_report_line(&summary, &n);
        if (s->writing && !line && !status)
            status = pki_fail(PK_ENOMEM, "no memory for the report in the trace");
        pki_summary_finish(&summary);
    } else {
        status = pki_fail(PK_ENOMEM, "no memory for the report");
    }
    pki_drain_close(s, line, n);
    pthread_mutex_unlock(&pki_drain_lock);
    free(line);
    return status;
}

static void tell_of_copies(const pki_session *s)
{
    if (s->final.other_starts)
        pki_log(
            PK_LOG_WARNING,
            "another copy of perfkit in this process wanted to start and was refused, %llu times",
            (unsigned long long)s->final.other_starts);
}

static pk_status stop(pki_session *s)
{
    last_rounds(s);
    tell_of_copies(s);
    pk_status status = write_reports(s);
    s->arena->header->running = 0;
    /* An arena completes its trace, so without one it has nothing to tell. */
    pki_place_end(&s->place, s->arena, s->trouble && s->trace_place != PKI_TRACE_GONE);
    s->open = false;
    pki_copies_release();
    if (s->trouble)
        status = pki_fail(s->trouble, "trace %s: %s; %llu events are missing", s->place.trace,
                          trouble_text(s, s->trouble), (unsigned long long)s->final.unwritten);
    else if (!status)
        status = pki_run_recorded_any(s);
    hush();
    return status;
}

pk_status pk_stop(void)
{
    int saved = errno;
    pk_status status = take_control();
    if (status)
        return status;
    status = pki_the_session.open ? stop(&pki_the_session) : not_open();
    give_control();
    errno = saved;
    return status;
}

static void stop_for_exit(pki_session *s)
{
    stop(s);
}

/* The collector stops the session: exit() may have been called by a handler that interrupted this
 * thread amid malloc, and nobody else can be waited for without end. */
void pki_control_exit(void)
{
    bool ended = false;
    if (pki_go_inside()) {
        if (pki_lock_within(&control, EXIT_PATIENCE_NS)) {
            ended = !pki_the_session.open ||
                    pki_collect_finish(&pki_the_session, stop_for_exit, EXIT_PATIENCE_NS);
            if (ended)
                pthread_mutex_unlock(&control);
        }
        pki_go_outside();
    }
    pki_store(&gone, !ended);
    if (!ended)
        pki_store(&pk_gate_, 0u);
}

static void count_now(const pki_session *s, pk_counts *counts)
{
    pthread_mutex_lock(&pki_drain_lock);
    pki_run_counts(s, counts);
    pthread_mutex_unlock(&pki_drain_lock);
}

pk_status pk_get_counts(pk_counts *counts)
{
    pk_counts all;
    memset(&all, 0, sizeof all);
    if (!counts || counts->size < 8 || counts->size > sizeof all)
        return pki_fail(PK_EINVAL, "pk_counts.size has to be sizeof(pk_counts)");
    pk_status status = take_control();
    if (status)
        return status;
    bool any = pki_the_session.open || have_last_counts;
    if (pki_the_session.open)
        count_now(&pki_the_session, &all);
    else
        all = last_counts;
    give_control();
    all.size = counts->size;
    memcpy(counts, &all, counts->size);
    return any ? PK_OK : not_open();
}
