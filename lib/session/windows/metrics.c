#include "session/windows/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "core/names.h"
#include "core/phase.h"
#include "measure/steps/cut.h"
#include "out/file.h"
#include "out/json_write.h"
#include "out/metrics/metrics.h"
#include "session/collector/collect.h"
#include "session/costs/energy.h"
#include "session/costs/gpu_memory.h"
#include "session/costs/io.h"
#include "session/costs/memory.h"
#include "session/job/goodput.h"
#include "session/report/run.h"
#include "session/report/summarise.h"
#include "session/session.h"
#include "session/trace/paths.h"

/* ---- what the process costs beside time, for its metrics ---- */

static pki_phases last_known; /* Nothing is known of the session that begins. */
/* the last time that they were */

static void pki_metrics_costs_reset(void)
{
    memset(&last_known, 0, sizeof last_known);
}

/* Of the run, and of as many counters as there is room for. Under the fold lock. */
static void fill_energy(pki_metrics_costs *c)
{
    pki_energy_sums sums;
    bool known = pki_energy_so_far(&sums);
    for (size_t i = 0; known && i < sums.row_count && c->energy_count < PKI_METRICS_ENERGY; i++) {
        const pki_energy_sum *row = &sums.rows[i];
        pki_metrics_energy *out = &c->energy[c->energy_count];
        if (strcmp(row->step_kind, PKI_ENERGY_RUN) != 0)
            continue;
        snprintf(out->name, sizeof out->name, "%s", row->counter);
        out->microjoules = row->microjoules;
        c->energy_count++;
    }
    pki_energy_sums_finish(&sums);
}

/* The first ones; pinned memory has room of its own, as the last. */
static void fill_places(pki_metrics_costs *c)
{
    pki_gpu_memory_sums sums = {0};
    bool known = pki_gpu_memory_so_far(&sums);
    for (size_t i = 0; known && i < sums.place_count; i++) {
        const pki_gpu_memory_sum *s = &sums.places[i];
        size_t most = PKI_METRICS_PLACES - (s->place[0] != 'h');
        if (c->place_count >= most)
            continue;
        pki_metrics_place *p = &c->places[c->place_count++];
        snprintf(p->name, sizeof p->name, "%s", s->place);
        p->live = s->live;
        p->peak = s->peak_so_far;
        p->pool_reserved = s->pool_reserved;
        p->pool_used = s->pool_used;
    }
    pki_gpu_sums_finish(&sums);
}

static void fill_checkpoints(pki_metrics_costs *c)
{
    pki_phases phases = pki_phases_now();
    if (phases.known)
        last_known = phases;
    c->saves = last_known.saves;
    c->save_bytes = last_known.save_bytes;
    c->save_time = last_known.time[PK_PHASE_CHECKPOINT];
}

/* All but the process's own memory, which is read from files. Under the fold lock. */
static void pki_metrics_costs_fill(pki_metrics *m)
{
    pki_metrics_costs *c = &m->costs;
    c->io_known = pki_io_so_far(&c->io);
    fill_energy(c);
    fill_places(c);
    fill_checkpoints(c);
    pki_goodput_fill(m->wall, !m->running, &c->goodput);
    pki_cpu_side_switches(&c->forced, &c->own);
}

static bool is_of_place(const char *place, const char *counter)
{
    size_t length = strlen(place);
    if (strncmp(counter, place, length) != 0)
        return false;
    return strcmp(counter + length, ".allocated") == 0 ||
           strcmp(counter + length, ".pool_reserved") == 0;
}

/* What a step has of them, where metrics have sums. */
static bool is_of_files(const char *counter)
{
    static const char *const all[] = {"io.read",           "io.written",    "io.device_read",
                                      "io.device_written", "io.operations", "io.steps"};
    for (size_t i = 0; i < PKI_COUNT_OF(all); i++)
        if (strcmp(counter, all[i]) == 0)
            return true;
    return false;
}

bool pki_metrics_costs_have(const pki_metrics_costs *c, const char *counter)
{
    if (strcmp(counter, "memory.resident") == 0)
        return c->memory.looks;
    if (strcmp(counter, "memory.allocated") == 0)
        return c->allocated_known;
    if (is_of_files(counter))
        return c->io_known;
    bool pinned = strcmp(counter, "memory.pinned") == 0;
    for (size_t i = 0; i < c->place_count; i++) {
        const char *place = c->places[i].name;
        if (pinned ? strcmp(place, "host") == 0 : is_of_place(place, counter))
            return true;
    }
    return false;
}

