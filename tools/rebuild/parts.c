/* tools/rebuild/parts.c - what a rebuilt run has beside its regions: devices, communicators, spans,
 * steps */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "comm/model/communicator.h"
#include "memory.h"
#include "rebuild/rebuild.h"

/* ---- communicators ---- */

/* What was done on communicators, as the session would have found
 * it (comm/figures/figures.h). */

static uint32_t comm_of(rebuild *r, const event_comm *c)
{
    char key[512];
    snprintf(key, sizeof key, "%.200s\x1f%.300s", c->library, c->name);
    if (r->comms.count >= PKI_COMMS_MAX && table_find(&r->comms, key) == TABLE_NONE)
        snprintf(key, sizeof key, "\x1f(too many communicators)");
    uint32_t id = table_add(&r->comms, key);
    memory_fit(&r->comm_facts, &r->comm_room, id + (size_t)1, sizeof *r->comm_facts);
    rebuilt_comm *facts = &r->comm_facts[id];
    facts->rank = c->rank;
    facts->size = (int32_t)PKI_MIN(c->ranks, (uint32_t)INT32_MAX);
    facts->last = PKI_MAX(facts->last, c->sequence);
    facts->under_way -= facts->under_way > 0 && c->sequence && c->sequence <= facts->enqueued;
    return id;
}

/* Regions are distinguished by their names alone. */
static uint32_t rebuild_launcher(rebuild *r, const event *e)
{
    const char *name = event_launcher(e);
    if (!name[0])
        return 0;
    if (r->launchers.count >= REBUILD_NAMES_MOST)
        return table_find(&r->launchers, name) + 1; /* TABLE_NONE + 1 is 0 */
    return table_add(&r->launchers, name) + 1;
}

static const char *rebuild_launcher_name(void *user, uint32_t id)
{
    const rebuild *r = user;
    return id && id <= r->launchers.count ? r->launchers.texts[id - 1] : NULL;
}

static pki_timed_operation read_operation(rebuild *r, const event *e)
{
    return (pki_timed_operation){.comm = comm_of(r, &e->comm),
                                 .ranks = e->comm.ranks,
                                 .region = rebuild_launcher(r, e),
                                 .op = pki_comm_op_named(e->comm.op),
                                 .bytes = e->bytes,
                                 .sequence = e->comm.sequence,
                                 .start = e->start - e->lacks,
                                 .end = e->end,
                                 .exposed = e->comm.exposed,
                                 .in_flight = e->comm.in_flight,
                                 .unrated = e->comm.unrated,
                                 .algorithm = e->comm.algorithm,
                                 .protocol = e->comm.protocol,
                                 .channels = e->comm.channels,
                                 .sharers = e->comm.calls * e->comm.sharers,
                                 .on_stream = e->comm.on_stream};
}

/* perfkit writes the two events of a pair one behind the other. */
static void end_operation(rebuild *r, const event *e)
{
    if (r->begun_id && r->begun_id == e->comm.id) {
        r->begun.end = e->start;
        pki_comm_figures_add(r->collectives, &r->begun);
        r->points++;
    }
    r->begun_id = 0;
}

void rebuild_comm(rebuild *r, const event *e)
{
    if (e->type == EVENT_COMM_END) {
        end_operation(r, e);
        return;
    }
    if (e->type == EVENT_COMM)
        rebuild_activity(r, e);
    if (!e->comm.op || e->comm.unfinished)
        return;
    pki_timed_operation op = read_operation(r, e);
    if (e->type == EVENT_COMM_BEGIN) {
        r->begun = op;
        r->begun.algorithm = r->begun.protocol = NULL; /* the event's */
        r->begun_id = e->comm.id;
    } else {
        if (e->type == EVENT_REGION) /* all of it is waited for */
            op.exposed = op.end - op.start;
        pki_comm_figures_add_calls(r->collectives, &op, e->comm.calls);
    }
}

