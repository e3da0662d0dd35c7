#include "out/metrics/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text.h"
#include "core/overhead.h"
#include "out/emit.h"
#include "stats/buckets.h"

/* ---- the words of Prometheus' text ---- */

/* Families, their samples, labels and values. For the files beside this one.
 *
 *     pki_prom_family(w, "pk_records_total", "counter", "Regions and points ...");
 *     pki_prom_sample(w, "");
 *     pki_prom_label(w, "what", "region");
 *     pki_prom_count(w, 17); */

typedef struct pki_prom {
    const pki_metrics *metrics;
    FILE *to;
    const char *family;
} pki_prom;

/* The edges from the first one on, each or every other one. */
typedef struct pki_prom_edges {
    unsigned first, end, stride;
} pki_prom_edges;

/* A label's value: backslashes, quotes and line ends escaped, and valid UTF-8. */
static void put_text(FILE *to, const char *text)
{
    for (size_t left = strlen(text), n; left; text += n, left -= n) {
        n = pki_utf8_length(text, left);
        if (n == 0) {
            fputs("\xEF\xBF\xBD", to);
            n = 1;
        } else if (*text == '\n') {
            fputs("\\n", to);
        } else {
            if (*text == '"' || *text == '\\')
                fputc('\\', to);
            fwrite(text, 1, n, to);
        }
    }
}

