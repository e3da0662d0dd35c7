#include "session/control.h"

#include <pk/private.h>
#include <pk/region.h>
#include <pk/session.h>

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/files.h"
#include "base/loader.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/tuning.h"
#include "capture/capture.h"
#include "comm/live/progress.h"
#include "comm/model/communicator.h"
#include "core/events.h"
#include "core/frames.h"
#include "core/join.h"
#include "core/overhead.h"
#include "core/phase.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/captures/captures.h"
#include "session/collector/collect.h"
#include "session/collector/drain.h"
#include "session/job/job.h"
#include "session/report/run.h"
#include "session/session.h"
#include "session/trace/output.h"

/* ---- the one session of the process, from pk_start to pk_stop ---- */

pki_session pki_the_session;
pthread_mutex_t pki_drain_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static bool abandoned;        /* exit() has given up on the session */
static pk_counts last_counts; /* of the session before, once it has ended */
static bool have_last_counts;

static bool is_free(pthread_mutex_t *mutex)
{
    return pthread_mutex_trylock(mutex) == 0 && pthread_mutex_unlock(mutex) == 0;
}

/* In the child of a fork. False if one of the locks was held: what it guards may be half of
 * something. */
static bool pki_session_after_fork(void)
{
    bool quiet = is_free(&control) && is_free(&pki_drain_lock);
    pthread_mutex_init(&control, NULL);
    pthread_mutex_init(&pki_drain_lock, NULL);
    have_last_counts = abandoned = false;
    return quiet;
}

pk_status pki_control_lock(void)
{
    if (pki_load(&abandoned))
        return pki_fail_unheard(PK_EOFF, "the process is ending");
    if (!pki_inside_enter())
        return pki_fail_inside();
    pthread_mutex_lock(&control);
    return PK_OK;
}

bool pki_control_lock_within(uint64_t ns)
{
    if (!pki_inside_enter())
        return false;
    bool locked = pki_lock_within(&control, ns);
    if (!locked)
        pki_inside_leave();
    return locked;
}

void pki_control_unlock(void)
{
    pthread_mutex_unlock(&control);
    pki_inside_leave();
}

/* exit() has given up on the session, which is left as by a kill; no control call does anything
 * from here on. */
static void pki_session_abandon(bool yes)
{
    pki_store(&abandoned, yes);
    if (yes)
        pki_store(&pk_gate_, 0u);
}

/* What the last session that has ended had counted. False: none has. Under the control lock. */
static void pki_session_set_last_counts(const pk_counts *counts)
{
    last_counts = *counts;
    have_last_counts = true;
}

static bool pki_session_last_counts(pk_counts *counts)
{
    *counts = last_counts;
    return have_last_counts;
}

/* Whoever asked to hear what perfkit says in a session need not be there after it. */
static void pki_session_reset_log(void)
{
    pki_log_to(NULL, NULL, PK_LOG_DEFAULT);
}

/* ---- service ---- */

extern const pki_service pki_service_activity, pki_service_tail, pki_service_captures,
    pki_service_states, pki_service_looks, pki_service_stacks, pki_service_live,
    pki_service_stragglers, pki_service_thinning, pki_service_processors, pki_service_io,
    pki_service_io_steps, pki_service_energy, pki_service_events, pki_service_memory,
    pki_service_memory_steps, pki_service_gpu_memory, pki_service_gpu_load, pki_service_windows,
    pki_service_metrics, pki_service_goodput, pki_service_watchdog, pki_service_job;

/* Of layers that know no session. */
static const pki_service progress = {
    .name = "progress",
    .reset = pki_progress_reset,
    .folded = pki_progress_round,
    .after_fork = pki_progress_reset,
};
static const pki_service phases = {
    .name = "phases",
    .reset = pki_phases_reset,
    .after_fork = pki_phases_after_fork,
};

