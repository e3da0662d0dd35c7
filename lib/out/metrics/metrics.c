#include "out/metrics/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text.h"
#include "out/emit.h"
#include "stats/buckets.h"

typedef struct writer {
    const pki_metrics *m;
    FILE *to;
    const char *family;
} writer;

/* ---- words ---- */

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

static void begin_family(writer *w, const char *name, const char *type, const char *help)
{
    w->family = name;
    fprintf(w->to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_label(writer *w, const char *key, const char *value)
{
    fprintf(w->to, ",%s=\"", key);
    put_text(w->to, value);
    fputc('"', w->to);
}

/* The sample up to its own labels, which follow, and then a value. */
static void begin_sample(writer *w, const char *suffix)
{
    fprintf(w->to, "%s%s{program=\"", w->family, suffix);
    put_text(w->to, w->m->program);
    fprintf(w->to, "\",rank=\"%" PRId32 "\"", w->m->rank);
}

static void end_with_count(writer *w, uint64_t value)
{
    fprintf(w->to, "} %" PRIu64 "\n", value);
}

/* To the nanosecond. */
static void put_seconds(FILE *to, uint64_t ns)
{
    fprintf(to, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

static void end_with_seconds(writer *w, uint64_t ns)
{
    fputs("} ", w->to);
    put_seconds(w->to, ns);
    fputc('\n', w->to);
}

static void end_with_real(writer *w, double value)
{
    char text[32];
    *pki_put_double(text, value) = '\0';
    fprintf(w->to, "} %s\n",
            isnan(value)   ? "NaN"
            : isinf(value) ? value > 0 ? "+Inf" : "-Inf"
                           : text);
}

static void put_count(writer *w, const char *name, const char *type, const char *help,
                      uint64_t value)
{
    begin_family(w, name, type, help);
    begin_sample(w, "");
    end_with_count(w, value);
}

static void put_time(writer *w, const char *name, const char *type, const char *help, uint64_t ns)
{
    begin_family(w, name, type, help);
    begin_sample(w, "");
    end_with_seconds(w, ns);
}

/* ---- the process ---- */

static void put_process(writer *w)
{
    const pki_metrics *m = w->m;
    char pid[16], size[16];
    snprintf(pid, sizeof pid, "%" PRIu32, m->pid);
    snprintf(size, sizeof size, "%" PRId32, m->world_size);
    begin_family(w, "pk_info", "gauge", "The process that perfkit records; always 1.");
    begin_sample(w, "");
    put_label(w, "host", m->host);
    put_label(w, "pid", pid);
    put_label(w, "world_size", size);
    put_label(w, "version", m->version);
    end_with_count(w, 1);
    put_count(w, "pk_running", "gauge", "0 once the session has ended.", m->running);
    put_time(w, "pk_last_update_timestamp_seconds", "gauge",
             "When these figures were written, seconds since 1970.", m->now_unix);
    put_time(w, "pk_session_duration_seconds", "gauge", "How long perfkit has been recording.",
             m->wall);
    put_time(w, "pk_process_cpu_seconds_total", "counter",
             "CPU time of the process since then, perfkit included.", m->toll.process);
}

static void put_part(writer *w, const char *part, uint64_t ns)
{
    begin_sample(w, "");
    put_label(w, "part", part);
    end_with_seconds(w, ns);
}

static void put_overhead(writer *w)
{
    const pki_toll *t = &w->m->toll;
    const pk_counts *c = &w->m->counts;
    double regions = (double)c->begun - (double)c->untimed + (double)c->points;
    double recording = t->region_ns * regions + t->counted_ns * (double)c->untimed;
    begin_family(w, "pk_overhead_cpu_seconds_total", "counter",
                 "CPU time that perfkit itself took; recording is an estimate from below.");
    put_part(w, "recording", (uint64_t)recording);
    put_part(w, "collector", t->collector);
    put_part(w, "callers", t->callers);
    put_part(w, "backends", t->backends);
}

static void put_what(writer *w, const char *what, uint64_t count)
{
    begin_sample(w, "");
    put_label(w, "what", what);
    end_with_count(w, count);
}

static void put_records(writer *w)
{
    const pk_counts *c = &w->m->counts;
    begin_family(w, "pk_records_total", "counter", "Regions and points that have been recorded.");
    put_what(w, "region", c->recorded);
    put_what(w, "point", c->points);
    begin_family(w, "pk_dropped_records_total", "counter",
                 "Regions and points that were not: ring full, too deep, no memory.");
    put_what(w, "region", c->dropped);
    put_what(w, "point", c->points_dropped);
    put_count(w, "pk_unwritten_events_total", "counter", "Recorded, but not in the trace file.",
              c->unwritten);
    put_count(w, "pk_trace_bytes_total", "counter", "Trace text written, before compression.",
              c->trace_bytes);
    put_count(w, "pk_memory_bytes", "gauge", "Recording memory in use.", c->memory_bytes);
    put_count(w, "pk_threads_total", "counter", "Threads that have recorded.", c->threads);
}

/* ---- steps ---- */

/* The first bucket that lies behind the edge, and the edge itself, ns. */
static uint64_t edge_at(unsigned i)
{
    unsigned octave = PKI_METRICS_FIRST_OCTAVE + i / 2;
    return ((uint64_t)1 << octave) + (i % 2 ? (uint64_t)1 << (octave - 1) : 0);
}

static void put_bucket(writer *w, uint64_t last_ns, uint64_t count)
{
    begin_sample(w, "_bucket");
    fputs(",le=\"", w->to);
    put_seconds(w->to, last_ns);
    fprintf(w->to, "\"} %" PRIu64 "\n", count);
}

/* The edges from the first one on, each or every other one. */
typedef struct edges {
    unsigned first, end, stride;
} edges;

static void put_histogram(writer *w, const char *name, const char *help, const pk_stats *s, edges e)
{
    uint64_t count = 0;
    uint32_t bucket = 0;
    begin_family(w, name, "histogram", help);
    for (unsigned i = e.first; i < e.end; i += e.stride) {
        for (; bucket < pki_bucket(edge_at(i)); bucket++)
            count += s ? s->buckets[bucket] : 0;
        put_bucket(w, edge_at(i) - 1, count);
    }
    for (; s && bucket < PK_STATS_BUCKETS; bucket++)
        count += s->buckets[bucket];
    begin_sample(w, "_bucket");
    fprintf(w->to, ",le=\"+Inf\"} %" PRIu64 "\n", count);
    begin_sample(w, "_sum");
    end_with_seconds(w, s ? s->sum : 0);
    begin_sample(w, "_count");
    end_with_count(w, count);
}

static void put_utilisation(writer *w)
{
    const pki_utilisation *u = &w->m->utilisation;
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
        begin_family(w, rows[i].name, rows[i].type, rows[i].help);
        begin_sample(w, "");
        end_with_real(w, rows[i].value);
    }
}

static void put_steps(writer *w)
{
    const pki_metrics *m = w->m;
    put_count(w, "pk_steps_total", "counter", "Steps that have ended.",
              m->steps ? m->steps->count : 0);
    put_count(w, "pk_items_total", "counter", "Items (samples, tokens) in them.", m->items);
    put_histogram(w, "pk_step_duration_seconds", "Durations of the steps.", m->steps,
                  (edges){0, PKI_METRICS_EDGES, 1});
    begin_family(w, "pk_step_kind_seconds_total", "counter",
                 "Where the steps' time went on their thread; untracked: in no region.");
    for (unsigned k = 0; k < PKI_SHARES; k++) {
        begin_sample(w, "");
        put_label(w, "kind", pki_kind_names[k]);
        end_with_seconds(w, m->kinds[k]);
    }
    put_utilisation(w);
}

/* ---- requests, in the names of OpenTelemetry's conventions ---- */

static void put_requests(writer *w)
{
    static const struct {
        const char *name, *help;
    } stages[PKI_METRICS_STAGES] = {
        {"gen_ai_server_request_duration_seconds", "Requests, from begin to end."},
        {"gen_ai_server_time_to_first_token_seconds", "Their first tokens, from begin on."},
        {"gen_ai_server_time_per_output_token_seconds",
         "Per token after the first, of a request."}};
    const pki_metrics *m = w->m;
    const edges octaves = {2 * (PKI_METRICS_FIRST_STAGE - PKI_METRICS_FIRST_OCTAVE),
                           2 * (PKI_METRICS_LAST_STAGE - PKI_METRICS_FIRST_OCTAVE) + 1, 2};
    if (!m->stages[0])
        return;
    for (unsigned i = 0; i < PKI_METRICS_STAGES; i++)
        put_histogram(w, stages[i].name, stages[i].help, m->stages[i], octaves);
    put_count(w, "pk_requests_good_total", "counter", "Requests that kept to the limits.",
              m->requests_good);
}

/* ---- rows ---- */

static void begin_region(writer *w, const pki_metrics_region *r)
{
    begin_sample(w, "");
    put_label(w, "region", r->name);
    put_label(w, "kind", pki_kind_names[r->kind]);
}

static void put_regions(writer *w)
{
    const pki_metrics *m = w->m;
    begin_family(w, "pk_region_calls_total", "counter", "Calls of a region, on all threads.");
    for (size_t i = 0; i < m->region_count; i++) {
        begin_region(w, &m->regions[i]);
        end_with_count(w, m->regions[i].calls);
    }
    begin_family(w, "pk_region_seconds_total", "counter", "Time in them, regions inside included.");
    for (size_t i = 0; i < m->region_count; i++) {
        begin_region(w, &m->regions[i]);
        end_with_seconds(w, m->regions[i].time);
    }
    begin_family(w, "pk_region_self_seconds_total", "counter", "Without the regions inside.");
    for (size_t i = 0; i < m->region_count; i++) {
        begin_region(w, &m->regions[i]);
        end_with_seconds(w, m->regions[i].self);
    }
    begin_family(w, "pk_region_bytes_total", "counter",
                 "Bytes by pk_region_add; over pk_region_seconds_total it is a bandwidth.");
    for (size_t i = 0; i < m->region_count; i++) {
        begin_region(w, &m->regions[i]);
        end_with_count(w, m->regions[i].bytes);
    }
}

/* What overhead_max has taken away. Which regions': the report, for want of series. */
static void put_thinned(writer *w)
{
    const pki_metrics *m = w->m;
    if (!(m->toll.overhead_max > 0))
        return;
    begin_family(w, "pk_thinned_calls_total", "counter",
                 "Calls without a time, or with one and without an event, for overhead_max.");
    put_what(w, "untimed", m->counts.untimed);
    put_what(w, "untraced", m->counts.untraced);
}

static void put_counters(writer *w)
{
    const pki_metrics *m = w->m;
    if (!m->counter_count)
        return;
    begin_family(w, "pk_value", "gauge", "The last value of a counter, in the unit that it names.");
    for (size_t i = 0; i < m->counter_count; i++) {
        begin_sample(w, "");
        put_label(w, "name", m->counters[i].name);
        put_label(w, "unit", m->counters[i].unit);
        end_with_real(w, m->counters[i].last);
    }
}

/* Names need not differ: the index does. */
static const pki_comm_row *begin_comm(writer *w, size_t i)
{
    const pki_comm_row *c = &w->m->comms[i];
    char index[20];
    snprintf(index, sizeof index, "%zu", i);
    begin_sample(w, "");
    put_label(w, "library", c->library);
    put_label(w, "communicator", c->name);
    put_label(w, "index", index);
    return c;
}

static void put_comm_times(writer *w, const char *name, const char *help, bool exposed)
{
    begin_family(w, name, "counter", help);
    for (size_t i = 0; i < w->m->comm_count; i++) {
        const pki_comm_row *c = begin_comm(w, i);
        end_with_seconds(w, exposed ? c->exposed : c->time);
    }
}

static void put_comms(writer *w)
{
    const pki_metrics *m = w->m;
    if (!m->comm_count)
        return;
    begin_family(w, "pk_comm_operations_total", "counter", "Operations on a communicator.");
    for (size_t i = 0; i < m->comm_count; i++)
        end_with_count(w, begin_comm(w, i)->calls);
    begin_family(w, "pk_comm_bytes_total", "counter", "Bytes as given to them.");
    for (size_t i = 0; i < m->comm_count; i++)
        end_with_count(w, begin_comm(w, i)->bytes);
    put_comm_times(w, "pk_comm_seconds_total", "Time of the operations, added up.", false);
    put_comm_times(w, "pk_comm_exposed_seconds_total", "Time that threads waited for them.", true);
}

static void put_verdicts(writer *w)
{
    static const char *const severities[] = {
        [PKI_GOOD] = "good", [PKI_NOTE] = "note", [PKI_WARN] = "warning"};
    const pki_metrics *m = w->m;
    if (!m->verdict_count)
        return;
    begin_family(w, "pk_verdict", "gauge", "1: given of the last window (windows_path).");
    for (size_t i = 0; i < m->verdict_count; i++) {
        begin_sample(w, "");
        put_label(w, "verdict", m->verdicts[i].name);
        put_label(w, "severity", severities[m->verdicts[i].severity]);
        end_with_count(w, 1);
    }
}

void pki_metrics_put(const pki_metrics *metrics, FILE *file)
{
    writer w = {.m = metrics, .to = file};
    put_process(&w);
    put_steps(&w);
    put_requests(&w);
    put_regions(&w);
    put_thinned(&w);
    put_counters(&w);
    put_comms(&w);
    put_verdicts(&w);
    put_records(&w);
    put_overhead(&w);
}
