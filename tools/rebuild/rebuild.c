#include "rebuild/rebuild.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/tuning.h"
#include "measure/machine/roofline.h"
#include "measure/overhead.h"
#include "measure/verdict/verdict.h"
#include "measure/whole_run.h"
#include "memory.h"
#include "stats/series.h"

/* ---- which of the processes in a file an event is of ---- */

/* A track's process, by what stands before its "/". */
static uint32_t rebuild_process_of(table *processes, const char *track)
{
    char pid[EVENT_TRACK];
    snprintf(pid, sizeof pid, "%.*s", (int)strcspn(track, "/"), track);
    return table_add(processes, pid);
}

/* The process of this thread makes steps. */
static void rebuild_steps(rebuild *r, uint32_t thread)
{
    uint32_t process = r->threads[thread].process;
    memory_fit(&r->stepping, &r->stepping_room, process + (size_t)1, sizeof *r->stepping);
    r->stepping[process] = 1;
}

static bool has_steps(const rebuild *r, uint32_t process)
{
    return process < r->stepping_room && r->stepping[process];
}

/* In a file that somebody has put together of several processes' there is a loop for each: a report
 * is of one of them. What has no steps may be the same one's under another number. */
static bool is_another(const rebuild *r, uint32_t process)
{
    return r->stepper != TABLE_NONE && process != r->threads[r->stepper].process &&
           has_steps(r, process);
}

static bool rebuild_is_elsewhere(const rebuild *r, uint32_t thread)
{
    return is_another(r, r->threads[thread].process);
}

static bool rebuild_is_of_another(const rebuild *r, const event *e)
{
    char pid[EVENT_TRACK];
    if (r->processes.count < 2)
        return false;
    snprintf(pid, sizeof pid, "%.*s", (int)strcspn(e->track, "/"), e->track);
    return is_another(r, table_find(&r->processes, pid));
}

static bool rebuild_is_named_twice(rebuild *r, const event *e)
{
    uint32_t known = r->announced.count;
    return rebuild_process_of(&r->announced, e->track) < known;
}

/* ---- a trace's regions beside the limits of the machine that it is from ---- */

/* Who worked when, and that beside the machine's limits. */
static void rebuild_work(rebuild *r, const span *s)
{
    rebuilt_thread *t = &r->threads[s->thread];
    if (!s->bytes && !s->flops)
        return;
    memory_fit(&t->work, &t->work_room, s->region + (size_t)1, sizeof *t->work);
    t->work[s->region] += s->end - s->start;
}

static double rebuild_threads(const rebuild *r, uint32_t region)
{
    uint64_t sum = 0, most = 0;
    for (uint32_t i = 0; i < r->tracks.count; i++) {
        const rebuilt_thread *t = &r->threads[i];
        uint64_t ns = region < t->work_room ? t->work[region] : 0;
        sum += ns;
        most = PKI_MAX(most, ns);
    }
    return most ? (double)sum / (double)most : 0;
}

/* The file of the host that the trace names, wherever this is read; or the one that the user does.
 */
static bool find_machine(const char *host, pki_machine *m, char why[300])
{
    char path[PATH_MAX];
    snprintf(why, 300, "there is no file of it here");
    if (pki_tuning_of_environment(PKI_TUNING_MACHINE_PATH, path, sizeof path))
        return strcmp(path, "none") != 0 && pki_machine_read(path, m, why, 300);
    if (!host || !host[0] || !pki_machine_path(host, path) || !pki_machine_read(path, m, why, 300))
        return false;
    snprintf(why, 300, "its file is another host's");
    return strcmp(m->host, host) == 0;
}

/* Which processors the process might use, and which device it was, is not in the trace. */
static void fill_utilisation(const pki_machine *m, const char *why, pki_summary *out)
{
    pki_peak peak;
    pki_peak_wish wish = {.flops = 0};
    char wanted[64];
    if (pki_tuning_of_environment(PKI_TUNING_PEAK, wanted, sizeof wanted) &&
        !pki_peak_parse(wanted, &wish))
        memset(&wish, 0, sizeof wish);
    const pki_peak_place place = {.machine = m,
                                  .no_machine = why,
                                  .gpu = out->environment.gpu ? out->environment.gpu : "",
                                  .gpus = out->gpu_count,
                                  .processors = m ? m->processors : 0};
    pki_peak_find(&wish, &place, &peak);
    memory_needed(pki_utilisation_fill(&out->steps.utilisation, &peak));
}

