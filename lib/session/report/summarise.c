#include "session/report/summarise.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/processors.h"
#include "comm/model/communicator.h"
#include "core/names.h"
#include "measure/fold/fold.h"
#include "measure/overhead.h"
#include "measure/summary.h"
#include "measure/thinning.h"
#include "measure/verdict/verdict.h"
#include "measure/whole_run.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/collector/collect.h"
#include "session/collector/thinning.h"
#include "session/report/run.h"
#include "session/session.h"
#include "stats/series.h"
#include "stats/slot.h"

/* ---- what of the processors the process may have, and what it has ---- */

#define INTERVAL UINT64_C(1000000000) /* ns */
#define THREADS_MOST 512u             /* looked at */
#define THREADS_EACH 64u              /* a look's interval grows by itself with each of so many */

typedef struct seen {
    uint32_t tid;
    uint64_t wanted; /* ns: had a processor, or was ready for one */
} seen;

static struct {
    const char *root;
    uint64_t last, interval; /* CLOCK_MONOTONIC, ns; 0: none */
    uint32_t stepper;
    uint64_t forced, own; /* as of the last look at it */
    pki_cpus allowed;
    pki_quota quota; /* as of the start */
    uint64_t heat;
    unsigned clocks; /* looks that the clock's mean is of */
    size_t count;
    seen threads[THREADS_MOST];
    pki_cpu_side sum;
} x;

void pki_cpu_side_begin(const char *root)
{
    memset(&x, 0, sizeof x);
    x.root = root;
    x.interval = INTERVAL;
    pki_quota_read(root, &x.quota);
}

/* ---- threads ---- */

static const seen *find(uint32_t tid)
{
    for (size_t i = 0; i < x.count; i++)
        if (x.threads[i].tid == tid)
            return &x.threads[i];
    return NULL;
}

/* Is it one of those that want a processor for more than half of the time? */
static bool is_busy(const seen *now, uint64_t elapsed)
{
    const seen *before = find(now->tid);
    return before && pki_saturating_sub(now->wanted, before->wanted) > elapsed / 2;
}

static void sample_threads(uint64_t elapsed)
{
    static uint32_t tids[THREADS_MOST];
    static seen now[THREADS_MOST];
    size_t count = 0, found = pki_thread_ids(x.root, tids, THREADS_MOST), busy = 0;
    pki_cpus together = {{0}};
    for (size_t i = 0; i < found; i++) {
        pki_thread_cpu t;
        if (!pki_thread_cpu_read(x.root, tids[i], false, &t))
            continue;
        now[count] = (seen){tids[i], t.running + t.ready};
        if (elapsed && is_busy(&now[count], elapsed)) {
            pki_thread_cpu_read(x.root, tids[i], true, &t);
            pki_cpus_add(&together, &t.allowed);
            busy++;
        }
        count++;
    }
    x.count = count;
    memcpy(x.threads, now, count * sizeof *now);
    x.interval = INTERVAL * (1 + found / THREADS_EACH);
    if (!elapsed)
        return;
    x.sum.threads = found;
    x.sum.busy += (double)busy; /* the sum, up to the end */
    x.sum.busy_most = PKI_MAX(x.sum.busy_most, busy);
    if (busy)
        x.sum.allowed_busy = pki_cpus_count(&together);
}

/* The first sample of it shows where its counts stand, and which processors it may use. */
static void sample_stepper(uint32_t tid)
{
    pki_thread_cpu t;
    if (!pki_thread_cpu_read(x.root, tid, true, &t))
        return;
    if (tid == x.stepper) {
        x.sum.forced += pki_saturating_sub(t.forced, x.forced);
        x.sum.own += pki_saturating_sub(t.own, x.own);
    }
    if (!x.stepper)
        x.heat = pki_heat_read(x.root, &t.allowed);
    x.stepper = tid;
    x.forced = t.forced;
    x.own = t.own;
    pki_cpus_add(&x.allowed, &t.allowed);
}

