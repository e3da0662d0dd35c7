/* lib/session/summarise.c - from the session's memory to a summary. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/model/communicator.h"
#include "core/names.h"
#include "measure/overhead.h"
#include "measure/thinned.h"
#include "measure/verdict/verdict.h"
#include "measure/whole_run.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/cpu_side.h"
#include "session/environment.h"
#include "session/energy.h"
#include "session/events.h"
#include "session/goodput.h"
#include "session/gpu_memory.h"
#include "session/io.h"
#include "session/limits.h"
#include "session/memory.h"
#include "session/run.h"
#include "session/thinning.h"
#include "session/toll.h"
#include "stats/histogram.h"
#include "stats/slot.h"

typedef struct builder {
    const pki_session *session;
    pki_fold *fold;
    pki_summary *out;
    pk_stats *stats; /* scratch */
    bool goes_on;    /* the session */
} builder;

static char *copy(const char *text)
{
    return strdup(text ? text : "");
}

static double clock_step_of(const builder *g)
{
    const pki_clock_map *clock = &g->session->arena->header->clock;
    return (double)clock->step_ticks * pki_clock_unit_ns(clock);
}

static bool fill_region(builder *g, pki_region_row *row, uint32_t id)
{
    const pki_name *name = pki_name_at(id);
    pki_window_sum exact = {0};
    bool fits = pki_window_sum_of_stats(g->stats, &exact);
    pki_stats_finish(g->stats, 1);
    *row = (pki_region_row){.name = strndup(name->name, name->length),
                            .kind = name->kind,
                            .time = pki_stats_dist(g->stats),
                            .self = g->stats->self,
                            .bytes = g->stats->bytes,
                            .flops = g->stats->flops,
                            .thinned = pki_region_thinned_of(g->stats, 0, clock_step_of(g)),
                            .exact = exact};
    return fits && row->name && pki_histogram_of_stats(g->stats, &row->histogram);
}

static bool is_region(uint32_t id)
{
    return pki_name_kind(id) <= PK_WAIT;
}

static bool add_regions(builder *g)
{
    uint32_t names = pki_name_count();
    g->out->regions = calloc(names, sizeof *g->out->regions);
    if (!g->out->regions)
        return false;
    for (uint32_t id = PKI_NAME_TOO_MANY; id < names; id++) {
        pki_stats_begin(g->stats);
        if (!is_region(id) ||
            !(pki_fold_stats(g->fold, id, g->stats) || pki_device_has_region(g->fold->device, id) ||
              pki_spans_row(&g->fold->spans, id, 0).events))
            continue;
        pki_region_row *row = &g->out->regions[g->out->region_count];
        if (!fill_region(g, row, id))
            return false;
        row->span = pki_spans_row(&g->fold->spans, id, row->self ? 0 : row->time.count);
        row->thinned = pki_region_thinned_of(g->stats, pki_thinning_kept_out(id), clock_step_of(g));
        row->gpu = pki_device_region_spans(g->fold->device, id);
        row->kernels = pki_device_region_kernels(g->fold->device, id);
        row->threads = pki_fold_threads(g->fold, id);
        g->out->region_count++;
    }
    pki_regions_sort(g->out->regions, g->out->region_count);
    g->out->spans = pki_fold_span_summary(g->fold);
    return pki_fold_requests(g->fold, &g->out->requests);
}

static bool fill_counter(builder *g, uint32_t id, const pki_value_stats *values)
{
    const pki_name *name = pki_name_at(id);
    if (values->tally.moments.count == 0)
        return true;
    pki_counter_row *row = &g->out->counters[g->out->counter_count++];
    *row = (pki_counter_row){.name = strndup(name->name, name->length),
                             .unit = strndup(name->key, name->key_length),
                             .value = pki_tally_dist(&values->tally),
                             .last = values->last};
    return row->name && row->unit && pki_timelines_fill(&g->fold->timelines, id, row);
}

static bool add_counters(builder *g)
{
    uint32_t names = pki_name_count();
    bool done = true;
    g->out->counters = calloc(names, sizeof *g->out->counters);
    if (!g->out->counters)
        return false;
    for (uint32_t id = PKI_NAME_FIRST; done && id < names; id++) {
        pki_value_stats values = {0};
        if (pki_name_kind(id) != PKI_KIND_COUNTER)
            continue;
        done = pki_fold_values(g->fold, id, &values) && fill_counter(g, id, &values);
        pki_tally_finish(&values.tally);
    }
    return done;
}