/* ---- metrics ---- */

static struct {
    bool on;
    uint64_t next; /* CLOCK_MONOTONIC, ns */
    int error;     /* of the last time, logged; 0: it is written */
    /* The regions that have series: those that took most when there was room. A series that comes
     * and goes would be none. */
    size_t chosen_count, chosen_most;
    uint32_t chosen[PKI_METRICS_REGIONS];
    size_t gpus; /* that work for the process */
    bool peak_known;
    pki_peak peak;
    size_t verdict_count;
    pki_metrics_verdict verdicts[PKI_METRICS_VERDICTS];
    pki_metrics figures;
    pk_stats steps;
} x;

static pk_stats *stages; /* once there are requests, for the process's life */

/* ---- regions ---- */

static bool is_chosen(uint32_t id)
{
    for (size_t i = 0; i < x.chosen_count; i++)
        if (x.chosen[i] == id)
            return true;
    return false;
}

static bool is_region(uint32_t id)
{
    return pki_name_kind(id) <= PK_WAIT;
}

/* The one with most self time among those that have no series yet; 0: there is none. */
static uint32_t find_largest(const pki_fold *fold)
{
    uint32_t found = 0;
    uint64_t most = 0;
    for (uint32_t id = PKI_NAME_TOO_MANY; id < pki_name_count(); id++) {
        pki_fold_sum sum;
        if (!is_region(id) || is_chosen(id) || !pki_fold_sums(fold, id, &sum))
            continue;
        if (!found || sum.self > most) {
            found = id;
            most = sum.self;
        }
    }
    return found;
}

static void choose(const pki_fold *fold)
{
    uint32_t id;
    while (x.chosen_count < x.chosen_most && (id = find_largest(fold)))
        x.chosen[x.chosen_count++] = id;
}

static void add_region(pki_metrics_region *row, const pki_fold_sum *sum)
{
    row->calls += sum->count;
    row->time += sum->sum;
    row->self += sum->self;
    row->bytes += sum->bytes;
    row->untimed += sum->untimed;
}

static void fill_regions(const pki_fold *fold, pki_metrics *m)
{
    pki_metrics_region others = {.name = "(others)", .kind = PK_OTHER};
    pki_fold_sum sum;
    choose(fold);
    for (size_t i = 0; i < x.chosen_count; i++) {
        const pki_name *name = pki_name_at(x.chosen[i]);
        pki_metrics_region *row = &m->regions[m->region_count++];
        *row = (pki_metrics_region){.name = name->name, .kind = name->kind};
        if (pki_fold_sums(fold, x.chosen[i], &sum))
            add_region(row, &sum);
    }
    for (uint32_t id = PKI_NAME_TOO_MANY; id < pki_name_count(); id++)
        if (x.chosen_count == x.chosen_most && is_region(id) && !is_chosen(id) &&
            pki_fold_sums(fold, id, &sum))
            add_region(&others, &sum);
    if (others.calls)
        m->regions[m->region_count++] = others;
}

/* ---- the rest ---- */

/* Once the costs are: what has a family of its own would take the program's room. */
static void fill_counters(const pki_fold *fold, pki_metrics *m)
{
    for (uint32_t id = PKI_NAME_FIRST;
         id < pki_name_count() && m->counter_count < PKI_METRICS_COUNTERS; id++) {
        const pki_slot *slot = pki_table_slot(&fold->totals, id);
        if (pki_name_kind(id) != PKI_KIND_COUNTER || !slot)
            continue;
        const pki_name *name = pki_name_at(id);
        if (pki_metrics_costs_have(&m->costs, name->name))
            continue;
        m->counters[m->counter_count++] =
            (pki_metrics_counter){name->name, name->key, ((const pki_values *)slot)->last};
    }
}

/* The texts are not shown. */
static void fill_utilisation(const pki_fold *fold, pki_metrics *m)
{
    pki_step_work work = pki_steps_work_so_far(fold->steps);
    m->utilisation = (pki_utilisation){
        .steps = work.steps, .time = work.time, .model = work.model, .hardware = work.hardware};
    x.gpus = pki_device_how_many(fold->device);
}

