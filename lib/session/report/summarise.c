/* lib/session/report/summarise.c - from the session's memory to a summary. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/model/communicator.h"
#include "core/names.h"
#include "measure/overhead.h"
#include "measure/verdict/verdict.h"
#include "measure/whole_run.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/report/environment.h"
#include "session/report/limits.h"
#include "session/report/run.h"
#include "session/report/summary_rows.h"
#include "session/collector/toll.h"
#include "session/service.h"

typedef pki_summary_builder builder;

static char *copy(const char *text)
{
    return strdup(text ? text : "");
}

static bool add_backends(builder *g)
{
    g->out->backends = calloc(pki_backend_count, sizeof *g->out->backends);
    if (!g->out->backends)
        return false;
    for (size_t i = 0; i < pki_backend_count; i++) {
        pk_backend_info info = {.size = sizeof info};
        pki_backend_row *row = &g->out->backends[i];
        pk_backend_status(pki_backends[i]->name, &info);
        *row = (pki_backend_row){copy(pki_backends[i]->name), info.live, copy(info.version),
                                 copy(info.reason)};
        g->out->backend_count++;
        if (!row->name || !row->version || !row->reason)
            return false;
    }
    return true;
}

bool pki_run_fill(const pki_session *s, pki_run *r)
{
    pki_chrome_run run;
    pki_run_describe(s, true, &run);
    *r = (pki_run){.program = copy(run.program),
                   .host = copy(run.host),
                   .version = copy(pk_version()),
                   .pid = s->config.world.pid,
                   .rank = run.rank,
                   .world_size = run.world_size,
                   .local_rank = s->config.world.local_rank,
                   .local_size = s->config.world.local_size,
                   .start_unix = run.start_unix,
                   .clock = copy(run.clock_name),
                   .clock_hz = run.clock_hz,
                   .clock_step_ns = run.clock_step_ns,
                   .clock_uncertainty_ns = run.clock_uncertainty_ns,
                   .clock_ppm = run.clock_ppm,
                   .clock_reason = copy(run.clock_reason),
                   .trace_path = copy(s->paths.trace),
                   .source = copy("session"),
                   .awaits_steps = pki_clauses_await_steps(&s->config.capture),
                   .complete = true};
    return r->program && r->host && r->version && r->clock && r->clock_reason && r->trace_path &&
           r->source;
}

static bool add_run(builder *g)
{
    bool filled = pki_run_fill(g->session, &g->out->run);
    g->out->run.wall = g->goes_on ? pki_clock_ns(&g->session->arena->header->clock,
                                                 pki_ticks(g->session->config.monotonic))
                                  : g->session->stop_ns;
    return filled;
}

bool pki_run_threads(const pki_session *s, pki_summary *out)
{
    builder g = {
        .session = s, .out = out, .fold = pki_fold_now(), .stats = calloc(1, sizeof(pk_stats))};
    bool filled = g.stats && pki_summary_add_threads(&g);
    free(g.stats);
    return filled;
}

static void add_overhead(builder *g)
{
    pki_toll toll = pki_toll_now(g->session);
    pki_thinned *t = &g->out->thinned;
    pki_overhead_fill(&toll, g->out);
    for (size_t i = 0; i < g->out->region_count; i++)
        t->regions += g->out->regions[i].thinned.calls > 0;
    t->untimed = g->out->counts.untimed;
    t->untraced = g->out->counts.untraced;
    t->overhead_max = toll.overhead_max;
    t->beyond = toll.beyond;
}

static const char *region_name(void *user, uint32_t id)
{
    const pki_name *name = pki_name_at(id);
    (void)user;
    return name ? name->name : NULL;
}

/* After the steps: how many of them are warm-up is known then. */
static bool add_gpus(builder *g)
{
    pki_activity_counts counts = pki_activity_counted();
    if (!g->goes_on)
        pki_device_finalised(g->fold->device, UINT64_MAX);
    g->out->activities.count = counts.added;
    g->out->activities.unwritten = counts.unwritten;
    return pki_device_fill(g->fold->device, g->out->steps.warmup, region_name, NULL, g->out);
}

static bool comm_facts(void *user, uint32_t index, pki_comm_facts *facts)
{
    const pk_comm *c = pki_comm_at(index);
    (void)user;
    if (!c)
        return false;
    pki_comms_entry progress = pki_comm_progress(c);
    *facts = (pki_comm_facts){.library = c->library,
                              .name = pki_name_at(c->name)->name,
                              .id = c->id,
                              .rank = c->rank,
                              .size = c->size,
                              .enqueued = progress.enqueued,
                              .started = progress.started,
                              .completed = progress.completed,
                              .under_way = progress.under_way};
    return true;
}

/* Beside other ranks' their times mean something as moments of a clock alone. */
static bool set_sequence_clock(const pki_session *s, pki_sequences *q)
{
    if (!q->operations)
        return true;
    free(q->clock);
    q->clock = copy(s->config.world.clock);
    q->origin = s->arena->header->clock.origin_ns;
    return q->clock;
}

static bool add_comms(builder *g)
{
    return pki_comm_figures_build_rows(g->fold->collectives, comm_facts, region_name, NULL, g->out);
}

bool pki_run_comms(pki_summary *out)
{
    builder g = {.fold = pki_fold_now(), .out = out};
    return add_comms(&g);
}

static bool build(builder *g)
{
    g->out->counts.size = sizeof g->out->counts;
    pki_run_counts(g->session, &g->out->counts);
    g->out->counts.size = sizeof g->out->counts;
    if (!add_run(g) || !pki_summary_add_regions(g) || !pki_summary_add_counters(g) ||
        !pki_summary_add_threads(g) || !add_backends(g))
        return false;
    if (!pki_steps_fill(g->fold->steps, g->session->config.warmup_steps, region_name, NULL, g->out))
        return false;
    add_overhead(g);
    return add_gpus(g) && add_comms(g) && set_sequence_clock(g->session, &g->out->comm.sequences) &&
           pki_whole_run_fill(g->out) && pki_limits_fill(&g->session->config, g->out) &&
           pki_services_summarise(g->session, g->out) && pki_verdicts_fill(g->out);
}

static bool summarise(const pki_session *s, bool goes_on, pki_summary *out)
{
    builder g = {.session = s, .out = out, .goes_on = goes_on};
    pki_summary_init(out);
    g.stats = calloc(1, sizeof *g.stats);
    bool done = false;
    if (g.stats) {
        pki_fold_lock();
        g.fold = pki_fold_now();
        done = build(&g);
        pki_fold_unlock();
    }
    done = done && pki_environment_fill(&s->config, &out->environment);
    free(g.stats);
    if (!done)
        pki_summary_finish(out);
    return done;
}

bool pki_run_summarise(const pki_session *s, pki_summary *out)
{
    return summarise(s, false, out);
}

bool pki_run_summarise_so_far(const pki_session *s, pki_summary *out)
{
    return summarise(s, true, out);
}
