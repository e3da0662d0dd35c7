#include "rebuild/state.h"

#include "base/compiler.h"
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void rebuild_finish(rebuild *r, json_t *head, bool whole, pki_summary *out)
{
    if (r->span_count)
        qsort(r->spans, r->span_count, sizeof *r->spans, inner_first);
    for (size_t i = 0; i < r->span_count; i++)
        feed_span(r, &r->spans[i]);
    rebuild_close_steps(r);
    rebuild_fill(r, head, whole, out);
}
