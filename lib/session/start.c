#include "session/start.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "core/join.h"
#include "core/overhead.h"
#include "session/backend.h"
#include "session/collector/collect.h"
#include "session/duplicates.h"
#include "session/collector/drain.h"
#include "session/captures/history.h"
#include "session/report/report_file.h"
#include "session/report/run.h"
#include "session/operator.h"
#include "session/service.h"

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
    status = status ? status : pki_services_open(s);
    if (!status)
        pki_backends_foresee(&s->config);
    return status;
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

pk_status pki_session_start(pki_session *s, const pk_options *options)
{
    if (s->open)
        return pki_fail(PK_EBUSY, "perfkit is already started in this process");
    memset(s, 0, sizeof *s);
    pki_services_each(reset, ());
    pk_status status = open_session(s, options);
    s->open = status == PK_OK;
    s->operators = s->open && pki_operator_asks(options);
    if (!s->open) {
        pki_session_reset_log();
        return status;
    }
    pki_backends_start(&s->config);
    log_start(s);
    warn_of_clock(s);
    pki_services_each(start, (s));
    return PK_OK;
}