static void rebuild_fill_limits(pki_summary *out)
{
    pki_machine m;
    char why[300];
    bool placed = pki_roofline_wanted(out), works = out->steps.utilisation.steps;
    bool known = (placed || works) && find_machine(out->run.host, &m, why);
    if (placed && known)
        memory_needed(pki_roofline_fill(&m, out));
    if (works)
        fill_utilisation(known ? &m : NULL, why, out);
}

/* ---- from what was rebuilt to a summary ---- */

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

static void replace(char **text, const char *by)
{
    free(*text);
    *text = memory_copy(by);
}

/* Whatever of it there is: the head of somebody else's trace may hold anything. */
static void take_head(const trace_about *a, pki_summary *out)
{
    pki_run *run = &out->run;
    replace(&run->version, a->run.version);
    replace(&run->program, a->run.program);
    replace(&run->host, a->run.host);
    replace(&run->clock, a->run.clock);
    run->pid = a->run.pid;
    run->rank = a->run.rank;
    run->world_size = a->run.world_size;
    run->start_unix = a->run.start_unix;
    run->complete = a->run.complete;
    run->clock_hz = a->run.clock_hz;
    run->clock_step_ns = a->run.clock_step_ns;
    run->clock_uncertainty_ns = a->run.clock_uncertainty_ns;
    run->clock_ppm = a->run.clock_ppm;
    out->counts = a->counts;
}