/* What measures stands before what tells of it: figures in files are then of the same round. */
const pki_service *const pki_services[] = {
    &pki_service_activity, /* and what hands over, the backends */
    &pki_service_tail,
    &progress,
    &phases,
    &pki_service_captures,
    &pki_service_states, /* behind it: what it tells belongs to the round */
    &pki_service_looks,
    &pki_service_stacks, /* behind it: a late step's samples */
    &pki_service_live,
    &pki_service_stragglers,
    &pki_service_thinning,
    &pki_service_processors,
    &pki_service_io,
    &pki_service_energy,
    &pki_service_events,
    &pki_service_memory,
    &pki_service_memory_steps,
    &pki_service_gpu_memory,
    &pki_service_gpu_load,
    &pki_service_windows,
    &pki_service_metrics,
    &pki_service_goodput,
    &pki_service_watchdog,
    &pki_service_job,
    &pki_service_io_steps, /* from here on what is read and written is the program's */
};
const size_t pki_service_count = PKI_COUNT_OF(pki_services);

/* until the first that fails */
static pk_status pki_services_open(pki_session *s)
{
    pk_status status = PK_OK;
    for (size_t i = 0; i < pki_service_count && !status; i++)
        if (pki_services[i]->open)
            status = pki_services[i]->open(s);
    return status;
}

/* of the first that has something to say */
static pk_status pki_services_status(void)
{
    pk_status status = PK_OK;
    for (size_t i = 0; i < pki_service_count && !status; i++)
        if (pki_services[i]->status)
            status = pki_services[i]->status();
    return status;
}

bool pki_services_summarise(const pki_session *s, pki_summary *out)
{
    bool done = true;
    for (size_t i = 0; i < pki_service_count && done; i++)
        done = !pki_services[i]->summarise || pki_services[i]->summarise(s, out);
    return done;
}

uint64_t pki_services_spent(void)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < pki_service_count; i++)
        ns += pki_services[i]->spent ? pki_services[i]->spent() : 0;
    return ns;
}

uint64_t pki_services_watch(pki_session *s, uint64_t slept, uint64_t due)
{
    uint64_t first = 0;
    for (size_t i = 0; i < pki_service_count; i++) {
        uint64_t wanted = pki_services[i]->watch ? pki_services[i]->watch(s, slept, due) : 0;
        if (wanted && (!first || wanted < first))
            first = wanted;
    }
    return first;
}

/* ---- fork, exit, and being unloaded ---- */

static void pki_session_exit(void);

/* The child has one thread and a copy of everything; the files, the arena and the collector are the
 * parent's. None of our locks was taken before the fork, but for that of base/loader.h, since that
 * could have meant waiting for a disk; so no state is trusted, it is made anew; what nobody held is
 * given back, what somebody did is not. */
static void in_child(void)
{
    pki_session *s = &pki_the_session;
    pki_services_each(after_fork, ());
    if (pki_session_after_fork()) {
        pki_drain_abandon(s);
    } else if (s->open && s->writing) {
        pki_own_close(&s->file.own);
    }
    pki_dl_after_fork();
    pki_driver_after_fork();
    pki_log_after_fork();
    pki_names_after_fork();
    pki_samplers_after_fork();
    pki_comms_after_fork();
    pki_fold_after_fork();
    pki_registry_after_fork(s->open ? NULL : s->arena);
    pki_join_after_fork();
    pki_collect_after_fork();
    pki_duplicates_release();
    memset(s, 0, sizeof *s);
}

static bool armed; /* exit() will come by */

static void stop_at_exit(void)
{
    pki_store(&armed, false);
    if (pki_the_session.open)
        pki_session_exit();
    else
        pki_job_exit(); /* nobody has taken it: MPI_Finalize was not called */
}

/* A library that is unloaded while our threads run in it takes the program down with it. */
static void stay_loaded(void)
{
    Dl_info self;
    if (dladdr((void *)(uintptr_t)&pki_the_session, &self) && self.dli_fname) {
        void *handle = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        if (handle)
            dlclose(handle); /* the flag stays */
    }
}

static void prepare(void)
{
    pthread_atfork(pki_dl_before_fork, pki_dl_after_fork_in_parent, in_child);
    stay_loaded();
}

/* At each pk_start, under its lock. */
static void pki_process_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    pki_standard_check();
    if (!armed) /* again, if a function that exit() calls opens a session */
        armed = atexit(stop_at_exit) == 0;
}

/* ---- start and stop ---- */

static pk_status pki_start_untold(const pk_options *options);

/* ---- what whoever starts the program wants, beside what its code asks for ---- */

