/* lib/session/report/report.c - from a session's memory to its summary, and to its report */
#include <pk/private.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/processors.h"
#include "base/text.h"
#include "base/tuning.h"
#include "comm/model/communicator.h"
#include "core/names.h"
#include "measure/fold/fold.h"
#include "measure/machine/roofline.h"
#include "measure/overhead.h"
#include "measure/summary.h"
#include "measure/thinning.h"
#include "measure/verdict/verdict.h"
#include "measure/whole_run.h"
#include "out/file.h"
#include "out/report/report.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/collector/collect.h"
#include "session/collector/thinning.h"
#include "session/job/job.h"
#include "session/options/config.h"
#include "session/report/run.h"
#include "session/report/summarise.h"
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
    uint64_t observed;       /* ns, between looks: longer while the program waits */
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
    pki_mem_clear(&x, sizeof x);
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
    x.sum.busy += (double)busy * (double)elapsed; /* the sum, up to the end */
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
    x.observed += elapsed;
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
    sum.busy /= (double)x.observed;
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

static bool pki_limits_fill(const pki_config *c, pki_summary *s);

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
        pk_backend_info info;
        pki_backend_row *row = &g->out->backends[i];
        pki_backend_told(i, &info);
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
                   .calendar_set = s->calendar_set,
                   .complete = true};
    return r->program && r->host && r->version && r->clock && r->clock_reason && r->trace_path &&
           r->source;
}

static struct {
    uint64_t turns, time, before, alike;
    char by[160], step[1000];
} found;

void pk_steps_found_(uint64_t turns, int64_t ns, uint64_t before, uint32_t alike, const char *by,
                     const char *step)
{
    found.turns = turns;
    found.time = ns > 0 ? (uint64_t)ns : 0;
    found.before = before;
    found.alike = alike;
    snprintf(found.by, sizeof found.by, "%s", by);
    snprintf(found.step, sizeof found.step, "%s", step);
}

static bool add_found(pki_found_steps *out)
{
    if (found.turns)
        *out = (pki_found_steps){found.turns,
                                 found.time,
                                 found.before,
                                 found.alike,
                                 summarise_copy(found.by),
                                 summarise_copy(found.step)};
    return !out->turns || (out->by && out->step);
}

static bool add_run(summarise_builder *g)
{
    bool filled = pki_run_fill(g->session, &g->out->run) && add_found(&g->out->found_steps);
    g->out->run.wall = g->goes_on ? pki_clock_ns(&g->session->arena->header->clock,
                                                 pki_ticks(g->session->config.monotonic))
                                  : g->session->stop_ns;
    return filled;
}