void rebuild_set_capture(rebuild *r, const pki_environment *environment)
{
    r->capture = true;
    r->environment = *environment;
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

static void fill_run(const rebuild *r, const trace_about *about, bool whole, pki_summary *out)
{
    take_head(about, out);
    out->environment = r->environment;
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

static void rebuild_fill(rebuild *r, const trace_about *about, bool whole, pki_summary *out)
{
    pki_toll toll = about->toll;
    pki_summary_init(out);
    fill_regions(r, r->regions, r->region_room, &out->regions, &out->region_count);
    rebuild_fill_tree(r, out);
    fill_threads(r, out);
    fill_counters(r, out);
    memory_needed(pki_steps_fill(r->steps, 0, name_of, r, out));
    rebuild_fill_devices(r, out);
    rebuild_fill_comms(r, out);
    rebuild_fill_spans(r, out);
    fill_run(r, about, whole, out);
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

/* ---- rebuild ---- */

#define ACTIVITIES_MOST (1u << 24) /* 32 bytes each; beyond it, those of a step's end are off */
#define NAME_MOST 1000             /* bytes of a name that tell it from others */
#define INNER_MOST 65536           /* per thread; beyond it, neighbours are joined */

rebuild *rebuild_create(bool sort, bool per_thread)
{
    rebuild *r = memory_zeroed(1, sizeof *r);
    r->sort = sort;
    r->per_thread = per_thread;
    r->stepper = TABLE_NONE;
    r->first = UINT64_MAX;
    r->steps = pki_steps_create();
    r->device = pki_device_create(ACTIVITIES_MOST);
    r->collectives = pki_comm_figures_create();
    memory_needed(r->steps && r->device && r->collectives);
    return r;
}

void rebuild_want_tree(rebuild *r)
{
    r->wants_tree = true;
}

static void free_regions(rebuilt_region *regions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pki_tally_finish(&regions[i].time);
    free(regions);
}

void rebuild_destroy(rebuild *r)
{
    for (size_t i = 0; i < r->thread_room; i++) {
        free(r->threads[i].name);
        free(r->threads[i].inner.waiting);
        free(r->threads[i].work);
        free_regions(r->threads[i].regions, r->threads[i].region_room);
    }
    for (size_t i = 0; i < r->counter_room; i++) {
        pki_tally_finish(&r->values[i].value);
        pki_series_finish(&r->values[i].timeline.parts);
    }
    free_regions(r->regions, r->region_room);
    free(r->threads);
    free(r->values);
    free(r->spans);
    free(r->process);
    tree_free(&r->tree);
    table_finish(&r->names);
    table_finish(&r->tracks);
    table_finish(&r->processes);
    table_finish(&r->announced);
    free(r->stepping);
    table_finish(&r->counters);
    pki_comm_figures_destroy(r->collectives);
    pki_spans_finish_counter(&r->async);
    table_finish(&r->comms);
    free(r->comm_facts);
    table_finish(&r->launchers);
    table_finish(&r->streams);
    table_finish(&r->step_kinds);
    pki_device_destroy(r->device);
    rebuild_free_steps(r);
    free(r);
}

uint32_t rebuild_kind(const rebuild *r, uint32_t region)
{
    return (uint32_t)(r->names.texts[region][0] - '0');
}

const char *rebuild_name(const rebuild *r, uint32_t region)
{
    return r->names.texts[region] + 1;
}

/* ---- who and what ---- */

uint32_t rebuild_region(rebuild *r, const event *e)
{
    char key[1024];
    const char *name = e->name[0] ? e->name : "(unnamed)";
    size_t length = strnlen(name, NAME_MOST);
    key[0] = (char)('0' + e->kind);
    memcpy(key + 1, name, length);
    key[1 + length] = '\0';
    if (r->names.count >= REBUILD_NAMES_MOST && table_find(&r->names, key) == TABLE_NONE)
        snprintf(key, sizeof key, "0(too many names)");
    uint32_t id = table_add(&r->names, key);
    memory_fit(&r->regions, &r->region_room, id + (size_t)1, sizeof *r->regions);
    return id;
}

static uint32_t thread_of(rebuild *r, const char *track, uint32_t tid)
{
    uint32_t known = r->tracks.count;
    if (r->tracks.count >= REBUILD_THREADS_MOST && table_find(&r->tracks, track) == TABLE_NONE)
        track = "others";
    uint32_t id = table_add(&r->tracks, track);
    memory_fit(&r->threads, &r->thread_room, id + (size_t)1, sizeof *r->threads);
    if (id == known)
        r->threads[id].process = rebuild_process_of(&r->processes, track);
    if (tid)
        r->threads[id].tid = tid;
    return id;
}

void rebuild_expect_steps(rebuild *r, const char *track)
{
    uint32_t thread = thread_of(r, track, 0);
    if (r->stepper == TABLE_NONE)
        r->stepper = thread;
    rebuild_steps(r, thread);
}

/* ---- self times ---- */

static nest_slice joined(const nest_slice *a, const nest_slice *b)
{
    nest_slice both = {a->start, PKI_MAX(a->end, b->end), a->value + b->value};
    both.value = PKI_MIN(both.value, both.end - both.start);
    return both;
}

/* Of the older ones: what lies in a slice that has not ended yet is among the last. One that begins
 * in the middle of what is joined here will be off by a part of it. */
static void join_neighbours(nest *n)
{
    enum { OLDER = INNER_MOST / 4 * 3 };
    for (size_t i = 0; i < OLDER / 2; i++)
        n->waiting[i] = joined(&n->waiting[2 * i], &n->waiting[2 * i + 1]);
    memmove(&n->waiting[OLDER / 2], &n->waiting[OLDER], (n->count - OLDER) * sizeof *n->waiting);
    n->count -= OLDER / 2;
}

static void add_gap(rebuild *r, const span *s, uint64_t start, uint64_t end)
{
    if (end > start)
        rebuild_own(r, (own_span){start, end, end - start, s->region});
}

/* The parts of the slice that those inside it, the thread's from the first one on, do not cover. */
static void add_own(rebuild *r, const span *s, const nest *n, size_t first)
{
    uint64_t at = s->start;
    for (size_t i = first; i < n->count; i++) {
        nest_slice c = n->waiting[i];
        uint64_t gaps = c.end - c.start - c.value; /* among those that were joined */
        add_gap(r, s, at, c.start);
        if (gaps)
            rebuild_own(r, (own_span){c.start, c.end, gaps, s->region});
        at = PKI_MAX(at, c.end);
    }
    add_gap(r, s, at, s->end);
}

static void count_region(rebuilt_region *region, const span *s, uint64_t self)
{
    region->self += self;
    region->bytes += s->bytes;
    region->flops += s->flops;
    memory_needed(pki_tally_add(&region->time, (double)(s->end - s->start), 1));
}

static void feed_slice(rebuild *r, const span *s)
{
    rebuilt_thread *t = &r->threads[s->thread];
    uint64_t duration = s->end - s->start, covered = 0;
    size_t inside = nest_inside(&t->inner, s->start);
    for (size_t i = inside; i < t->inner.count; i++)
        covered += t->inner.waiting[i].value;
    uint64_t self = duration - PKI_MIN(duration, covered);
    if (s->thread == r->stepper)
        add_own(r, s, &t->inner, inside);
    t->recorded++;
    t->kinds[rebuild_kind(r, s->region)] += self;
    t->last_end = PKI_MAX(t->last_end, s->end);
    count_region(&r->regions[s->region], s, self);
    rebuild_work(r, s);
    if (r->per_thread) {
        memory_fit(&t->regions, &t->region_room, s->region + (size_t)1, sizeof *t->regions);
        count_region(&t->regions[s->region], s, self);
    }
    if (r->wants_tree)
        tree_call(&r->tree, s->thread, s->region, s->start, s->end);
    if (inside == INNER_MOST) {
        join_neighbours(&t->inner);
        inside = t->inner.count;
    }
    nest_add(&t->inner, inside, (nest_slice){s->start, s->end, duration});
}

/* ---- order ---- */

static void feed_span(rebuild *r, const span *s)
{
    if (rebuild_is_elsewhere(r, s->thread))
        r->elsewhere++;
    else if (s->region == TABLE_NONE)
        rebuild_step(r, s);
    else
        feed_slice(r, s);
}

static void append_span(rebuild *r, const span *s)
{
    memory_fit(&r->spans, &r->span_room, r->span_count + 1, sizeof *r->spans);
    r->spans[r->span_count++] = *s;
}

static int inner_first(const void *a, const void *b)
{
    const span *x = a, *y = b;
    int order = nest_order(x->start, x->end, y->start, y->end);
    return order ? order : y->moved - x->moved;
}

static void add_span(rebuild *r, const span *s)
{
    uint64_t before = s->region == TABLE_NONE ? r->steps_end : r->threads[s->thread].last_end;
    r->first = PKI_MIN(r->first, s->start);
    r->last = PKI_MAX(r->last, s->end);
    if (r->sort) {
        append_span(r, s);
        return;
    }
    /* Whether another process has steps is known in the end. */
    bool other =
        r->stepper != TABLE_NONE && r->threads[s->thread].process != r->threads[r->stepper].process;
    r->disordered |= s->end < before || other;
    feed_span(r, s);
}

bool rebuild_needs_sorting(const rebuild *r)
{
    return r->disordered;
}

/* ---- events ---- */

static void find_thread_and_region(rebuild *r, const event *e, span *s)
{
    rebuilt_line *k = &r->lines[e->line % REBUILD_LINES];
    if (!e->line || k->line != e->line)
        *k = (rebuilt_line){e->line, rebuild_region(r, e), thread_of(r, e->track, e->tid)};
    s->thread = k->thread;
    s->region = k->region;
}

static void add_slice(rebuild *r, const event *e)
{
    span s = {e->start - e->lacks, e->end, e->bytes, e->flops, .moved = (uint8_t)e->lacks};
    find_thread_and_region(r, e, &s);
    r->slices++;
    r->unbalanced += e->unbalanced && !e->cut_off;
    add_span(r, &s);
}

static uint32_t step_kind_of(rebuild *r, const event *e)
{
    if (e->type == EVENT_BETWEEN)
        return REBUILD_BETWEEN;
    if (!e->step_kind || !e->step_kind[0])
        return 0;
    bool fits = r->step_kinds.count < REBUILD_NAMES_MOST ||
                table_find(&r->step_kinds, e->step_kind) != TABLE_NONE;
    return table_add(&r->step_kinds, fits ? e->step_kind : "(too many names)") + 1;
}

static void add_step(rebuild *r, const event *e)
{
    span s = {.start = e->start, .end = e->end, .bytes = e->items, .flops = e->index};
    s.model = (float)e->model;
    s.hardware = (float)e->hardware;
    s.region = TABLE_NONE;
    s.thread = thread_of(r, e->stepper, 0);
    s.step_kind = step_kind_of(r, e);
    rebuild_steps(r, s.thread);
    if (r->stepper == TABLE_NONE)
        r->stepper = s.thread;
    r->points++;
    add_span(r, &s);
}

/* Of so many counters one is seen over the run: 10 KiB each. */
#define TIMELINES_MOST 1024

static void add_counter(rebuild *r, const event *e)
{
    const char *unit;
    double number;
    object_cursor at = {0};
    while (event_next_sample(e, &at, &unit, &number)) {
        char key[1024];
        snprintf(key, sizeof key, "%.700s\x1f%.200s", e->name, unit);
        if (r->counters.count >= REBUILD_NAMES_MOST && table_find(&r->counters, key) == TABLE_NONE)
            continue;
        uint32_t id = table_add(&r->counters, key);
        memory_fit(&r->values, &r->counter_room, id + (size_t)1, sizeof *r->values);
        rebuilt_counter *c = &r->values[id];
        memory_needed(pki_tally_add(&c->value, number, 1));
        if (id < TIMELINES_MOST)
            memory_needed(pki_timeline_add(&c->timeline, e->start, number));
        c->last = number;
        rebuild_sample(r, e, number);
        r->points++;
    }
}

static void name_thread(rebuild *r, const event *e)
{
    uint32_t id = thread_of(r, e->track, e->tid);
    free(r->threads[id].name);
    r->threads[id].name = memory_copy(e->name);
}

/* What counts only if it is of the process that the report is of. */
static void add_own_event(rebuild *r, const event *e)
{
    if (rebuild_is_of_another(r, e))
        return;
    if (e->type == EVENT_COUNTER)
        add_counter(r, e);
    else if (e->type == EVENT_SPAN_BEGIN || e->type == EVENT_SPAN_MARK ||
             e->type == EVENT_SPAN_END || e->type == EVENT_REQUEST)
        rebuild_span(r, e);
    else
        rebuild_comm(r, e);
}

void rebuild_next_file(rebuild *r)
{
    memset(r->lines, 0, sizeof r->lines);
}

void rebuild_event(rebuild *r, const event *e)
{
    switch (e->type) {
    case EVENT_REGION:
        add_slice(r, e);
        if (e->comm.op)
            add_own_event(r, e);
        break;
    case EVENT_COMM_BEGIN:
    case EVENT_COMM_END:
    case EVENT_COMM:
    case EVENT_COUNTER:
    case EVENT_SPAN_BEGIN:
    case EVENT_SPAN_MARK:
    case EVENT_SPAN_END:
    case EVENT_REQUEST:
        add_own_event(r, e);
        break;
    case EVENT_STEP:
    case EVENT_BETWEEN:
        add_step(r, e);
        break;
    case EVENT_THREAD_NAME:
        name_thread(r, e);
        break;
    case EVENT_PROCESS_NAME:
        r->mixed |= rebuild_is_named_twice(r, e);
        r->process = r->process ? r->process : memory_copy(e->name);
        break;
    case EVENT_MARK:
        r->points++;
        break;
    case EVENT_ACTIVITY:
        rebuild_activity(r, e);
        break;
    case EVENT_PROGRESS:
        rebuild_progress(r, e);
        break;
    case EVENT_MEASURES:
        pki_device_measures(r->device, e->start, e->on);
        break;
    default:
        break;
    }
}

void rebuild_finish(rebuild *r, const trace_about *about, bool whole, pki_summary *out)
{
    if (r->span_count)
        qsort(r->spans, r->span_count, sizeof *r->spans, inner_first);
    for (size_t i = 0; i < r->span_count; i++)
        feed_span(r, &r->spans[i]);
    rebuild_close_steps(r);
    rebuild_fill(r, about, whole, out);
}