static pk_status read_switch(const char *variable, bool *on)
{
    const char *text = pki_variable(variable);
    *on = text && strcmp(text, "1") == 0;
    return !text || *on || strcmp(text, "0") == 0
               ? PK_OK
               : pki_fail(PK_EINVAL, "%s=%.40s is neither 0 nor 1", variable, text);
}

/* PK_OFF=1: no session, and every control call answers PK_OK, as with -DPK_DISABLE. PK_EINVAL if it
 * or PK_OVERRIDE is neither 0 nor 1. */
static pk_status pki_operator_read(bool *off)
{
    bool override;
    pk_status status = read_switch("PK_OFF", off);
    return status || *off ? status : read_switch("PK_OVERRIDE", &override);
}

/* ---- PK_OVERRIDE ---- */

/* All members that have a variable, but for tuning, which goes by its keys. rank counts with
 * world_size alone. */
#define FOR_EACH_OPTION(X)                                                                         \
    X(trace_path, "PK_TRACE_PATH")                                                                 \
    X(report_path, "PK_REPORT_PATH")                                                               \
    X(memory_bytes, "PK_MEMORY_BYTES")                                                             \
    X(backends, "PK_BACKENDS")                                                                     \
    X(warmup_steps, "PK_WARMUP_STEPS")                                                             \
    X(world_size, "PK_WORLD_SIZE")                                                                 \
    X(log_level, "PK_LOG_LEVEL")                                                                   \
    X(log, "PK_LOG")                                                                               \
    X(history_steps, "PK_HISTORY_STEPS")                                                           \
    X(capture, "PK_CAPTURE")                                                                       \
    X(capture_path, "PK_CAPTURE_PATH")                                                             \
    X(windows_path, "PK_WINDOWS_PATH")                                                             \
    X(metrics_path, "PK_METRICS_PATH")                                                             \
    X(hang_seconds, "PK_HANG_SECONDS")                                                             \
    X(hang_command, "PK_HANG_COMMAND")                                                             \
    X(overhead_max, "PK_OVERHEAD_MAX")                                                             \
    X(goodput_path, "PK_GOODPUT_PATH")                                                             \
    X(costs, "PK_COSTS")                                                                           \
    X(job_path, "PK_JOB_PATH")

bool pki_operator_overrides(void)
{
    bool on;
    return read_switch("PK_OVERRIDE", &on) == PK_OK && on;
}

void pki_operator_override(pk_options *options)
{
    if (!pki_operator_overrides())
        return;
#define UNSET(member, variable)                                                                    \
    if (pki_variable(variable))                                                                    \
        options->member = 0;
    FOR_EACH_OPTION(UNSET)
#undef UNSET
}

/* ---- what no code looks at ---- */

#define HAS(o, member)                                                                             \
    ((o) && (o)->size >= offsetof(pk_options, member) + sizeof(o)->member && (o)->member)

/* Does the environment and not the code ask for the trace or the report? Then no code need look at
 * the status of a start or stop. */
static bool pki_operator_asks(const pk_options *options)
{
    bool override = false;
    read_switch("PK_OVERRIDE", &override);
    const bool trace = override || !HAS(options, trace_path);
    const bool report = override || !HAS(options, report_path);
    return (trace && pki_variable("PK_TRACE_PATH")) || (report && pki_variable("PK_REPORT_PATH"));
}

/* PK_LOG: stderr has it already, none forbids it. */
static bool is_silent(void)
{
    return pki_variable("PK_LOG") != NULL;
}

static bool speaks_for_its_host(void)
{
    pki_world world;
    pki_world_detect(&world);
    return world.local_rank <= 0;
}

/* One line on stderr, prefix and pk_error_message(), about a status that is not PK_OK. Not if
 * PK_LOG=stderr has said it or PK_LOG=none forbids it; of the ranks of a host one says it. */
static void pki_operator_tell(const char *prefix, pk_status status)
{
    char line[448];
    if (!status || is_silent() || !speaks_for_its_host())
        return;
    snprintf(line, sizeof line, "%s%.380s (%s)", prefix, pk_error_message(),
             pk_status_name(status));
    pki_log_to_stderr(NULL, PK_LOG_INFO, line);
}

/* ---- from options to an open session. Under the control lock ---- */

/* Between the first two clock samples: 50 ns of doubt in 1 ms, corrected 4 ms later. */
#define CALIBRATION_NS 1000000u