void rebuild_progress(rebuild *r, const event *e)
{
    uint32_t id = comm_of(r, &e->comm);
    rebuilt_comm *c = &r->comm_facts[id];
    c->enqueued = PKI_MAX(c->enqueued, e->comm.enqueued);
    c->started = PKI_MAX(c->started, e->comm.started);
    c->completed = PKI_MAX(c->completed, e->comm.completed);
    c->under_way = e->comm.under_way;
}

static bool facts_of(void *user, uint32_t comm, pki_comm_facts *facts)
{
    const rebuild *r = user;
    if (comm >= r->comms.count)
        return false;
    const char *text = r->comms.texts[comm], *name = strchr(text, '\x1f');
    static _Thread_local char library[256]; /* until the next call */
    snprintf(library, sizeof library, "%.*s", (int)(name - text), text);
    const rebuilt_comm *c = &r->comm_facts[comm];
    *facts = (pki_comm_facts){.library = library,
                              .name = name + 1,
                              .rank = c->rank,
                              .size = c->size,
                              .enqueued = PKI_MAX(c->last, c->enqueued),
                              .started = PKI_MAX(c->last, c->started),
                              .completed = PKI_MAX(c->last, c->completed),
                              .under_way = c->under_way};
    return true;
}

void rebuild_fill_comms(rebuild *r, pki_summary *out)
{
    memory_needed(
        pki_comm_figures_build_rows(r->collectives, facts_of, rebuild_launcher_name, r, out));
}

/* ---- devices ---- */

/* What devices did, as the session would have found it
 * (measure/device/device.h). */

static uint32_t stream_of(rebuild *r, const event *e)
{
    uint32_t found = table_find(&r->streams, e->track);
    if (found == TABLE_NONE)
        found = r->streams.count < REBUILD_THREADS_MOST ? table_add(&r->streams, e->track)
                                                        : REBUILD_THREADS_MOST;
    return found + 1;
}

void rebuild_activity(rebuild *r, const event *e)
{
    pki_activity a = e->activity;
    r->activities++;
    a.region = rebuild_launcher(r, e);
    a.track = stream_of(r, e);
    r->first = PKI_MIN(r->first, e->start);
    r->last = PKI_MAX(r->last, e->end);
    if (pki_device_full(r->device))
        pki_device_make_room(r->device);
    pki_device_add(r->device, &a);
}

void rebuild_sample(rebuild *r, const event *e, double value)
{
    uint32_t device;
    if (pki_device_is_memory(e->name, &device))
        pki_device_memory(r->device, device, e->start, value);
}

/* ---- into the summary ---- */

/* Rows by name: those of a region's name, the first of them if it has several kinds. */
typedef struct row_index {
    table names;
    size_t room;
    uint32_t *rows; /* by name */
} row_index;

static void index_rows(row_index *index, const pki_summary *out)
{
    for (size_t i = 0; i < out->region_count; i++) {
        uint32_t known = index->names.count, id = table_add(&index->names, out->regions[i].name);
        memory_fit(&index->rows, &index->room, id + (size_t)1, sizeof *index->rows);
        if (id == known)
            index->rows[id] = (uint32_t)i;
    }
}

static pki_region_row *append_row(pki_summary *out, const char *name)
{
    out->regions = memory_resized(out->regions, (out->region_count + 1) * sizeof *out->regions);
    out->regions[out->region_count] = (pki_region_row){.name = memory_copy(name)};
    return &out->regions[out->region_count++];
}

static void fill_region(const rebuild *r, const row_index *index, uint32_t id, pki_summary *out)
{
    const char *name = r->launchers.texts[id - 1];
    uint32_t known = table_find(&index->names, name);
    pki_region_row *row =
        known == TABLE_NONE ? append_row(out, name) : &out->regions[index->rows[known]];
    row->gpu = pki_device_region_spans(r->device, id);
    row->kernels = pki_device_region_kernels(r->device, id);
}