/* One thread's regions, from a table of calls and one of lost calls. */
static bool fill_thread_regions(builder *g, pki_thread_row *row, const pki_table *calls,
                                const pki_table *lost)
{
    row->regions = calloc((size_t)calls->used + lost->used + 1, sizeof *row->regions);
    if (!row->regions)
        return false;
    for (uint32_t id = PKI_NAME_TOO_MANY; id < PKI_MAX(calls->count, lost->count); id++) {
        const pki_slot *a = pki_table_slot(calls, id), *b = pki_table_slot(lost, id);
        if ((!a && !b) || !is_region(id))
            continue;
        pki_stats_begin(g->stats);
        if (a)
            pki_stats_add_slot(g->stats, a);
        if (b)
            pki_stats_add_slot(g->stats, b);
        if (!fill_region(g, &row->regions[row->region_count], id))
            return false;
        row->region_count++;
    }
    pki_regions_sort(row->regions, row->region_count);
    return true;
}

static void fill_kinds(pki_thread_row *row, const uint64_t *ns)
{
    memcpy(row->kinds, ns, sizeof row->kinds);
}

static bool fill_thread(builder *g, pki_thread_row *row, const pki_thread *t)
{
    const pki_thread_fold *alone =
        t->index < g->fold->thread_count ? &g->fold->threads[t->index] : NULL;
    *row = (pki_thread_row){.name = copy(t->name),
                            .tid = t->tid,
                            .ended = pki_load(&t->life) != PKI_THREAD_LIVE,
                            .recorded = pki_load(&t->recorded),
                            .dropped = pki_load(&t->dropped)};
    if (alone)
        fill_kinds(row, alone->kinds);
    return row->name &&
           (!alone || !g->fold->per_thread || fill_thread_regions(g, row, &alone->calls, &t->lost));
}

static bool fill_ended(builder *g, const pki_ended_thread *ended, const char *name)
{
    static const pki_table none;
    pki_thread_row *row = &g->out->threads[g->out->thread_count++];
    *row = (pki_thread_row){.name = copy(name),
                            .tid = ended->tid,
                            .ended = true,
                            .recorded = ended->recorded,
                            .dropped = ended->dropped};
    fill_kinds(row, ended->kinds);
    return row->name && (!g->fold->per_thread || fill_thread_regions(g, row, &ended->calls, &none));
}

static bool add_ended(builder *g)
{
    const pki_fold *fold = g->fold;
    for (uint32_t i = 0; i < fold->ended_count; i++)
        if (!fill_ended(g, &fold->ended[i], fold->ended[i].name))
            return false;
    return fold->ended_others.recorded + fold->ended_others.dropped == 0 ||
           fill_ended(g, &fold->ended_others, "other threads that have ended");
}

/* Under the registry's lock: a thread that ends now may be changing its name. */
static bool fill_threads(builder *g, uint32_t blocks)
{
    for (uint32_t i = 0; i < blocks; i++) {
        const pki_thread *t = pki_registry_block(g->session->registry, i);
        if (pki_load(&t->life) == PKI_THREAD_FREE)
            continue;
        g->out->thread_count++;
        if (!fill_thread(g, &g->out->threads[g->out->thread_count - 1], t))
            return false;
    }
    return true;
}

static bool add_threads(builder *g)
{
    uint32_t blocks = pki_registry_blocks(g->session->registry);
    g->out->threads = calloc(blocks + g->fold->ended_count + 1u, sizeof *g->out->threads);
    if (!g->out->threads)
        return false;
    pki_registry_lock();
    bool filled = fill_threads(g, blocks);
    pki_registry_unlock();
    return filled && add_ended(g);
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
                   .trace_path = copy(s->paths.trace),
                   .source = copy("session"),
                   .complete = true};
    return r->program && r->host && r->version && r->clock && r->trace_path && r->source;
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
        .session = s, .out = out, .fold = pki_fold_now(), .stats = malloc(sizeof(pk_stats))};
    bool filled = g.stats && add_threads(&g);
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
static bool place_sequences(const pki_session *s, pki_sequences *q)
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
    if (!add_run(g) || !add_regions(g) || !add_counters(g) || !add_threads(g) || !add_backends(g))
        return false;
    if (!pki_steps_fill(g->fold->steps, g->session->config.warmup_steps, region_name, NULL, g->out))
        return false;
    add_overhead(g);
    g->out->cpu_side = pki_cpu_side_end();
    pki_goodput_fill(g->session->stop_ns, true, &g->out->goodput);
    return add_gpus(g) && add_comms(g) && place_sequences(g->session, &g->out->comm.sequences) &&
           pki_whole_run_fill(g->out) && pki_limits_fill(&g->session->config, g->out) &&
           pki_io_summarise(g->session, g->out) && pki_energy_summarise(g->out) &&
           pki_events_summarise(g->out) && pki_memory_fill(&g->out->memory) &&
           pki_gpu_memory_summarise(g->out) && pki_verdicts_fill(g->out);
}

static bool summarise(const pki_session *s, bool goes_on, pki_summary *out)
{
    builder g = {.session = s, .out = out, .goes_on = goes_on};
    pki_summary_init(out);
    g.stats = malloc(sizeof *g.stats);
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