static void describe_in_arena(const pki_session *s)
{
    pki_arena_header *h = s->arena->header;
    const char *name = strrchr(s->paths.trace, '/');
    h->pid = s->config.world.pid;
    h->rank = s->config.world.rank;
    h->world_size = s->config.world.size;
    h->start_unix = s->start_unix;
    h->compressed = s->config.compressed;
    h->ring_records = s->config.ring_records;
    snprintf(h->host, sizeof h->host, "%s", s->config.world.host);
    h->local_rank = s->config.world.local_rank;
    h->local_size = s->config.world.local_size;
    h->node = s->config.world.node;
    snprintf(h->job, sizeof h->job, "%s", s->config.world.job);
    snprintf(h->clock_id, sizeof h->clock_id, "%s", s->config.world.clock);
    snprintf(h->program, sizeof h->program, "%s", s->config.world.program);
    snprintf(h->trace_name, sizeof h->trace_name, "%.255s", name ? name + 1 : s->paths.trace);
    memcpy(h->trace_path, s->paths.trace, sizeof h->trace_path);
    pki_paths_anchor(h->trace_path);
    h->running = 1;
}

static void begin_clock(pki_session *s, pki_clock_sample first, uint64_t step_ticks)
{
    pki_clock_map *map = &s->arena->header->clock;
    pki_clock_map_init(map, s->config.monotonic, first, pki_clock_read(s->config.monotonic));
    map->step_ticks = step_ticks;
    s->next_clock_check = 0;
}

/* The last thing before the gate opens, for whoever records reads this map: all else is made ready
 * in the meantime, by a clock whose zero is right and whose rate is a guess. */
static void calibrate(pki_session *s, pki_clock_sample first)
{
    uint64_t passed = pki_monotonic_ns() - first.ns;
    if (s->config.monotonic)
        return;
    if (passed < CALIBRATION_NS) {
        struct timespec rest = {0, (long)(CALIBRATION_NS - passed)};
        nanosleep(&rest, NULL);
    }
    begin_clock(s, first, s->arena->header->clock.step_ticks);
    if (s->writing)
        pki_drain_rewrite_head(s, false);
}

static void remember_start(pki_session *s)
{
    s->start_unix = pki_read_clock(CLOCK_REALTIME);
    s->start_cpu = pki_read_clock(CLOCK_PROCESS_CPUTIME_ID);
    s->last_write = pki_monotonic_ns();
}

/* Undoes what has been done so far. The child of a fork looks at s->arena. */
static pk_status undo(pki_session *s, pk_status status)
{
    if (s->writing && pki_own_is_at(&s->file.own, s->paths.trace))
        unlink(s->paths.trace);
    pki_drain_abandon(s);
    pki_services_each(abandon, (s));
    pki_arena *arena = pki_paths_undo(&s->paths, &s->arena);
    if (s->registry) {
        pki_fold_open(NULL, false, 0);
        pki_registry_discard(s->registry);
    } else {
        pki_arena_destroy(arena);
    }
    memset(s, 0, sizeof *s);
    pki_duplicates_release();
    return status;
}

static pk_status open_registry(pki_session *s)
{
    pki_fold_open(NULL, false, 0); /* the statistics of the session before end here */
    if (pki_join_prepare())
        s->registry = pki_registry_open(s->arena, s->config.ring_records, s->config.monotonic);
    if (!s->registry)
        return pki_fail(PK_ENOMEM, "no memory for the list of threads, or no thread key left");
    if (!pki_fold_open(s->registry, s->config.report_threads, s->config.warmup_steps))
        return pki_fail(PK_ENOMEM, "no memory for the statistics");
    return PK_OK;
}

/* All but who takes what is recorded. */
static pk_status make_ready(pki_session *s)
{
    s->toll.region_ns = pki_measure_region_ns(s->config.monotonic);
    pk_status status = pki_drain_open(s);
    memcpy(s->trace_at, s->paths.trace, sizeof s->trace_at);
    pki_paths_anchor(s->trace_at);
    if (!status)
        pki_session_history_open(s);
    status = status ? status : open_registry(s);
    return status ? status : pki_services_open(s);
}