static void pki_prom_family(pki_prom *w, const char *name, const char *type, const char *help)
{
    w->family = name;
    fprintf(w->to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void pki_prom_label(pki_prom *w, const char *key, const char *value)
{
    fprintf(w->to, ",%s=\"", key);
    put_text(w->to, value);
    fputc('"', w->to);
}

/* The family's name, the suffix and the labels that all samples have. Its own follow, and a value.
 */
static void pki_prom_sample(pki_prom *w, const char *suffix)
{
    fprintf(w->to, "%s%s{program=\"", w->family, suffix);
    put_text(w->to, w->metrics->program);
    fprintf(w->to, "\",rank=\"%" PRId32 "\"", w->metrics->rank);
}

/* to the nanosecond */
/* to that */
static void pki_prom_count(pki_prom *w, uint64_t value)
{
    fprintf(w->to, "} %" PRIu64 "\n", value);
}

static void put_seconds(FILE *to, uint64_t ns)
{
    fprintf(to, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

static void pki_prom_seconds(pki_prom *w, uint64_t ns)
{
    fputs("} ", w->to);
    put_seconds(w->to, ns);
    fputc('\n', w->to);
}

static void pki_prom_real(pki_prom *w, double value)
{
    char text[32];
    *pki_put_double(text, value) = '\0';
    fprintf(w->to, "} %s\n",
            isnan(value)   ? "NaN"
            : isinf(value) ? value > 0 ? "+Inf" : "-Inf"
                           : text);
}

/* A family of one sample. */
static void pki_prom_one_count(pki_prom *w, const char *name, const char *type, const char *help,
                               uint64_t value)
{
    pki_prom_family(w, name, type, help);
    pki_prom_sample(w, "");
    pki_prom_count(w, value);
}

static void pki_prom_one_time(pki_prom *w, const char *name, const char *type, const char *help,
                              uint64_t ns)
{
    pki_prom_family(w, name, type, help);
    pki_prom_sample(w, "");
    pki_prom_seconds(w, ns);
}

static void pki_prom_joules(pki_prom *w, uint64_t microjoules)
{
    fprintf(w->to, "} %" PRIu64 ".%06" PRIu64 "\n", microjoules / 1000000, microjoules % 1000000);
}

static void pki_prom_one_real(pki_prom *w, const char *name, const char *type, const char *help,
                              double value)
{
    pki_prom_family(w, name, type, help);
    pki_prom_sample(w, "");
    pki_prom_real(w, value);
}

/* ---- histograms ---- */

/* The edges: two in an octave, from 2^10 to 2^40 ns: 1 us to 18 minutes. */
#define PKI_METRICS_FIRST_OCTAVE 10
#define PKI_METRICS_LAST_OCTAVE 40
#define PKI_METRICS_EDGES (2 * (PKI_METRICS_LAST_OCTAVE - PKI_METRICS_FIRST_OCTAVE) + 1)

/* The first bucket that lies behind the edge, and the edge itself, ns. */
static uint64_t edge_at(unsigned i)
{
    unsigned octave = PKI_METRICS_FIRST_OCTAVE + i / 2;
    return ((uint64_t)1 << octave) + (i % 2 ? (uint64_t)1 << (octave - 1) : 0);
}

static void put_bucket(pki_prom *w, uint64_t last_ns, uint64_t count)
{
    pki_prom_sample(w, "_bucket");
    fputs(",le=\"", w->to);
    put_seconds(w->to, last_ns);
    fprintf(w->to, "\"} %" PRIu64 "\n", count);
}

/* stats NULL: nothing yet. */
static void pki_prom_histogram(pki_prom *w, const char *name, const char *help, const pk_stats *s,
                               pki_prom_edges e)
{
    uint64_t count = 0;
    uint32_t bucket = 0;
    pki_prom_family(w, name, "histogram", help);
    for (unsigned i = e.first; i < e.end; i += e.stride) {
        for (; bucket < pki_bucket(edge_at(i)); bucket++)
            count += s ? s->buckets[bucket] : 0;
        put_bucket(w, edge_at(i) - 1, count);
    }
    for (; s && bucket < PK_STATS_BUCKETS; bucket++)
        count += s->buckets[bucket];
    pki_prom_sample(w, "_bucket");
    fprintf(w->to, ",le=\"+Inf\"} %" PRIu64 "\n", count);
    pki_prom_sample(w, "_sum");
    pki_prom_seconds(w, s ? s->sum : 0);
    pki_prom_sample(w, "_count");
    pki_prom_count(w, count);
}

/* ---- what the process costs beside time ---- */

typedef struct row {
    const char *name, *type, *help;
    uint64_t value;
} row;

static void put_rows(pki_prom *w, const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pki_prom_one_count(w, rows[i].name, rows[i].type, rows[i].help, rows[i].value);
}

static void put_labelled(pki_prom *w, const char *key, const char *label, uint64_t count)
{
    pki_prom_sample(w, "");
    pki_prom_label(w, key, label);
    pki_prom_count(w, count);
}

static void put_labelled_time(pki_prom *w, const char *key, const char *label, uint64_t ns)
{
    pki_prom_sample(w, "");
    pki_prom_label(w, key, label);
    pki_prom_seconds(w, ns);
}

static void put_memory(pki_prom *w)
{
    const pki_metrics_costs *c = &w->metrics->costs;
    const pki_memory_sum *m = &c->memory;
    const row resident[] = {{"pk_process_resident_memory_bytes", "gauge",
                             "Memory of the process, resident.", m->resident},
                            {"pk_process_resident_memory_max_bytes", "gauge",
                             "The most since the program's start.", m->most_resident}};
    if (m->looks) {
        put_rows(w, resident, PKI_COUNT_OF(resident));
        pki_prom_family(w, "pk_process_page_faults_total", "counter",
                        "Page faults in the session; major: from a disk.");
        put_labelled(w, "kind", "minor", m->minor_faults);
        put_labelled(w, "kind", "major", m->major_faults);
    }
    if (c->allocated_known)
        pki_prom_one_count(w, "pk_allocated_bytes", "gauge",
                           "Bytes that libpk_alloc has seen allocated and not freed.",
                           c->allocated);
}

static void put_places(pki_prom *w, const char *name, const char *help, size_t offset)
{
    const pki_metrics_costs *c = &w->metrics->costs;
    pki_prom_family(w, name, "gauge", help);
    for (size_t i = 0; i < c->place_count; i++) {
        const pki_metrics_place *p = &c->places[i];
        put_labelled(w, "device", p->name,
                     *(const uint64_t *)(const void *)((const char *)p + offset));
    }
}

/* "host": what is pinned of its memory. */
static void put_devices(pki_prom *w)
{
    if (!w->metrics->costs.place_count)
        return;
    put_places(w, "pk_device_memory_bytes", "Allocated by the process and not freed.",
               offsetof(pki_metrics_place, live));
    put_places(w, "pk_device_memory_max_bytes", "The most so far.",
               offsetof(pki_metrics_place, peak));
    put_places(w, "pk_device_pool_reserved_bytes", "Reserved by memory pools.",
               offsetof(pki_metrics_place, pool_reserved));
    put_places(w, "pk_device_pool_used_bytes", "Of that, in use.",
               offsetof(pki_metrics_place, pool_used));
}

static void put_files(pki_prom *w)
{
    const pki_io_counts *io = &w->metrics->costs.io;
    const row rows[] = {
        {"pk_io_read_bytes_total", "counter", "Bytes of calls that read, whatever from.",
         io->read_chars},
        {"pk_io_written_bytes_total", "counter", "Bytes of calls that write, whatever to.",
         io->write_chars},
        {"pk_io_read_calls_total", "counter", "Calls that read.", io->read_calls},
        {"pk_io_write_calls_total", "counter", "Calls that write.", io->write_calls},
        {"pk_io_device_read_bytes_total", "counter", "Bytes that came from a device.",
         io->read_device},
        {"pk_io_device_written_bytes_total", "counter", "Bytes written for a device.",
         io->write_device}};
    if (w->metrics->costs.io_known)
        put_rows(w, rows, PKI_COUNT_OF(rows));
}

static void put_energy(pki_prom *w)
{
    const pki_metrics_costs *c = &w->metrics->costs;
    if (!c->energy_count)
        return;
    pki_prom_family(w, "pk_energy_joules_total", "counter",
                    "Energy by counter; one may be part of another: package-0 dram of package-0.");
    for (size_t i = 0; i < c->energy_count; i++) {
        pki_prom_sample(w, "");
        pki_prom_label(w, "counter", c->energy[i].name);
        pki_prom_joules(w, c->energy[i].microjoules);
    }
}

/* No counter: what is unfinished now becomes something else. */
static void put_goodput(pki_prom *w)
{
    const pki_goodput_summary *g = &w->metrics->costs.goodput;
    if (!g->up)
        return;
    pki_prom_family(w, "pk_goodput_seconds", "gauge",
                    "What the time since the process's start has gone into; the parts add up.");
    for (size_t i = 0; i < PKI_PARTS; i++) {
        put_labelled_time(w, "part", pki_part_names[i], g->parts[i]);
    }
    pki_prom_one_count(w, "pk_recomputed_steps_total", "counter",
                       "Steps that an earlier run of the job had made, and lost.", g->recomputed);
}

static void put_checkpoints(pki_prom *w)
{
    const pki_metrics_costs *c = &w->metrics->costs;
    if (!c->saves)
        return;
    pki_prom_one_count(w, "pk_checkpoints_total", "counter", "Checkpoints that are complete.",
                       c->saves);
    pki_prom_one_count(w, "pk_checkpoint_bytes_total", "counter", "Their bytes, as announced.",
                       c->save_bytes);
    pki_prom_one_time(w, "pk_checkpoint_seconds_total", "counter", "Time in phases that save one.",
                      c->save_time);
}

static void put_stepper(pki_prom *w)
{
    const pki_processor *p = &w->metrics->toll.stepper;
    const pki_metrics_costs *c = &w->metrics->costs;
    uint64_t known = p->running + p->ready;
    if (!p->observed)
        return;
    pki_prom_family(w, "pk_step_thread_seconds_total", "counter",
                    "Of the thread that makes steps; ready: it could run, and had no processor.");
    put_labelled_time(w, "state", "running", p->running);
    put_labelled_time(w, "state", "ready", p->ready);
    put_labelled_time(w, "state", "waiting", p->observed > known ? p->observed - known : 0);
    pki_prom_family(w, "pk_step_thread_switches_total", "counter",
                    "Its switches; forced: it was taken off its processor.");
    put_labelled(w, "kind", "forced", c->forced);
    put_labelled(w, "kind", "own", c->own);
}

/* What the process costs beside time: families of what was measured, and no others. */
static void pki_prom_costs(pki_prom *w)
{
    put_memory(w);
    put_devices(w);
    put_stepper(w);
    put_files(w);
    put_energy(w);
    put_goodput(w);
    put_checkpoints(w);
}

/* ---- a run's figures for Prometheus ---- */

/* ---- the process ---- */

static void put_process(pki_prom *w)
{
    const pki_metrics *m = w->metrics;
    char pid[16], size[16];
    snprintf(pid, sizeof pid, "%" PRIu32, m->pid);
    snprintf(size, sizeof size, "%" PRId32, m->world_size);
    pki_prom_family(w, "pk_info", "gauge", "The process that perfkit records; always 1.");
    pki_prom_sample(w, "");
    pki_prom_label(w, "host", m->host);
    pki_prom_label(w, "pid", pid);
    pki_prom_label(w, "world_size", size);
    pki_prom_label(w, "version", m->version);
    pki_prom_count(w, 1);
    pki_prom_one_count(w, "pk_running", "gauge", "0 once the session has ended.", m->running);
    pki_prom_one_time(w, "pk_last_update_timestamp_seconds", "gauge",
                      "When these figures were written, seconds since 1970.", m->now_unix);
    pki_prom_one_time(w, "pk_session_duration_seconds", "gauge",
                      "How long perfkit has been recording.", m->wall);
    pki_prom_one_time(w, "pk_process_cpu_seconds_total", "counter",
                      "CPU time of the process since then, perfkit included.", m->toll.process);
}

static void put_overhead(pki_prom *w)
{
    const pki_toll *t = &w->metrics->toll;
    const pk_counts *c = &w->metrics->counts;
    double regions = (double)c->begun - (double)c->untimed + (double)c->points;
    double recording = t->region_ns * regions + t->counted_ns * (double)c->untimed;
    pki_prom_family(w, "pk_overhead_cpu_seconds_total", "counter",
                    "CPU time that perfkit itself took; recording is an estimate from below.");
    put_labelled_time(w, "part", "recording", (uint64_t)recording);
    put_labelled_time(w, "part", "collector", t->collector);
    put_labelled_time(w, "part", "callers", t->callers);
    put_labelled_time(w, "part", "captures", t->captures);
    put_labelled_time(w, "part", "readings", t->readings);
    put_labelled_time(w, "part", "backends", t->backends);
}

static void put_records(pki_prom *w)
{
    const pk_counts *c = &w->metrics->counts;
    pki_prom_family(w, "pk_records_total", "counter",
                    "Regions and points that have been recorded.");
    put_labelled(w, "what", "region", c->recorded);
    put_labelled(w, "what", "point", c->points);
    pki_prom_family(w, "pk_dropped_records_total", "counter",
                    "Regions and points that were not: ring full, too deep, no memory.");
    put_labelled(w, "what", "region", c->dropped);
    put_labelled(w, "what", "point", c->points_dropped);
    pki_prom_one_count(w, "pk_unwritten_events_total", "counter",
                       "Recorded, but not in the trace file.", c->unwritten);
    pki_prom_one_count(w, "pk_trace_bytes_total", "counter",
                       "Trace text written, before compression.", c->trace_bytes);
    pki_prom_one_count(w, "pk_memory_bytes", "gauge", "Recording memory in use.", c->memory_bytes);
    pki_prom_one_count(w, "pk_threads_total", "counter", "Threads that have recorded.", c->threads);
}

/* ---- steps ---- */

static void put_utilisation(pki_prom *w)
{
    const pki_utilisation *u = &w->metrics->utilisation;
    const struct {
        const char *name, *type, *help;
        double value;
    } rows[] = {
        {"pk_model_flops_total", "counter", "Operations that the model needs.", u->model},
        {"pk_hardware_flops_total", "counter", "Operations done.", u->hardware},
        {"pk_peak_flops", "gauge", "Operations per second that the hardware can do.", u->peak},
        {"pk_mfu_ratio", "gauge", "Model FLOPs utilisation of the run so far.", u->mfu},
        {"pk_hfu_ratio", "gauge", "Hardware FLOPs utilisation of the run so far.", u->hfu}};
    for (size_t i = 0; u->steps && i < (u->peak > 0 ? PKI_COUNT_OF(rows) : 2); i++) {
        pki_prom_one_real(w, rows[i].name, rows[i].type, rows[i].help, rows[i].value);
    }
}

static void put_steps(pki_prom *w)
{
    const pki_metrics *m = w->metrics;
    pki_prom_one_count(w, "pk_steps_total", "counter", "Steps that have ended.",
                       m->steps ? m->steps->count : 0);
    pki_prom_one_count(w, "pk_items_total", "counter", "Items (samples, tokens) in them.",
                       m->items);
    pki_prom_histogram(w, "pk_step_duration_seconds", "Durations of the steps.", m->steps,
                       (pki_prom_edges){0, PKI_METRICS_EDGES, 1});
    pki_prom_family(w, "pk_step_kind_seconds_total", "counter",
                    "Where the steps' time went on their thread; untracked: in no region.");
    for (unsigned k = 0; k < PKI_SHARES; k++) {
        put_labelled_time(w, "kind", pki_kind_names[k], m->kinds[k]);
    }
    put_utilisation(w);
}

/* ---- requests, in the names of OpenTelemetry's conventions ---- */

static void put_stages(pki_prom *w)
{
    static const struct {
        const char *name, *help;
    } stages[PKI_METRICS_STAGES] = {
        [PKI_METRICS_DURATION] = {"gen_ai_server_request_duration_seconds",
                                  "Requests, from begin to end."},
        [PKI_METRICS_TTFT] = {"gen_ai_server_time_to_first_token_seconds",
                              "Their first tokens, from begin on."},
        [PKI_METRICS_QUEUE] = {"pk_request_queue_time_seconds",
                               "Their waits for the batch, again after each preemption."},
        [PKI_METRICS_TPOT] = {"gen_ai_server_time_per_output_token_seconds",
                              "Per token after the first, of a request."},
        [PKI_METRICS_ITL] = {"pk_inter_token_latency_seconds", "From token to token."}};
    for (unsigned i = 0; i < PKI_METRICS_STAGES; i++) {
        unsigned last = i < PKI_METRICS_TPOT ? PKI_METRICS_LAST_STAGE : PKI_METRICS_LAST_TOKEN;
        pki_prom_edges octaves = {2 * (PKI_METRICS_FIRST_STAGE - PKI_METRICS_FIRST_OCTAVE),
                                  2 * (last - PKI_METRICS_FIRST_OCTAVE) + 1, 2};
        pki_prom_histogram(w, stages[i].name, stages[i].help, w->metrics->stages[i], octaves);
    }
}

static void put_requests(pki_prom *w)
{
    static const char *const outcomes[] = {"finished", "cancelled", "failed"};
    const pki_metrics *m = w->metrics;
    if (!m->stages[0])
        return;
    put_stages(w);
    pki_prom_family(w, "pk_requests_total", "counter", "Requests that have ended.");
    for (size_t i = 0; i < PKI_COUNT_OF(outcomes); i++) {
        put_labelled(w, "outcome", outcomes[i], m->outcomes[i]);
    }
    pki_prom_one_count(w, "pk_requests_good_total", "counter", "Requests that kept to the limits.",
                       m->requests_good);
    pki_prom_one_count(w, "pk_generation_tokens_total", "counter",
                       "Tokens that ended requests have generated.", m->tokens);
    pki_prom_one_count(w, "pk_request_preemptions_total", "counter",
                       "How often ended requests had to leave the batch.", m->preemptions);
}

/* ---- rows ---- */

static void begin_region(pki_prom *w, const pki_metrics_region *r)
{
    pki_prom_sample(w, "");
    pki_prom_label(w, "region", r->name);
    pki_prom_label(w, "kind", pki_kind_names[r->kind]);
}

static void put_regions(pki_prom *w)
{
    const pki_metrics *m = w->metrics;
    pki_prom_family(w, "pk_region_calls_total", "counter", "Calls of a region, on all threads.");
    for (size_t i = 0; i < m->region_count; i++) {
        begin_region(w, &m->regions[i]);
        pki_prom_count(w, m->regions[i].calls);
    }
    pki_prom_family(w, "pk_region_seconds_total", "counter",
                    "Time in them, regions inside included.");
    for (size_t i = 0; i < m->region_count; i++) {
        begin_region(w, &m->regions[i]);
        pki_prom_seconds(w, m->regions[i].time);
    }
    pki_prom_family(w, "pk_region_self_seconds_total", "counter", "Without the regions inside.");
    for (size_t i = 0; i < m->region_count; i++) {
        begin_region(w, &m->regions[i]);
        pki_prom_seconds(w, m->regions[i].self);
    }
    pki_prom_family(w, "pk_region_bytes_total", "counter",
                    "Bytes by pk_region_add; over pk_region_seconds_total it is a bandwidth.");
    for (size_t i = 0; i < m->region_count; i++) {
        begin_region(w, &m->regions[i]);
        pki_prom_count(w, m->regions[i].bytes);
    }
}

/* What overhead_max has taken away. Which regions': the report, for want of series. */
static void put_thinned(pki_prom *w)
{
    const pki_metrics *m = w->metrics;
    if (!(m->toll.overhead_max > 0))
        return;
    pki_prom_family(w, "pk_thinned_calls_total", "counter",
                    "Calls without a time, or with one and without an event, for overhead_max.");
    put_labelled(w, "what", "untimed", m->counts.untimed);
    put_labelled(w, "what", "untraced", m->counts.untraced);
}

static void put_counters(pki_prom *w)
{
    const pki_metrics *m = w->metrics;
    if (!m->counter_count)
        return;
    pki_prom_family(w, "pk_value", "gauge",
                    "The last value of a counter, in the unit that it names.");
    for (size_t i = 0; i < m->counter_count; i++) {
        pki_prom_sample(w, "");
        pki_prom_label(w, "name", m->counters[i].name);
        pki_prom_label(w, "unit", m->counters[i].unit);
        pki_prom_real(w, m->counters[i].last);
    }
}

/* Names need not differ: the index does. */
static const pki_comm_row *begin_comm(pki_prom *w, size_t i)
{
    const pki_comm_row *c = &w->metrics->comms[i];
    char index[21]; /* any size_t */
    snprintf(index, sizeof index, "%zu", i);
    pki_prom_sample(w, "");
    pki_prom_label(w, "library", c->library);
    pki_prom_label(w, "communicator", c->name);
    pki_prom_label(w, "index", index);
    return c;
}

static void put_comm_times(pki_prom *w, const char *name, const char *help, bool exposed)
{
    pki_prom_family(w, name, "counter", help);
    for (size_t i = 0; i < w->metrics->comm_count; i++) {
        const pki_comm_row *c = begin_comm(w, i);
        pki_prom_seconds(w, exposed ? c->exposed : c->time);
    }
}

static void put_comms(pki_prom *w)
{
    const pki_metrics *m = w->metrics;
    if (!m->comm_count)
        return;
    pki_prom_family(w, "pk_comm_operations_total", "counter", "Operations on a communicator.");
    for (size_t i = 0; i < m->comm_count; i++)
        pki_prom_count(w, begin_comm(w, i)->calls);
    pki_prom_family(w, "pk_comm_bytes_total", "counter", "Bytes as given to them.");
    for (size_t i = 0; i < m->comm_count; i++)
        pki_prom_count(w, begin_comm(w, i)->bytes);
    put_comm_times(w, "pk_comm_seconds_total", "Time of the operations, added up.", false);
    put_comm_times(w, "pk_comm_exposed_seconds_total", "Time that threads waited for them.", true);
}

static void put_verdicts(pki_prom *w)
{
    static const char *const severities[] = {
        [PKI_GOOD] = "good", [PKI_NOTE] = "note", [PKI_WARN] = "warning"};
    const pki_metrics *m = w->metrics;
    if (!m->verdict_count)
        return;
    pki_prom_family(w, "pk_verdict", "gauge", "1: given of the last window (windows_path).");
    for (size_t i = 0; i < m->verdict_count; i++) {
        pki_prom_sample(w, "");
        pki_prom_label(w, "verdict", m->verdicts[i].name);
        pki_prom_label(w, "severity", severities[m->verdicts[i].severity]);
        pki_prom_count(w, 1);
    }
}

/* Series of each region, and of each cost. */
enum { OF_REGION = 4, OF_IO = 6, OF_GOODPUT = PKI_PARTS + 1, OF_PLACE = 4 };

size_t pki_metrics_room(bool io, bool energy, bool goodput, bool devices)
{
    size_t taken = (io ? OF_IO : 0u) + (energy ? PKI_METRICS_ENERGY : 0u) +
                   (goodput ? OF_GOODPUT : 0u) + (devices ? OF_PLACE * PKI_METRICS_PLACES : 0u);
    return PKI_METRICS_REGIONS - (taken + OF_REGION - 1) / OF_REGION;
}

void pki_metrics_put(const pki_metrics *metrics, FILE *file)
{
    pki_prom w = {.metrics = metrics, .to = file};
    put_process(&w);
    put_steps(&w);
    put_requests(&w);
    pki_prom_costs(&w);
    put_regions(&w);
    put_thinned(&w);
    put_counters(&w);
    put_comms(&w);
    put_verdicts(&w);
    put_records(&w);
    put_overhead(&w);
}