static void fill_regions(const rebuild *r, pki_summary *out)
{
    row_index index = {0};
    index_rows(&index, out);
    for (uint32_t id = 1; id <= r->launchers.count; id++)
        if (pki_device_has_region(r->device, id))
            fill_region(r, &index, id, out);
    table_finish(&index.names);
    free(index.rows);
    pki_regions_sort(out->regions, out->region_count);
}

void rebuild_fill_devices(rebuild *r, pki_summary *out)
{
    pki_device_finalised(r->device, UINT64_MAX);
    out->activities.count = r->activities;
    if (r->launchers.count)
        fill_regions(r, out);
    memory_needed(pki_device_fill(r->device, out->steps.warmup, rebuild_launcher_name, r, out));
}

/* ---- pk_spans, from the pairs of events that they left ---- */

static void count(rebuild *r, uint32_t region, uint64_t ns)
{
    memory_needed(pki_tally_add(&r->regions[region].time, (double)ns, 1));
}

/* Where the end comes first in the file, what is kept of it is its moment. */
static void begin(rebuild *r, const pki_open_span *opened)
{
    uint64_t moment = pki_spans_begin(&r->async, opened);
    if (moment != UINT64_MAX)
        count(r, opened->name, moment - PKI_MIN(moment, opened->start));
}

static void end(rebuild *r, const pki_open_span *ended, uint64_t moment)
{
    const pki_open_span *open = pki_open_spans_find(&r->async.open, ended->serial);
    uint64_t start = open ? open->start : 0;
    if (pki_spans_end(&r->async, ended, moment, false) && start <= moment)
        count(r, ended->name, moment - start);
}

static void add_request(rebuild *r, const event *e)
{
    static const char *const outcomes[] = {"finished", "cancelled", "failed"};
    const char *said = object_text(e->args, "outcome");
    pki_request_done d = {.total = event_count(e, "total_ns"),
                          .queued = event_count(e, "queued_ns"),
                          .preempted = event_count(e, "preempted_ns"),
                          .ttft = event_count(e, "ttft_ns"),
                          .generated = event_count(e, "generated_ns"),
                          .reading = event_count(e, "reading_ns"),
                          .crowded = event_count(e, "crowded_ns"),
                          .behind = event_count(e, "behind_ns"),
                          .tokens = event_count(e, "tokens"),
                          .preemptions = event_count(e, "preemptions"),
                          .first_step = event_count(e, "first_step"),
                          .steps = event_count(e, "steps"),
                          .outcome = PK_REQUEST_FAILED,
                          .good = event_count(e, "good") > 0};
    for (uint32_t i = 0; i < PKI_COUNT_OF(outcomes); i++)
        d.outcome = strcmp(said, outcomes[i]) == 0 ? i : d.outcome;
    pki_requests_add(&r->requests, &d, rebuild_region(r, e), (uint32_t)e->span, e->start);
}

void rebuild_span(rebuild *r, const event *e)
{
    uint32_t region = rebuild_region(r, e);
    const pki_open_span it = {
        .start = e->start, .serial = (uint32_t)e->span, .name = region, .state = PKI_SPAN_OPEN};
    r->last = PKI_MAX(r->last, e->start);
    r->first = PKI_MIN(r->first, e->start);
    r->points++;
    if (e->type == EVENT_SPAN_BEGIN) {
        begin(r, &it);
    } else if (e->type == EVENT_SPAN_END) {
        end(r, &it, e->start);
    } else if (e->type == EVENT_REQUEST) {
        add_request(r, e);
    } else {
        pki_spans_mark(&r->async, region);
        count(r, region, e->since);
    }
}

void rebuild_fill_spans(const rebuild *r, pki_summary *out)
{
    const pki_span_figures *all = &r->async.all;
    out->spans = (pki_span_summary){.begun = all->begun,
                                    .ended = all->ended,
                                    .unfinished = all->begun - PKI_MIN(all->begun, all->ended),
                                    .marks = all->marks,
                                    .ended_twice = r->async.open.ended};
    out->spans.events = all->begun + all->marks + r->async.open.ended;
    if (r->requests.slowest_count) /* the limits are not in the trace */
        memory_needed(pki_requests_fill(&r->requests, 0, 0, 0, &out->requests));
}