/* The machine is examined once, when steps announce their operations. */
static void fill_peak(const pki_session *s, pki_metrics *m)
{
    pki_utilisation *u = &m->utilisation;
    if (!u->steps)
        return;
    if (!x.peak_known)
        pki_limits_peak(&s->config, x.gpus, &x.peak);
    x.peak_known = true;
    pki_utilisation_rate(u, &x.peak);
}

static void fill_steps(const pki_fold *fold, pki_metrics *m)
{
    pki_stats_begin(&x.steps);
    m->steps = pki_fold_stats(fold, PKI_NAME_STEP, &x.steps) ? &x.steps : NULL;
    pki_stats_finish(&x.steps, 1);
    pki_steps_so_far(fold->steps, &m->items, m->kinds);
    fill_utilisation(fold, m);
}

/* ---- requests, the process ---- */

/* All sorts of requests together. */
static void add_requests(const pki_fold *fold, pk_stats *stats)
{
    for (size_t i = 0; i < fold->requests->name_count; i++)
        pki_fold_stats(fold, fold->requests->names[i], stats);
}

static void add_stage(const pki_fold *fold, const char *name, pk_stats *stats)
{
    const pk_region stage = PK_REGION(name);
    uint32_t id = pki_region_id_of(&stage);
    if (id)
        pki_fold_stats(fold, id, stats);
}

static void fill_requests(const pki_fold *fold, pki_metrics *m)
{
    if (fold->requests && !stages)
        stages = malloc(PKI_METRICS_STAGES * sizeof *stages);
    if (!fold->requests || !stages)
        return;
    for (unsigned i = 0; i < PKI_METRICS_STAGES; i++)
        pki_stats_begin(&stages[i]);
    add_requests(fold, &stages[PKI_METRICS_DURATION]);
    add_stage(fold, PKI_REQUEST_TTFT, &stages[PKI_METRICS_TTFT]);
    add_stage(fold, PKI_REQUEST_QUEUE, &stages[PKI_METRICS_QUEUE]);
    add_stage(fold, PKI_REQUEST_TPOT, &stages[PKI_METRICS_TPOT]);
    add_stage(fold, PKI_REQUEST_ITL, &stages[PKI_METRICS_ITL]);
    for (unsigned i = 0; i < PKI_METRICS_STAGES; i++) {
        pki_stats_finish(&stages[i], 1);
        m->stages[i] = &stages[i];
    }
    m->requests_good = fold->requests->good;
    m->tokens = fold->requests->tokens;
    m->preemptions = fold->requests->preemptions;
    memcpy(m->outcomes, fold->requests->outcomes, sizeof m->outcomes);
}

static void fill_process(const pki_session *s, bool running, pki_metrics *m)
{
    const pki_world *world = &s->config.world;
    m->program = world->program;
    m->host = world->host;
    m->version = pk_version();
    m->rank = world->rank;
    m->world_size = world->size;
    m->pid = world->pid;
    m->running = running;
    m->now_unix = pki_read_clock(CLOCK_REALTIME);
    m->wall = running ? pki_clock_ns(&s->arena->header->clock, pki_ticks(s->config.monotonic))
                      : s->stop_ns;
    m->counts.size = sizeof m->counts;
    pki_run_counts(s, &m->counts);
    m->toll = pki_toll_now(s);
    m->verdict_count = x.verdict_count;
    memcpy(m->verdicts, x.verdicts, sizeof m->verdicts);
}

/* comms: where the communicators' rows stay. */
static bool collect(const pki_session *s, bool running, pki_metrics *m, pki_summary *comms)
{
    memset(m, 0, sizeof *m);
    fill_process(s, running, m);
    m->costs.memory = pki_memory_so_far(); /* from a file: not under the lock */
    m->costs.allocated_known = pki_memory_allocated(&m->costs.allocated);
    pki_fold_lock();
    const pki_fold *fold = pki_fold_now();
    fill_steps(fold, m);
    fill_requests(fold, m);
    fill_regions(fold, m);
    pki_metrics_costs_fill(m);
    fill_counters(fold, m);
    bool filled = pki_run_comms(comms);
    pki_fold_unlock();
    fill_peak(s, m);
    m->comms = comms->comm.comms;
    m->comm_count = PKI_MIN(comms->comm.comm_count, PKI_METRICS_COMMS);
    return filled;
}