static void sample_clock(void)
{
    double now, most;
    if (!pki_clock_rates_read(x.root, &x.allowed, &now, &most))
        return;
    x.sum.clock_mean += now * 1e3; /* the sum, up to the end */
    x.sum.clock_most = most * 1e3;
    x.clocks++;
}

void pki_cpu_side_poll(uint32_t stepper, bool now)
{
    uint64_t ns = pki_monotonic_ns(), elapsed = x.last ? ns - x.last : 0;
    bool early = x.last && elapsed < x.interval;
    if (!stepper || !x.root || (early && (!now || elapsed < INTERVAL / 10)))
        return;
    sample_stepper(stepper);
    sample_threads(elapsed);
    if (elapsed)
        sample_clock();
    x.sum.looks += elapsed > 0;
    x.last = ns;
}

void pki_cpu_side_switches(uint64_t *forced, uint64_t *own)
{
    *forced = x.sum.forced;
    *own = x.sum.own;
}

/* ---- the end ---- */

static void add_nodes(pki_cpu_side *sum)
{
    pki_nodes nodes;
    uint64_t largest = 0;
    if (!pki_nodes_read(x.root, &x.allowed, &nodes))
        return;
    sum->nodes = nodes.count;
    for (unsigned i = 0; i < PKI_NODES_MOST; i++) {
        *(nodes.ours[i] ? &sum->near_bytes : &sum->far_bytes) += nodes.bytes[i];
        sum->own_nodes += nodes.ours[i];
        largest = PKI_MAX(largest, nodes.bytes[i]);
    }
    if (sum->near_bytes + sum->far_bytes)
        sum->largest_node = (double)largest / (double)(sum->near_bytes + sum->far_bytes);
}

static void add_quota(pki_cpu_side *sum)
{
    pki_quota now;
    pki_quota_read(x.root, &now);
    sum->quota = now.processors;
    sum->quota_periods = pki_saturating_sub(now.periods, x.quota.periods);
    sum->quota_throttled = pki_saturating_sub(now.throttled, x.quota.throttled);
    sum->quota_throttled_time = pki_saturating_sub(now.throttled_ns, x.quota.throttled_ns);
}

pki_cpu_side pki_cpu_side_end(void)
{
    pki_cpu_side sum = x.sum;
    if (!sum.looks)
        return (pki_cpu_side){.looks = 0};
    sum.busy /= (double)sum.looks;
    sum.clock_mean = x.clocks ? sum.clock_mean / x.clocks : 0;
    sum.allowed = pki_cpus_count(&x.allowed);
    sum.heat_events = pki_saturating_sub(pki_heat_read(x.root, &x.allowed), x.heat);
    add_quota(&sum);
    add_nodes(&sum);
    return sum;
}

/* ---- regions, counters and threads of a summary, from the session's memory ---- */

/* Each fills its array and count of the summary. False: no memory; what there is goes with the
 * summary. Under the fold lock; threads take the registry's. */

typedef struct pki_summary_builder {
    const pki_session *session;
    pki_fold *fold;
    pki_summary *out;
    pk_stats *stats; /* scratch */
    bool goes_on;    /* the session */
} pki_summary_builder;

typedef pki_summary_builder builder;

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
    *row = (pki_region_row){
        .name = strndup(name->name, name->length),
        .kind = name->kind,
        .time = pki_stats_dist(g->stats),
        .self = g->stats->self,
        .bytes = g->stats->bytes,
        .flops = g->stats->flops,
        .thinned = pki_region_thinned_of(g->stats, 0, clock_step_of(g), g->session->toll.region_ns),
        .exact = exact};
    return fits && row->name && pki_histogram_of_times(&row->exact.buckets, &row->histogram);
}

static bool is_region(uint32_t id)
{
    return pki_name_kind(id) <= PK_WAIT;
}