/* ---- what the stepping thread's time in each step went to ---- */

/* Slices arrive when they end. So when a step ends, the slices that ended in it are known; a slice
 * that straddles its end arrives later. Steps stay open for what still belongs to them until
 * REBUILD_WINDOW more have ended. */

#define RECENT_MOST 65536

static void add_part(own *o, uint32_t region, uint64_t ns)
{
    memory_fit(&o->ns, &o->count, region + (size_t)1, sizeof *o->ns);
    o->ns[region] += ns;
}

/* How much of the part lies between start and end, if it is spread evenly. */
static uint64_t within(const own_span *part, uint64_t start, uint64_t end)
{
    uint64_t from = PKI_MAX(part->start, start), to = PKI_MIN(part->end, end);
    uint64_t length = part->end - part->start;
    if (to <= from)
        return 0;
    if (part->ns == length)
        return to - from;
    return (uint64_t)((double)part->ns * ((double)(to - from) / (double)length));
}

static void add_overlap(open_step *step, const own_span *part)
{
    uint64_t start = step->step.start;
    uint64_t ns = within(part, start, start + step->step.duration);
    if (ns)
        add_part(&step->parts, part->region, ns);
}

/* What of the part comes after this moment; ns 0 if nothing does. */
static own_span after(const own_span *part, uint64_t moment)
{
    uint64_t start = PKI_MAX(part->start, moment);
    return (own_span){start, part->end, within(part, start, part->end), part->region};
}

/* Very many slices since the last step: they will all lie in the next. */
static void fold_recent(rebuild *r)
{
    for (size_t i = 0; i < r->recent_count; i++)
        add_part(&r->folded, r->recent[i].region, r->recent[i].ns);
    r->recent_count = 0;
}

static void add_recent(rebuild *r, own_span part)
{
    if (!r->recent)
        r->recent = memory_zeroed(RECENT_MOST, sizeof *r->recent);
    if (r->recent_count == RECENT_MOST)
        fold_recent(r);
    r->recent[r->recent_count++] = part;
}

void rebuild_own(rebuild *r, own_span part)
{
    for (size_t i = 0; i < r->open_count; i++)
        add_overlap(&r->open[i], &part);
    part = after(&part, r->steps_end);
    if (part.ns)
        add_recent(r, part);
}

static void close_oldest(rebuild *r)
{
    open_step *oldest = &r->open[0];
    for (uint32_t i = 0; i < oldest->parts.count; i++)
        if (oldest->parts.ns[i])
            pki_steps_add_self(r->steps, i, rebuild_kind(r, i), oldest->parts.ns[i]);
    pki_steps_add(r->steps, &oldest->step);
    free(oldest->parts.ns);
    memmove(r->open, r->open + 1, --r->open_count * sizeof *r->open);
}

/* What was recent is in the step, as far as it overlaps with it. */
static void move_recent(rebuild *r, open_step *step, uint64_t end)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->recent_count; i++) {
        own_span left = after(&r->recent[i], end);
        add_overlap(step, &r->recent[i]);
        if (left.ns)
            r->recent[kept++] = left;
    }
    r->recent_count = kept;
    for (uint32_t i = 0; i < r->folded.count; i++)
        if (r->folded.ns[i])
            add_part(&step->parts, i, r->folded.ns[i]);
    if (r->folded.count)
        memset(r->folded.ns, 0, r->folded.count * sizeof *r->folded.ns);
}

static const char *kind_of(const rebuild *r, const span *step)
{
    bool usual = !step->step_kind || step->step_kind == REBUILD_BETWEEN;
    return usual ? NULL : r->step_kinds.texts[step->step_kind - 1];
}