/* The gate opens last but one: with the collector there is somebody to take what is recorded. */
static pk_status open_gate(pki_session *s)
{
    pki_registry_admit();
    pk_status status = pki_collect_start(s);
    if (status)
        return status;
    pki_registry_lock();
    pki_registry_on_drain(s->registry, pki_collect_ended);
    pki_registry_unlock();
    return PK_OK;
}

static pk_status open_session(pki_session *s, const pk_options *options)
{
    pk_status status = pki_config_read(&s->config, options);
    if (status)
        return status;
    status = pki_report_check(s->config.report);
    status = status ? status : pki_duplicates_claim();
    if (status)
        return status;
    pki_clock_sample first = pki_clock_read(s->config.monotonic);
    remember_start(s);
    status = pki_paths_open(&s->config, &s->paths, &s->arena);
    if (status)
        return pki_duplicates_release(), status;
    if (strcmp(s->config.report, "-") != 0)
        pki_paths_anchor(s->config.report);
    describe_in_arena(s);
    begin_clock(s, first, pki_clock_step(s->config.monotonic));
    status = make_ready(s);
    if (!status)
        calibrate(s, first);
    status = status ? status : open_gate(s);
    return status ? undo(s, status) : PK_OK;
}

static void log_start(const pki_session *s)
{
    pki_log(PK_LOG_INFO, "perfkit %s: clock %s%s%s, trace %s, rank %d of %d", pk_version(),
            pki_clock_name(s->config.monotonic), s->config.clock_reason ? ": " : "",
            s->config.clock_reason ? s->config.clock_reason : "",
            s->paths.trace[0] ? s->paths.trace : "none", s->config.world.rank,
            s->config.world.size);
}

static void warn_of_clock(const pki_session *s)
{
    if (!s->config.monotonic && s->config.clock_reason)
        pki_log(PK_LOG_WARNING,
                "clock: %s, as requested, although %s: where it jumps, times are wrong by as much; "
                "jumps are checked for once a second",
                pki_clock_name(0), s->config.clock_reason);
}

/* PK_OK, or nothing has been left open. */
static pk_status pki_session_start(pki_session *s, const pk_options *options)
{
    if (s->open)
        return pki_fail(PK_EBUSY, "perfkit is already started in this process");
    pki_mem_clear(s, sizeof *s);
    pki_mem_populate(s, sizeof *s);
    pki_services_each(reset, ());
    pk_status status = open_session(s, options);
    s->open = status == PK_OK;
    s->operators = s->open && pki_operator_asks(options);
    if (!s->open) {
        pki_session_reset_log();
        return status;
    }
    log_start(s);
    warn_of_clock(s);
    pki_services_each(start, (s));
    pki_asker_start(s);
    return PK_OK;
}

/* ---- from an open session to its reports ---- */

/* What is in the rings, and what is still open, at one moment. */
static void last_rounds(pki_session *s)
{
    uint64_t now = pki_ticks(s->config.monotonic), before = pki_toll_begin();
    pki_services_each(halt, (s));
    if (!pki_asker_do(s, PKI_FLUSH_LAST))
        pki_log(PK_LOG_WARNING,
                "a call of a driver's has not come back for %g s of pk_stop: the report says for "
                "which backend, and what it had not told by then is left out",
                (double)pki_asker_patience_ns / 1e9);
    pki_asker_stop(s);
    pthread_mutex_lock(&pki_drain_lock);
    pki_services_each(close, (s));
    pthread_mutex_unlock(&pki_drain_lock);
    pki_registry_close(s->registry);
    pki_collect_stop(s);
    pthread_mutex_lock(&pki_drain_lock);
    pki_collect_check_clock(s, true);
    pki_services_each(look, (s));
    s->stop_ns = pki_clock_ns(&s->arena->header->clock, now);
    pki_drain_seal(s);
    pki_drain_round(s, false);
    pki_drain_settle(s);
    pki_drain_open_regions(s, pki_ticks(s->config.monotonic));
    pki_drain_open_spans(s, pki_ticks(s->config.monotonic));
    pki_drain_round(s, true);
    pki_output_check(s);
    pki_run_counts(s, &s->final);
    pki_session_set_last_counts(&s->final);
    pki_services_each(end, (s));
    pki_toll_of_caller(s, before);
    pthread_mutex_unlock(&pki_drain_lock);
}

