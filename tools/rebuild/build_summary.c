/* tools/rebuild/build_summary.c - from what was rebuilt to a summary. */
#include "rebuild/state.h"

#include "base/compiler.h"
#include "memory.h"
#include "read/read_shape.h"
#include "stats/histogram.h"
#include "measure/overhead.h"
#include "measure/verdict/verdict.h"
#include "measure/whole_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill_region(const rebuild *r, uint32_t id, const rebuilt_region *from,
                        pki_region_row *row)
{
    *row = (pki_region_row){.name = memory_copy(rebuild_name(r, id)),
                            .kind = rebuild_kind(r, id),
                            .time = pki_tally_dist(&from->time),
                            .self = from->self,
                            .bytes = from->bytes,
                            .flops = from->flops,
                            .threads = rebuild_threads(r, id)};
    if (from == &r->regions[id])
        row->span = pki_spans_row(&r->async, id, 0);
    memory_needed(pki_histogram_of_tally(&from->time, &row->histogram) &&
                  pki_window_sum_of_tally(&from->time, &row->exact));
}

static void fill_regions(const rebuild *r, const rebuilt_region *from, size_t count,
                         pki_region_row **rows, size_t *row_count)
{
    *rows = memory_zeroed(count, sizeof **rows);
    for (uint32_t i = 0; i < count; i++)
        if (from[i].time.moments.count ||
            (from == r->regions && pki_spans_row(&r->async, i, 0).events))
            fill_region(r, i, &from[i], &(*rows)[(*row_count)++]);
    pki_regions_sort(*rows, *row_count);
}

static void fill_thread(const rebuild *r, const rebuilt_thread *from, pki_thread_row *row)
{
    *row = (pki_thread_row){.name = memory_copy(from->name ? from->name : ""),
                            .tid = from->tid,
                            .recorded = from->recorded};
    memcpy(row->kinds, from->kinds, sizeof row->kinds);
    if (from->regions)
        fill_regions(r, from->regions, from->region_room, &row->regions, &row->region_count);
}

static void fill_threads(const rebuild *r, pki_summary *out)
{
    out->threads = memory_zeroed(r->tracks.count, sizeof *out->threads);
    for (uint32_t i = 0; i < r->tracks.count; i++)
        if (r->threads[i].recorded)
            fill_thread(r, &r->threads[i], &out->threads[out->thread_count++]);
}

static void fill_counters(const rebuild *r, pki_summary *out)
{
    out->counters = memory_zeroed(r->counters.count, sizeof *out->counters);
    for (uint32_t i = 0; i < r->counters.count; i++) {
        const char *name = r->counters.texts[i], *unit = strrchr(name, '\x1f') + 1;
        pki_counter_row *row = &out->counters[out->counter_count++];
        *row = (pki_counter_row){.name = strndup(name, (size_t)(unit - 1 - name)),
                                 .unit = memory_copy(strcmp(unit, "value") ? unit : ""),
                                 .value = pki_tally_dist(&r->values[i].value),
                                 .last = r->values[i].last};
        memory_needed(row->name && pki_timeline_fill(&r->values[i].timeline, row));
    }
}

/* ---- the trace's head ---- */

static void read_clock(json_reader *j, json_t *clock, pki_run *run)
{
    json_read_text(j, clock, "source", &run->clock);
    json_read_real(j, clock, "hz", &run->clock_hz);
    json_read_real(j, clock, "step_ns", &run->clock_step_ns);
    json_read_real(j, clock, "uncertainty_ns", &run->clock_uncertainty_ns);
    json_read_real(j, clock, "drift_ppm", &run->clock_ppm);
}

static void read_toll(json_reader *j, json_t *metadata, pki_toll *toll)
{
    json_t *from = json_read_object(j, metadata, "overhead");
    json_read_uint(j, metadata, "cpu_ns", &toll->process);
    json_read_real(j, from, "region_ns", &toll->region_ns);
    json_read_uint(j, from, "collector_ns", &toll->collector);
    json_read_uint(j, from, "callers_ns", &toll->callers);
    json_read_uint(j, from, "captures_ns", &toll->captures);
    json_read_uint(j, from, "readings_ns", &toll->readings);
    json_read_uint(j, from, "backends_ns", &toll->backends);
    from = json_read_object(j, metadata, "stepping_thread");
    json_read_uint(j, from, "observed_ns", &toll->stepper.observed);
    json_read_uint(j, from, "running_ns", &toll->stepper.running);
    json_read_uint(j, from, "ready_ns", &toll->stepper.ready);
}

/* Whatever of it there is: the head of somebody else's trace may hold anything. */
static void read_head(json_t *head, pki_toll *toll, pki_summary *out)
{
    complaint ignored = {""};
    json_reader j = {.why = &ignored};
    json_t *metadata = json_read_object(&j, head, "metadata");
    json_t *job = json_read_object(&j, head, "distributedInfo"); /* PyTorch's profiler writes it */
    out->run.complete = true;
    json_read_text(&j, metadata, "perfkit", &out->run.version);
    json_read_text(&j, metadata, "program", &out->run.program);
    json_read_text(&j, metadata, "host", &out->run.host);
    json_read_u32(&j, metadata, "pid", &out->run.pid);
    json_read_i32(&j, job, "rank", &out->run.rank);
    json_read_i32(&j, job, "world_size", &out->run.world_size);
    json_read_i32(&j, metadata, "rank", &out->run.rank);
    json_read_i32(&j, metadata, "world_size", &out->run.world_size);
    json_read_uint(&j, metadata, "start_unix_ns", &out->run.start_unix);
    json_read_bool(&j, metadata, "complete", &out->run.complete);
    read_clock(&j, json_read_object(&j, metadata, "clock"), &out->run);
    read_shape(&j, json_read_object(&j, metadata, "counts"), &pki_counts_shape, &out->counts);
    read_toll(&j, metadata, toll);
}