void rebuild_step(rebuild *r, const span *step)
{
    if (r->open_count == REBUILD_WINDOW)
        close_oldest(r);
    open_step *open = &r->open[r->open_count++];
    *open =
        (open_step){.step = {.index = step->flops,
                             .start = step->start,
                             .duration = step->end - step->start,
                             .items = step->bytes,
                             .work = pki_step_work_of(step->end - step->start, (double)step->model,
                                                      (double)step->hardware),
                             .kind = kind_of(r, step),
                             .between = step->step_kind == REBUILD_BETWEEN,
                             .broken_down = step->thread == r->stepper}};
    pki_device_step(r->device, &open->step);
    if (!open->step.between)
        pki_comm_figures_step(r->collectives, step->flops, step->start, step->end);
    move_recent(r, open, step->end);
    r->steps_end = PKI_MAX(r->steps_end, step->end);
}

void rebuild_close_steps(rebuild *r)
{
    while (r->open_count)
        close_oldest(r);
}

void rebuild_free_steps(rebuild *r)
{
    for (size_t i = 0; i < r->open_count; i++)
        free(r->open[i].parts.ns);
    free(r->recent);
    free(r->folded.ns);
    pki_steps_destroy(r->steps);
}

/* ---- the call tree as rows of the summary ---- */

/* Of very many paths those that took least are one row among their neighbours. */
#define ROWS_MOST 10000
#define OTHERS "(others)"

typedef struct flattening {
    const rebuild *r;
    pki_summary *out;
    size_t room;
    uint64_t least; /* what a node has to take for a row of its own */
    size_t count;
    uint64_t *times;
} flattening;

static bool note_time(void *user, const tree_node *node, uint32_t depth)
{
    flattening *f = user;
    (void)depth;
    memory_fit(&f->times, &f->room, f->count + 1, sizeof *f->times);
    f->times[f->count++] = node->time;
    return true;
}

static int most_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static uint64_t least_of(const rebuild *r, uint32_t list)
{
    flattening f = {.r = r};
    tree_walk(&r->tree, list, note_time, &f);
    uint64_t least = 0;
    if (f.count > ROWS_MOST) {
        qsort(f.times, f.count, sizeof *f.times, most_first);
        least = f.times[ROWS_MOST];
    }
    free(f.times);
    return least;
}

/* The row of what takes too little for one: it is the last one, if it is at that depth. */
static pki_tree_row *others_at(flattening *f, uint32_t depth)
{
    pki_tree_row *last = f->out->tree_count ? &f->out->tree[f->out->tree_count - 1] : NULL;
    if (last && last->depth == depth && last->kind == PKI_UNTRACKED)
        return last;
    memory_fit(&f->out->tree, &f->room, f->out->tree_count + 1, sizeof *f->out->tree);
    last = &f->out->tree[f->out->tree_count++];
    *last = (pki_tree_row){memory_copy(OTHERS), PKI_UNTRACKED, depth, 0, 0, 0};
    return last;
}

/* Neighbours come by their time, so what is too little comes last. */
static bool add_row(void *user, const tree_node *node, uint32_t depth)
{
    flattening *f = user;
    bool alone = node->time > f->least || f->least == 0;
    pki_tree_row *row = others_at(f, depth);
    if (alone) {
        free(row->name);
        *row = (pki_tree_row){memory_copy(rebuild_name(f->r, node->name)),
                              rebuild_kind(f->r, node->name),
                              depth,
                              0,
                              0,
                              0};
    }
    row->calls += node->calls;
    row->time += node->time;
    row->self += alone ? node->self : node->time;
    return alone;
}

void rebuild_fill_tree(rebuild *r, pki_summary *out)
{
    if (!r->wants_tree)
        return;
    uint32_t list = tree_finish(&r->tree);
    flattening f = {.r = r, .out = out, .least = least_of(r, list)};
    tree_walk(&r->tree, list, add_row, &f);
    for (size_t i = 0; i < out->tree_count; i++)
        if (out->tree[i].kind == PKI_UNTRACKED)
            out->tree[i].kind = PK_OTHER;
}