static pk_status write_reports(pki_session *s)
{
    char *line = NULL;
    size_t n = 0;
    pthread_mutex_lock(&pki_drain_lock);
    pk_status status = pki_report_stop(s, &line, &n);
    pki_drain_close(s, line, n);
    pthread_mutex_unlock(&pki_drain_lock);
    free(line);
    return status;
}

static void warn_of_copies(const pki_session *s)
{
    if (s->final.other_starts)
        pki_log(
            PK_LOG_WARNING,
            "another copy of perfkit in this process wanted to start and was refused, %llu times",
            (unsigned long long)s->final.other_starts);
}

/* Of an open session, under the control lock. */
static pk_status pki_session_stop(pki_session *s)
{
    last_rounds(s);
    pki_services_each(wait, (s));
    warn_of_copies(s);
    pk_status status = write_reports(s);
    pki_services_each(forget, ());
    s->arena->header->running = 0;
    /* An arena completes its trace, so without one it is of no use. */
    pki_paths_end(&s->paths, s->arena, s->error_status && s->trace_location != PKI_TRACE_GONE);
    s->open = false;
    pki_duplicates_release();
    if (s->error_status)
        status = pki_fail(s->error_status, "trace %s: %s; %llu events are missing", s->paths.trace,
                          pki_output_error_text(s, s->error_status),
                          (unsigned long long)s->final.unwritten);
    else if (!status)
        status = pki_services_status();
    if (!status)
        status = pki_run_recorded_any(s);
    if (s->operators)
        pki_operator_tell("", status);
    pki_session_reset_log();
    return status;
}

static void stop_for_exit(pki_session *s)
{
    pki_session_stop(s);
}

/* Stops an open session at exit(); what cannot be stopped, since somebody holds a lock for long or
 * this is a handler amid a call of ours, is left as by a kill. Takes the control lock. */
/* The collector stops the session: exit() may have been called by a handler that interrupted this
 * thread amid malloc, and nobody else can be waited for without end. */
static void pki_session_exit(void)
{
    bool ended = false;
    if (pki_control_lock_within(PKI_EXIT_PATIENCE_NS)) {
        ended = !pki_the_session.open ||
                pki_collect_finish(&pki_the_session, stop_for_exit, PKI_EXIT_PATIENCE_NS);
        if (ended)
            pki_control_unlock();
        else
            pki_inside_leave(); /* the collector is still at it: nobody else gets the lock */
    }
    if (ended)
        pki_job_exit();
    pki_session_abandon(!ended);
}

void pk_exit_(void)
{
    int saved = errno;
    if (pki_the_session.open)
        pki_session_exit();
    errno = saved;
}

/* ---- start requested ---- */

/* A session that nobody in the program has asked for, so that
 * nobody there looks at how its start went. */

static int32_t launched_rank(void)
{
    pki_world world;
    pki_world_detect(&world);
    return world.rank;
}

void pk_say_(int32_t rank, const char *sentence)
{
    int saved = errno;
    if ((rank < 0 ? launched_rank() : rank) == 0)
        pki_log_to_stderr(NULL, PK_LOG_INFO, sentence);
    errno = saved;
}

void pk_show_(const char *text, size_t bytes)
{
    int saved = errno;
    pki_write_stderr(text, bytes);
    errno = saved;
}

void pk_log_(pk_log_level level, const char *sentence)
{
    int saved = errno;
    pki_log(level, "%s", sentence);
    errno = saved;
}

static bool is_logged(void)
{
    const char *where = secure_getenv("PK_LOG");
    return where && (strcmp(where, "stderr") == 0 || strcmp(where, "none") == 0);
}

/* What is recorded goes into the session that is open: the program's. */
static bool is_recording(pk_status status)
{
    return status == PK_EBUSY && __atomic_load_n(&pk_gate_, __ATOMIC_RELAXED) != 0;
}

pk_status pk_start_asked_(const char *variable, const pk_options *options)
{
    pk_status status = pki_start_untold(options);
    char sentence[448];
    if (!status || is_logged() || is_recording(status))
        return status;
    snprintf(sentence, sizeof sentence, "%.32s=1, but nothing is recorded: %.320s (%s)", variable,
             pk_error_message(), pk_status_name(status));
    pk_say_(options && options->world_size ? options->rank : -1, sentence);
    return status;
}