/* ---- the file ---- */

static char *format(const pki_metrics *m, size_t *bytes)
{
    char *text = NULL;
    pki_plain plain;
    FILE *memory = open_memstream(&text, bytes);
    if (!memory)
        return NULL;
    bool done = pki_plain_enter(&plain);
    if (done) {
        pki_metrics_put(m, memory);
        pki_plain_leave(&plain);
    }
    done = done && !ferror(memory);
    if (fclose(memory) == 0 && done)
        return text;
    free(text);
    return NULL;
}

static bool put(const pki_session *s, bool running)
{
    pki_summary comms;
    size_t bytes = 0;
    pki_summary_init(&comms);
    char *text = collect(s, running, &x.figures, &comms) ? format(&x.figures, &bytes) : NULL;
    pki_summary_finish(&comms);
    errno = text ? 0 : ENOMEM;
    bool written = text && pki_file_put(s->config.metrics, text, bytes);
    int error = errno;
    free(text);
    errno = error;
    return written;
}

static void write_now(const pki_session *s, bool running)
{
    int before = x.error;
    x.error = put(s, running) ? 0 : errno;
    if (!x.error || x.error == before)
        return;
    pki_log(PK_LOG_ERROR, "metrics %s: %s; it is tried again", s->config.metrics,
            pki_own_why(x.error));
}

/* If it is time to. What cannot be written is said once and tried again the next time. */
static void write_in_time(pki_session *s)
{
    uint64_t now = x.on ? pki_monotonic_ns() : 0;
    if (!x.on || now < x.next)
        return;
    x.next = now + (uint64_t)s->config.metrics_seconds * 1000000000;
    write_now(s, true);
}

/* The last figures. After the last counts. */
static void write_last(pki_session *s)
{
    if (x.on)
        write_now(s, false);
    x.on = false;
}

/* Of the last figures. */
static pk_status status_of_file(void)
{
    if (!x.error)
        return PK_OK;
    return pki_fail(pki_status_of_errno(x.error), "metrics %s: %s; the last figures are not in it",
                    pki_the_session.config.metrics, pki_own_why(x.error));
}

static pk_status why_not(const char *path, int error)
{
    return pki_paths_fail("metrics", path, error, "leave metrics_path empty for no metrics");
}

/* Can there be such a file? And the first one, at once. After the fold has been opened. */
static pk_status open_metrics(pki_session *s)
{
    pki_mem_clear(&x, sizeof x);
    pki_metrics_costs_reset();
    if (!s->config.metrics[0])
        return PK_OK;
    x.chosen_most = pki_metrics_room(s->config.costs_io, s->config.costs_energy,
                                     s->config.goodput[0], s->config.costs_memory);
    if (!pki_target_is_free(s->config.metrics))
        return why_not(s->config.metrics, errno);
    pki_paths_anchor(s->config.metrics);
    if (!put(s, true))
        return why_not(s->config.metrics, errno);
    x.next = pki_monotonic_ns() + (uint64_t)s->config.metrics_seconds * 1000000000;
    x.on = true;
    return PK_OK;
}

static void abandon(pki_session *s)
{
    (void)s;
    x.on = false;
}

static void after_fork(void)
{
    pki_mem_clear(&x, sizeof x);
    pki_metrics_costs_reset();
}

void pki_metrics_judged(const pki_verdict *verdicts, size_t count)
{
    x.verdict_count = PKI_MIN(count, PKI_METRICS_VERDICTS);
    for (size_t i = 0; i < x.verdict_count; i++) {
        snprintf(x.verdicts[i].name, sizeof x.verdicts[i].name, "%s", verdicts[i].name);
        x.verdicts[i].severity = verdicts[i].severity;
    }
}

const pki_service pki_service_metrics = {
    .name = "metrics",
    .open = open_metrics,
    .round = write_in_time,
    .end = write_last,
    .status = status_of_file,
    .abandon = abandon,
    .after_fork = after_fork,
};