static bool pki_summary_add_regions(builder *g)
{
    uint32_t names = pki_name_count();
    g->out->regions = calloc(names, sizeof *g->out->regions);
    if (!g->out->regions)
        return false;
    for (uint32_t id = PKI_NAME_TOO_MANY; id < names; id++) {
        pki_stats_again(g->stats);
        if (!is_region(id) ||
            !(pki_fold_stats(g->fold, id, g->stats) || pki_device_has_region(g->fold->device, id) ||
              pki_spans_row(&g->fold->spans, id, 0).events))
            continue;
        pki_region_row *row = &g->out->regions[g->out->region_count];
        if (!fill_region(g, row, id))
            return false;
        row->span = pki_spans_row(&g->fold->spans, id, row->self ? 0 : row->time.count);
        row->thinned = pki_region_thinned_of(g->stats, pki_thinning_excluded(id), clock_step_of(g),
                                             g->session->toll.region_ns);
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

static bool pki_summary_add_counters(builder *g)
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
        pki_stats_again(g->stats);
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

static bool pki_summary_add_threads(builder *g)
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

/* ---- from the session's memory to a summary ---- */

typedef pki_summary_builder summarise_builder;

static char *summarise_copy(const char *text)
{
    return strdup(text ? text : "");
}

static bool add_backends(summarise_builder *g)
{
    g->out->backends = calloc(pki_backend_count, sizeof *g->out->backends);
    if (!g->out->backends)
        return false;
    for (size_t i = 0; i < pki_backend_count; i++) {
        pk_backend_info info = {.size = sizeof info};
        pki_backend_row *row = &g->out->backends[i];
        pk_backend_status(pki_backends[i]->name, &info);
        *row = (pki_backend_row){summarise_copy(pki_backends[i]->name), info.live,
                                 summarise_copy(info.version), summarise_copy(info.reason)};
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
    *r = (pki_run){.program = summarise_copy(run.program),
                   .host = summarise_copy(run.host),
                   .version = summarise_copy(pk_version()),
                   .pid = s->config.world.pid,
                   .rank = run.rank,
                   .world_size = run.world_size,
                   .local_rank = s->config.world.local_rank,
                   .local_size = s->config.world.local_size,
                   .start_unix = run.start_unix,
                   .clock = summarise_copy(run.clock_name),
                   .clock_hz = run.clock_hz,
                   .clock_step_ns = run.clock_step_ns,
                   .clock_uncertainty_ns = run.clock_uncertainty_ns,
                   .clock_ppm = run.clock_ppm,
                   .clock_reason = summarise_copy(run.clock_reason),
                   .trace_path = summarise_copy(s->paths.trace),
                   .source = summarise_copy("session"),
                   .awaits_steps = pki_clauses_await_steps(&s->config.capture),
                   .complete = true};
    return r->program && r->host && r->version && r->clock && r->clock_reason && r->trace_path &&
           r->source;
}

static bool add_run(summarise_builder *g)
{
    bool filled = pki_run_fill(g->session, &g->out->run);
    g->out->run.wall = g->goes_on ? pki_clock_ns(&g->session->arena->header->clock,
                                                 pki_ticks(g->session->config.monotonic))
                                  : g->session->stop_ns;
    return filled;
}

bool pki_run_threads(const pki_session *s, pki_summary *out)
{
    summarise_builder g = {
        .session = s, .out = out, .fold = pki_fold_now(), .stats = calloc(1, sizeof(pk_stats))};
    bool filled = g.stats && pki_summary_add_threads(&g);
    free(g.stats);
    return filled;
}

static void add_overhead(summarise_builder *g)
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
static bool add_gpus(summarise_builder *g)
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
    q->clock = summarise_copy(s->config.world.clock);
    q->origin = s->arena->header->clock.origin_ns;
    return q->clock;
}

static bool add_comms(summarise_builder *g)
{
    return pki_comm_figures_build_rows(g->fold->collectives, comm_facts, region_name, NULL, g->out);
}

bool pki_run_comms(pki_summary *out)
{
    summarise_builder g = {.fold = pki_fold_now(), .out = out};
    return add_comms(&g);
}

static bool build(summarise_builder *g)
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
    summarise_builder g = {.session = s, .out = out, .goes_on = goes_on};
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