/* ---- pk/session.h: start, flush, stop, counts ---- */

static bool switched_off; /* PK_OFF=1 met the last pk_start */

static pk_status start(const pk_options *options)
{
    bool off = false;
    pk_status status = pki_the_session.open ? PK_OK : pki_operator_read(&off);
    pki_store(&switched_off, off);
    if (status || off)
        return status;
    pki_process_prepare();
    return pki_session_start(&pki_the_session, options);
}

/* pk_start, but that nobody is told of a failure (session/control.h). */
static pk_status pki_start_untold(const pk_options *options)
{
    int saved = errno;
    pk_status status = pki_control_lock();
    if (status)
        return status;
    status = start(options);
    pki_control_unlock();
    errno = saved;
    return status;
}

pk_status pk_start(const pk_options *options)
{
    int saved = errno;
    pk_status status = pki_start_untold(options);
    if (status != PK_EBUSY && pki_operator_asks(options))
        pki_operator_tell("nothing is recorded: ", status);
    errno = saved;
    return status;
}

static pk_status not_open(void)
{
    return pki_load(&switched_off) ? PK_OK
                                   : pki_fail(PK_EOFF, "perfkit is not started in this process");
}

static pk_status flush(pki_session *s)
{
    uint64_t before = pki_toll_begin();
    if (!pki_asker_do(s, PKI_FLUSH_NOW))
        pki_log(PK_LOG_WARNING,
                "a call of a driver's has not come back: what devices did since is not flushed");
    pthread_mutex_lock(&pki_drain_lock);
    pki_backends_collect();
    pki_drain_round(s, true);
    pki_services_each(flush, (s));
    pki_output_check(s);
    pk_status status = s->unreported;
    s->unreported = PK_OK;
    pki_services_each(look, (s));
    pki_toll_of_caller(s, before);
    pki_toll_publish(s);
    pthread_mutex_unlock(&pki_drain_lock);
    return status
               ? pki_fail(status, "trace %s: %s", s->paths.trace, pki_output_error_text(s, status))
               : PK_OK;
}

/* What wants an open session. */
static pk_status of_open_session(pk_status (*call)(pki_session *))
{
    int saved = errno;
    pk_status status = pki_control_lock();
    if (status)
        return status;
    status = pki_the_session.open ? call(&pki_the_session) : not_open();
    pki_control_unlock();
    errno = saved;
    return status;
}

pk_status pk_flush(void)
{
    return of_open_session(flush);
}

pk_status pk_stop(void)
{
    return of_open_session(pki_session_stop);
}

pk_status pk_capture(const char *reason, uint32_t steps)
{
    if (pki_load(&switched_off))
        return PK_OK;
    int saved = errno;
    pk_status status = steps > PKI_CAPTURE_STEPS_MOST
                           ? PK_EINVAL
                           : pki_requests_call(PKI_CAPTURE_CALL, reason, steps);
    if (status == PK_EINVAL)
        pki_fail(status, "pk_capture: %u steps are more than %u", steps, PKI_CAPTURE_STEPS_MOST);
    else if (status == PK_EBUSY)
        pki_fail(status, "pk_capture: earlier calls have not been looked at yet");
    else if (status)
        pki_fail(status, "pk_capture: no session is open, or it has no history (history_steps)");
    errno = saved;
    return status;
}

static void count_now(const pki_session *s, pk_counts *counts)
{
    pthread_mutex_lock(&pki_drain_lock);
    pki_run_counts(s, counts);
    pthread_mutex_unlock(&pki_drain_lock);
}

pk_status(pk_get_counts)(pk_counts *counts)
{
    pk_counts all;
    memset(&all, 0, sizeof all);
    if (!counts || counts->size < 8 || counts->size > sizeof all)
        return pki_fail(PK_EINVAL, "pk_counts.size has to be sizeof(pk_counts)");
    pk_status status = pki_control_lock();
    if (status)
        return status;
    bool any = pki_the_session.open;
    if (any)
        count_now(&pki_the_session, &all);
    else
        any = pki_session_last_counts(&all);
    pki_control_unlock();
    all.size = counts->size;
    memcpy(counts, &all, counts->size);
    return any ? PK_OK : not_open();
}