bool pki_run_threads(const pki_session *s, pki_summary *out)
{
    summarise_builder g = {.session = s,
                           .out = out,
                           .fold = pki_fold_now(),
                           .stats = pki_mem_zeroed(sizeof(pk_stats))};
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

/* ---- a summary into the place that report_path names ---- */

/* The whole report in memory first: a full disk must not leave half a report under the good name.
 */
char *pki_report_as(pki_report_function *report, const pki_summary *summary, size_t *bytes)
{
    char *text = NULL;
    FILE *memory = open_memstream(&text, bytes);
    if (!memory)
        return NULL;
    int error = report(summary, memory);
    if (fclose(memory) != 0 || error) {
        free(text);
        return NULL;
    }
    return text;
}

static pk_status open_error(const char *path, int error)
{
    static const pki_target_hints hints = {"leave report_path empty for no report",
                                           "\"-\" for the standard error"};
    return pki_fail(pki_status_of_errno(error), "report %s: %s", path,
                    pki_target_why(path, error, &hints).text);
}

pk_status pki_report_check(const char *path)
{
    bool file = path[0] && strcmp(path, "-") != 0;
    return !file || pki_target_is_free(path) ? PK_OK : open_error(path, errno);
}

static pki_report_function *form_of(const char *path, bool json)
{
    return pki_ends_with(path, PKI_RANK_SUFFIX) ? pki_report_rank
           : json                               ? pki_report_json
                                                : pki_report_text;
}

/* path "": nowhere; "-": text on stderr. */
static pk_status pki_report_file(const pki_summary *summary, const char *path, bool json)
{
    size_t n = 0;
    if (!path[0])
        return PK_OK;
    char *text = pki_report_as(form_of(path, json), summary, &n);
    if (!text)
        return pki_fail(PK_ENOMEM, "no memory for the report");
    bool to_stderr = strcmp(path, "-") == 0;
    bool written = to_stderr ? pki_write_stderr(text, n) : pki_file_put(path, text, n);
    int error = errno;
    free(text);
    if (!written && to_stderr)
        return pki_fail(pki_status_of_errno(error), "report on stderr: %s",
                        error == EBADF ? "the program has none: descriptor 2 is closed, or a file "
                                         "of the program's own"
                                       : strerror(error));
    return written ? PK_OK : open_error(path, error);
}

static pk_status write_all(pki_session *s, const pki_summary *summary, char **line, size_t *bytes)
{
    pk_status part = pki_job_stop(s, summary);
    pk_status report = pki_report_file(summary, s->config.report, s->config.report_json);
    if (s->writing)
        *line = pki_report_as(pki_report_json_line, summary, bytes);
    if (part || report)
        return part ? part : report;
    return s->writing && !*line ? pki_fail(PK_ENOMEM, "no memory for the report in the trace")
                                : PK_OK;
}

pk_status pki_report_stop(pki_session *s, char **line, size_t *bytes)
{
    pki_summary summary;
    if (!s->writing && !s->config.report[0] && !s->config.job[0])
        return PK_OK;
    if (!pki_run_summarise(s, &summary))
        return pki_fail(PK_ENOMEM, "no memory for the report");
    pk_status status = write_all(s, &summary, line, bytes);
    pki_summary_finish(&summary);
    return status;
}

/* ---- machine and build, for the report and for captures ---- */

#define COMMAND_MOST 2000

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

pk_status pki_environment_config(pki_config *c)
{
    const char *wanted = pki_variable("PK_ENVIRONMENT");
    c->environment_off = wanted && strcmp(wanted, "0") == 0;
    if (!wanted || c->environment_off || strcmp(wanted, "1") == 0)
        return PK_OK;
    return pki_fail(PK_EINVAL, "PK_ENVIRONMENT=%.20s is neither 0 nor 1", wanted);
}

static bool fill_machine(pki_environment *out)
{
    pki_host m;
    pki_host_read(&m);
    out->memory = m.memory_bytes;
    out->processors = m.processors;
    out->cpu = strdup(m.cpu);
    out->architecture = strdup(m.architecture);
    out->kernel = strdup(m.kernel);
    out->gpu = strdup(m.gpu);
    out->driver = strdup(m.driver);
    return out->cpu && out->architecture && out->kernel && out->gpu && out->driver;
}

static bool fill_program(pki_environment *out)
{
    pki_executable e;
    char command[COMMAND_MOST];
    pki_executable_read("/proc/self/exe", &e);
    pki_arguments_read(command, sizeof command);
    out->command = strdup(command);
    out->compiler = strdup(COMPILER);
    out->program_compiler = strdup(e.compiler);
    out->build_id = strdup(e.build_id);
    return out->command && out->compiler && out->program_compiler && out->build_id;
}

static bool fill_revision(pki_environment *out)
{
    pki_revision r;
    pki_revision_read(".", &r);
    out->commit = strdup(r.commit);
    out->branch = strdup(r.branch);
    return out->commit && out->branch;
}

bool pki_environment_fill(const pki_config *c, pki_environment *out)
{
    return c->environment_off || (fill_machine(out) && fill_program(out) && fill_revision(out));
}

/* ---- the run beside what its machine can do ---- */

pk_status pki_limits_config(pki_config *c, pki_config_text peak)
{
    if (!peak.text || pki_peak_parse(peak.text, &c->peak))
        return PK_OK;
    return pki_fail(PK_EINVAL,
                    "%s: %.40s is neither fp64, fp32, tf32, bf16, fp16 or fp8, nor operations per "
                    "second, as 989.5e12, nor both, as bf16:989.5e12",
                    peak.source, peak.text);
}

/* False, and why in words. */
static bool load(const pki_config *c, pki_machine *m, char why[300])
{
    char path[PATH_MAX];
    pki_machine here;
    bool named = c->machine[0] != '\0';
    snprintf(why, 300, "the option machine is \"none\"");
    if (strcmp(c->machine, "none") == 0)
        return false;
    pki_machine_here(&here);
    snprintf(why, 300, "there is no folder for its file");
    if (!named && !pki_machine_path(here.host, path))
        return false;
    return pki_machine_load(named ? c->machine : path, named, m, why, 300);
}

/* Where the kernel says nothing: all of the machine's. */
static uint64_t allowed_processors(const pki_host *host)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    return count > 0 ? (uint64_t)count : host->processors;
}

static void find_peak(const pki_config *c, const pki_machine *m, const char *why, size_t gpus,
                      pki_peak *peak)
{
    pki_host host;
    pki_host_read(&host);
    const pki_peak_place place = {.machine = m,
                                  .no_machine = why,
                                  .gpu = host.gpu,
                                  .gpus = gpus,
                                  .processors = allowed_processors(&host)};
    pki_peak_find(&c->peak, &place, peak);
}

void pki_limits_peak(const pki_config *c, size_t gpus, pki_peak *peak)
{
    pki_machine m;
    char why[300];
    bool known = load(c, &m, why);
    find_peak(c, known ? &m : NULL, why, gpus, peak);
}

/* Regions that can be held against the machine's limits are, if there is its file; one that was
 * named and is none is said in the log. So are the steps that have announced their operations, and
 * why not, if their peak is not known. False without memory. */
static bool pki_limits_fill(const pki_config *c, pki_summary *s)
{
    pki_machine m;
    pki_peak peak;
    char why[300];
    bool placed = pki_roofline_wanted(s);
    if (!placed && !s->steps.utilisation.steps)
        return true;
    bool known = load(c, &m, why), named = c->machine[0] && strcmp(c->machine, "none") != 0;
    if (!known && named)
        pki_log(PK_LOG_WARNING, "no roofline: machine_path %s: %s", c->machine, why);
    find_peak(c, known ? &m : NULL, why, s->gpu_count, &peak);
    return (!known || pki_roofline_fill(&m, s)) &&
           pki_utilisation_fill(&s->steps.utilisation, &peak);
}