void rebuild_set_capture(rebuild *r, json_t *capture)
{
    r->capture = capture;
}

/* All of it or nothing. */
static void read_environment(json_t *from, pki_environment *out)
{
    complaint ignored = {""};
    json_reader j = {.why = &ignored};
    if (!json_is_object(from))
        return;
    read_shape(&j, from, &pki_environment_shape, out);
    if (!j.failed)
        return;
    pki_shape_finish(&pki_environment_shape, out);
    memset(out, 0, sizeof *out);
}

static uint64_t steps_of(const pki_step_summary *steps)
{
    uint64_t all = steps->count;
    for (size_t i = 0; i < steps->step_kind_count; i++)
        all += steps->step_kinds[i].time.count;
    return all;
}

/* What the events show at least; the head of a killed run's trace may be older than they are. */
static void raise_counts(const rebuild *r, pki_summary *out)
{
    pk_counts *c = &out->counts;
    c->size = sizeof *c;
    c->threads = PKI_MAX(c->threads, (uint32_t)out->thread_count);
    c->recorded = PKI_MAX(c->recorded, r->slices);
    c->begun = PKI_MAX(c->begun, c->recorded + c->dropped);
    c->written = r->slices + r->points;
    c->unbalanced = PKI_MAX(c->unbalanced, r->unbalanced);
    c->points = PKI_MAX(c->points, r->points);
    c->regions = PKI_MAX(c->regions, out->region_count);
    c->steps = PKI_MAX(c->steps, steps_of(&out->steps));
}

static void fill_run(const rebuild *r, json_t *head, bool whole, pki_toll *toll, pki_summary *out)
{
    read_head(head, toll, out);
    read_environment(json_object_get(r->capture, "environment"), &out->environment);
    if (!whole)
        out->run.complete = false;
    /* perfkit's times count from the session's start; others' from anywhere. */
    bool ours = out->run.version && out->run.version[0];
    out->run.wall = r->last - (ours ? 0 : PKI_MIN(r->first, r->last));
    out->run.source = memory_copy(whole ? "trace events" : "trace events (the file is cut off)");
    out->run.trace_path = memory_copy("");
    if (!out->run.program[0] && r->process) {
        free(out->run.program);
        out->run.program = memory_copy(r->process);
    }
}

static const char *name_of(void *user, uint32_t id)
{
    const rebuild *r = user;
    return id < r->names.count ? rebuild_name(r, id) : NULL;
}

/* What else the file holds. */
static const char *others_of(const rebuild *r)
{
    return r->mixed ? " It holds several processes of one pid, whose events cannot be told apart."
           : r->elsewhere ? " It holds several processes: this is the one whose first step comes"
                            " first."
                          : "";
}

/* A capture of a few steps: what is said of runs does not fit it. */
static bool is_too_short(const rebuild *r, const pki_summary *s)
{
    return r->capture && steps_of(&s->steps) < PKI_FEW_STEPS;
}

static void add_verdict(const rebuild *r, bool whole, pki_summary *out)
{
    char all[400];
    const char *text =
        is_too_short(r, out)
            ? "Made from the events of a capture. So few steps may say why one of them was slow; what"
              " the run is bound by is in the run's own report."
        : whole
            ? "Made from the events of the trace, which holds no report: calls that are not among"
              " the events are missing from counts and percentiles, too."
            : "The trace is cut off and holds no report: everything is made from the events that"
              " are left.";
    snprintf(all, sizeof all, "%s%s", text, others_of(r));
    memory_needed(pki_verdict_add(out, whole ? "rebuilt" : "trace-cut", whole ? PKI_NOTE : PKI_WARN,
                                  0, 0, all));
}

void rebuild_fill(rebuild *r, json_t *head, bool whole, pki_summary *out)
{
    pki_toll toll = {0};
    pki_summary_init(out);
    fill_regions(r, r->regions, r->region_room, &out->regions, &out->region_count);
    rebuild_fill_tree(r, out);
    fill_threads(r, out);
    fill_counters(r, out);
    memory_needed(pki_steps_fill(r->steps, 0, name_of, r, out));
    rebuild_fill_devices(r, out);
    rebuild_fill_comms(r, out);
    rebuild_fill_spans(r, out);
    fill_run(r, head, whole, &toll, out);
    raise_counts(r, out);
    if (r->capture) /* the head's are of the run so far */
        toll = (pki_toll){0};
    pki_overhead_fill(&toll, out);
    memory_needed(pki_whole_run_fill(out));
    rebuild_fill_limits(out);
    if (!is_too_short(r, out))
        memory_needed(pki_verdicts_fill(out));
    add_verdict(r, whole, out);
}
