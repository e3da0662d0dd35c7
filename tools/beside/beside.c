#include "beside/beside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "base/compiler.h"
#include "beside/causes.h"
#include "beside/stacks.h"
#include "memory.h"
#include "out/chrome/events.h"
#include "rebuild/rebuild.h"

/* ---- which step, and beside which ---- */

static uint64_t duration_of(const step_seen *s)
{
    return s->end - s->start;
}

static step_seen *find_step(slices *s, uint64_t index)
{
    for (size_t i = 0; i < s->step_count; i++)
        if (s->steps[i].index == index)
            return &s->steps[i];
    return NULL;
}

/* Of a run the first steps are slow for reasons of their own. */
static step_seen *longest(slices *s, uint64_t warmup)
{
    step_seen *found = NULL;
    uint64_t first = s->step_count ? s->steps[0].index : 0;
    for (size_t i = 0; i < s->step_count; i++) {
        step_seen *at = &s->steps[i];
        bool counts = at->kind == 0 && at->index - first >= warmup;
        if (counts && (!found || duration_of(at) > duration_of(found)))
            found = at;
    }
    return found;
}

static step_seen *the_step(slices *s, const pki_summary *in)
{
    const pki_capture *c = &in->capture;
    step_seen *found = c->captured && c->slow ? find_step(s, c->slow_step) : NULL;
    if (!found)
        found = longest(s, c->captured ? 0 : in->steps.warmup);
    return found || !s->step_count ? found : &s->steps[s->step_count - 1];
}

/* ---- the usual ones ---- */

static double median_of(uint64_t *all, size_t count)
{
    if (count == 0)
        return 0;
    qsort(all, count, sizeof *all, pki_compare_u64);
    return ((double)all[(count - 1) / 2] + (double)all[count / 2]) / 2;
}

static bool is_like(const step_seen *a, const step_seen *b, bool same_kind)
{
    return a != b && (!same_kind || a->kind == b->kind);
}

/* The median of the steps like it: a capture was given it, of more steps than it has. */
static double like_it(const slices *s, const step_seen *step, const pki_capture *c, bool same_kind)
{
    if (c->captured && c->median && same_kind && step->index == c->slow_step)
        return (double)c->median;
    uint64_t *took = memory_zeroed(s->step_count, sizeof *took);
    size_t count = 0;
    for (size_t i = 0; i < s->step_count; i++)
        if (is_like(&s->steps[i], step, same_kind))
            took[count++] = duration_of(&s->steps[i]);
    double median = median_of(took, count);
    free(took);
    return median;
}

/* Outwards from the step, so those next to it come first. */
static size_t mark_usual(slices *s, const step_seen *step, double median, bool same_kind)
{
    size_t at = (size_t)(step - s->steps), count = 0;
    double below = (median + (double)duration_of(step)) / 2;
    for (size_t far = 1; far <= s->step_count && count < BESIDE_USUAL_MOST; far++)
        for (int side = 0; side < 2; side++) {
            size_t i = side ? at + far : at - far;
            if ((side ? i >= s->step_count : far > at) || count == BESIDE_USUAL_MOST ||
                !is_like(&s->steps[i], step, same_kind) ||
                (double)duration_of(&s->steps[i]) > below)
                continue;
            s->steps[i].wanted = true;
            count++;
        }
    return count;
}

static void describe(const slices *s, const step_seen *step, pki_beside *out)
{
    uint64_t took[BESIDE_USUAL_MOST];
    size_t count = 0;
    double nearest = 0;
    for (size_t i = 0; i < s->step_count; i++)
        if (s->steps[i].wanted && &s->steps[i] != step)
            took[count++] = duration_of(&s->steps[i]);
    out->usual_count = count;
    out->usual = median_of(took, count);
    for (size_t i = 0, seen = 0; i < s->step_count; i++) {
        if (!s->steps[i].wanted || &s->steps[i] == step)
            continue;
        double off = (double)duration_of(&s->steps[i]) - out->usual;
        off = off < 0 ? -off : off;
        if (seen++ == 0 || off < nearest) {
            nearest = off;
            out->usual_step = s->steps[i].index;
        }
    }
}

/* The step, or NULL; and which others are usual, marked as wanted. */
static step_seen *beside_choose(slices *s, const pki_summary *in, pki_beside *out)
{
    step_seen *step = the_step(s, in);
    if (!step)
        return NULL;
    out->same_kind = true;
    size_t usual = mark_usual(s, step, like_it(s, step, &in->capture, true), true);
    if (usual == 0) {
        out->same_kind = false;
        mark_usual(s, step, like_it(s, step, &in->capture, false), false);
    }
    step->wanted = true;
    out->step = step->index;
    out->took = duration_of(step);
    describe(s, step, out);
    return step;
}

/* ---- what the process read and wrote in a step, beside usual ones ---- */

/* ns, between a reading and the end of its step: what corrections of the clock leave. */
#define NEAR 1000u
#define VALUE_MOST 0x1p62

/* What a step has done more than usual ones is said of it from here on. */
#define BYTES_TELLING 1e6
#define BYTES_RATIO 1.5
#define CALLS_TELLING 1000
#define CALLS_RATIO 2

enum { CALLS = 4, STEPS = 5 };
static const char *const names[FILES_COUNTERS] = {
    "io.read", "io.written", "io.device_read", "io.device_written", "io.operations", "io.steps"};

/* The step that ends there; NULL: none does, or it is not wanted. */
static const step_seen *ended_at(const slices *s, uint64_t at)
{
    size_t low = 0, high = s->step_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->steps[middle].end > at + NEAR)
            high = middle;
        else
            low = middle + 1;
    }
    const step_seen *last = low ? &s->steps[low - 1] : NULL;
    return last && last->wanted && last->end + NEAR >= at ? last : NULL;
}

static void add(slices *s, const files_reading *r)
{
    const step_seen *step = ended_at(s, r->at);
    if (!step || r->values[STEPS] < 1 || r->values[STEPS] > (double)step->index + 1)
        return;
    memory_fit(&s->readings, &s->reading_room, s->reading_count + 1, sizeof *s->readings);
    s->readings[s->reading_count] = *r;
    s->readings[s->reading_count++].step = step->index;
}

void files_add(slices *s, const event *e)
{
    object_cursor at = {0};
    const char *unit;
    double value;
    int which = 0;
    while (which < FILES_COUNTERS && strcmp(e->name, names[which]) != 0)
        which++;
    if (which == FILES_COUNTERS || !event_next_sample(e, &at, &unit, &value) || value < 0 ||
        value > VALUE_MOST)
        return;
    if (which == 0 || s->reading.at != e->start)
        s->reading = (files_reading){.at = e->start};
    s->reading.values[which] = value;
    s->reading.has |= 1u << which;
    if (which == STEPS && s->reading.has == (1u << FILES_COUNTERS) - 1)
        add(s, &s->reading);
}

static bool has(const files_reading *r, uint64_t step)
{
    return step <= r->step && (double)(r->step - step) < r->values[STEPS];
}

/* Of one step of those that the step's own reading does not have; false: there is none. */
static bool usual_of(const slices *s, const files_reading *mine, int which, double *usual)
{
    double all[BESIDE_USUAL_MOST];
    size_t n = 0;
    for (size_t i = 0; i < s->reading_count && n < PKI_COUNT_OF(all); i++)
        if (!has(&s->readings[i], mine->step) && !has(mine, s->readings[i].step))
            all[n++] = s->readings[i].values[which] / s->readings[i].values[STEPS];
    if (n)
        qsort(all, n, sizeof *all, pki_compare_double);
    *usual = n ? (all[(n - 1) / 2] + all[n / 2]) / 2 : 0;
    return n > 0;
}

static bool is_notable(const pki_io_beside *r, bool calls)
{
    double value = (double)r->value, usual = r->usual * (double)r->steps;
    return value - usual >= (calls ? CALLS_TELLING : BYTES_TELLING) &&
           value >= usual * (calls ? CALLS_RATIO : BYTES_RATIO);
}

/* Once all have been added: the rows of out->io, if the step has a reading, and usual ones. */
static void files_fill(const slices *s, pki_beside *out)
{
    const files_reading *mine = NULL;
    double usual;
    for (size_t i = 0; i < s->reading_count && !mine; i++)
        mine = s->readings[i].step == out->step ? &s->readings[i] : NULL;
    if (!mine || !usual_of(s, mine, STEPS, &usual))
        return;
    out->io = memory_zeroed(STEPS, sizeof *out->io);
    for (int i = 0; i < STEPS; i++) {
        pki_io_beside *r = &out->io[out->io_count++];
        usual_of(s, mine, i, &usual);
        *r = (pki_io_beside){.name = memory_copy(names[i]),
                             .value = (uint64_t)mine->values[i],
                             .steps = (uint64_t)mine->values[STEPS],
                             .usual = usual};
        r->telling = is_notable(r, i == CALLS);
    }
}

/* ---- what is known of a step's processor, and not of which of its regions ---- */

/* Of a late step that has been accounted for at its end. */
static const look_seen *account_of(const slices *s, const step_seen *step)
{
    for (size_t i = 0; i < s->look_count; i++) {
        const look_seen *l = &s->looks[i];
        bool its = l->start < step->end && l->end + NEAR >= step->end;
        if (its && strcmp(l->what, PKI_STATE_TIME) == 0)
            return l;
    }
    return NULL;
}

static uint64_t unplaced_in(const slices *s, const step_seen *step)
{
    double sum = 0;
    const look_seen *account = s->records ? NULL : account_of(s, step);
    if (account)
        return PKI_MIN(account->ready, step->end - step->start);
    for (size_t i = 0; i < s->state_count; i++) {
        const state_seen *at = &s->states[i];
        uint64_t from = PKI_MAX(at->start, step->start), until = PKI_MIN(at->end, step->end);
        bool ready = strcmp(slices_name(s, at->name), SLICES_READY) == 0;
        if (ready && at->off < at->end - at->start && from < until)
            sum += (double)at->off * (double)(until - from) / (double)(at->end - at->start);
    }
    return (uint64_t)sum;
}

static void unplaced_fill(const slices *s, const step_seen *step, pki_beside *out)
{
    uint64_t usual[BESIDE_USUAL_MOST];
    size_t n = 0;
    for (size_t i = 0; i < s->step_count && n < PKI_COUNT_OF(usual); i++)
        if (s->steps[i].wanted && &s->steps[i] != step)
            usual[n++] = unplaced_in(s, &s->steps[i]);
    out->unplaced = (pki_unplaced){unplaced_in(s, step), median_of(usual, n)};
}

/* ---- a step of a trace beside usual ones like it: where the difference is ---- */

#define KEPT_MOST 2048u /* functions and waits of paths, of a step */
#define PATHS_MOST 2000 /* rows; those that differ least are left out beyond it */
#define PATH_BYTES 2000
#define BETWEEN " > "

/* A path's self times, step by step. */
typedef struct path_times {
    uint64_t self[BESIDE_USUAL_MOST + 1]; /* the usual steps, and behind them the step */
    uint64_t blocked[BESIDE_USUAL_MOST + 1], calls[BESIDE_USUAL_MOST + 1];
} path_times;

typedef struct comparison {
    slices *in;
    tree calls;
    table paths; /* where, '\x1f', its kind as a digit, the path */
    size_t room;
    path_times *times;
    size_t column; /* of the step that is looked at */
    const char *where;
    char path[PATH_BYTES];
    size_t ends[TREE_DEPTH_MOST + 3];  /* of the path, up to each depth */
    uint32_t ids[TREE_DEPTH_MOST + 3]; /* and its times */
    bool states[TREE_DEPTH_MOST + 3];  /* no part of the path, and samples may be in it */
    uint64_t covered, blocked;         /* by regions; outside of all */
    waits waits;                       /* of the step that is looked at */
} comparison;

/* ---- a step ---- */

static uint32_t times_id(comparison *c, const char *where, char kind, const char *path)
{
    char key[PATH_BYTES + 1200];
    snprintf(key, sizeof key, "%.1000s\x1f%c%s", where, kind, path);
    uint32_t id = table_add(&c->paths, key);
    memory_fit(&c->times, &c->room, id + (size_t)1, sizeof *c->times);
    return id;
}

static path_times *times_of(comparison *c, const char *where, char kind, const char *path)
{
    uint32_t id = times_id(c, where, kind, path); /* which may move them */
    return &c->times[id];
}

/* What no longer fits is said to be so: paths that differ behind it are one. */
static void extend(comparison *c, const char *name, uint32_t depth)
{
    size_t at = depth ? c->ends[depth - 1] : 0;
    int n = snprintf(c->path + at, sizeof c->path - at, "%s%s", depth ? BETWEEN : "", name);
    c->ends[depth] = PKI_MIN(at + (size_t)PKI_MAX(n, 0), sizeof c->path - 1);
}

/* What was seen of it, in the step that is looked at. */
static void keep(comparison *c, waits *in, const tree_node *node, uint32_t depth, uint64_t amount)
{
    if (c->column != BESIDE_USUAL_MOST || in->count == KEPT_MOST)
        return;
    size_t n = depth ? c->ends[depth - 1] : 0;
    char *path = memory_zeroed(n + 1, 1);
    memcpy(path, c->path, n);
    memory_fit(&in->all, &in->room, in->count + 1, sizeof *in->all);
    in->all[in->count++] = (wait_seen){path, node->name, amount};
}

static void free_waits(waits *in)
{
    for (size_t i = 0; i < in->count; i++)
        free(in->all[i].path);
    free(in->all);
}

static bool begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Wherever it had no processor: that is no region's. What it waited for, its region has asked for.
 */
static bool add_state(comparison *c, const tree_node *node, uint32_t depth)
{
    if (node->name & SLICES_SAMPLE) {
        size_t n = depth ? c->ends[depth - 1] : 0;
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%.*s", (int)n, c->path);
        stacks_place(c->in, node->name & ~SLICES_SAMPLE, path, (uint32_t)c->column);
        return true;
    }
    const char *name = slices_name(c->in, node->name);
    if (name[-1] != SLICES_MADE)
        return false;
    bool seen = begins_with(name, SLICES_BLOCKED_AT);
    bool blocked = seen || strcmp(name, SLICES_BLOCKED) == 0;
    if (seen)
        keep(c, &c->waits, node, depth, node->self);
    if (blocked && depth == 0)
        c->blocked += node->self;
    else if (blocked) {
        path_times *t = &c->times[c->ids[depth - 1]];
        t->self[c->column] += node->self;
        t->blocked[c->column] += node->self;
    } else if (strcmp(name, SLICES_READY) == 0 || strcmp(name, SLICES_STOPPED) == 0 ||
               strcmp(name, SLICES_SUSPENDED) == 0) {
        times_of(c, "", (char)('0' + PK_WAIT), name)->self[c->column] += node->self;
        c->covered += depth == 0 ? node->time : 0;
    } else
        return false;
    return true;
}

static bool add_node(void *user, const tree_node *node, uint32_t depth)
{
    comparison *c = user;
    uint32_t within = depth;
    while (within && c->states[within - 1])
        within--;
    c->states[depth] = c->where[0] == 0 && add_state(c, node, within);
    if (c->states[depth])
        return true;
    if (depth == 0)
        c->covered += node->time;
    extend(c, slices_name(c->in, node->name), depth);
    c->ids[depth] = times_id(c, c->where, c->in->names.texts[node->name][0], c->path);
    path_times *t = &c->times[c->ids[depth]];
    t->self[c->column] += node->self;
    t->calls[c->column] += node->calls;
    return true;
}

/* A thread by its name, so that those of a pool are one; streams of a device, too. */
static const char *where_of(const slices *s, uint32_t track)
{
    const slice_track *about = &s->about[track];
    if (track == SLICES_STEP_THREAD)
        return "";
    if (about->device && about->process)
        return about->process;
    return about->thread && about->thread[0] ? about->thread : s->tracks.texts[track];
}

/* From `first` on the slices of one track; the answer is where the next one's begin. */
static size_t add_track(comparison *c, const step_seen *step, size_t first)
{
    const slices *s = c->in;
    uint32_t track = s->all[first].track;
    size_t i = first;
    tree_clear(&c->calls);
    for (; i < s->count && s->all[i].track == track; i++) {
        uint64_t start = PKI_MAX(s->all[i].start, step->start);
        uint64_t end = PKI_MIN(s->all[i].end, step->end);
        if (start < end || (start == end && s->all[i].start == s->all[i].end))
            tree_call(&c->calls, 0, s->all[i].name, start, end);
    }
    c->where = where_of(s, track);
    c->covered = c->blocked = 0;
    tree_walk(&c->calls, tree_finish(&c->calls), add_node, c);
    return i;
}

static void add_step(comparison *c, const step_seen *step, size_t column)
{
    uint64_t covered = 0, blocked = 0, took = step->end - step->start;
    c->column = column;
    for (size_t i = 0; i < c->in->count;) {
        bool mine = c->in->all[i].track == SLICES_STEP_THREAD;
        i = add_track(c, step, i);
        covered = mine ? c->covered : covered;
        blocked = mine ? c->blocked : blocked;
    }
    path_times *outside = times_of(c, "", (char)('0' + PKI_UNTRACKED), "");
    outside->self[column] = took - PKI_MIN(took, covered);
    outside->blocked[column] = blocked;
}

/* ---- rows ---- */

static double beside_median_of(uint64_t *all, size_t count)
{
    if (count)
        qsort(all, count, sizeof *all, pki_compare_u64);
    return count ? ((double)all[(count - 1) / 2] + (double)all[count / 2]) / 2 : 0;
}

static double off(const pki_path_row *r)
{
    return fabs((double)r->self - r->usual);
}

static int by_track_and_difference(const void *a, const void *b)
{
    const pki_path_row *x = a, *y = b;
    bool mine = x->where[0] == 0, other_own = y->where[0] == 0;
    if (mine != other_own)
        return mine ? -1 : 1;
    if (off(x) != off(y))
        return off(x) < off(y) ? 1 : -1;
    int order = strcmp(x->where, y->where);
    return order ? order : strcmp(x->path, y->path);
}

static void make_row(const comparison *c, uint32_t id, size_t usual, pki_path_row *row)
{
    const char *key = c->paths.texts[id], *kind = strchr(key, '\x1f') + 1;
    path_times *t = &c->times[id];
    *row = (pki_path_row){.where = strndup(key, (size_t)(kind - 1 - key)),
                          .path = memory_copy(kind + 1),
                          .kind = (uint32_t)(kind[0] - '0'),
                          .calls = t->calls[BESIDE_USUAL_MOST],
                          .usual_calls = beside_median_of(t->calls, usual),
                          .self = t->self[BESIDE_USUAL_MOST],
                          .usual = beside_median_of(t->self, usual),
                          .blocked = t->blocked[BESIDE_USUAL_MOST],
                          .usual_blocked = beside_median_of(t->blocked, usual)};
    memory_needed(row->where != NULL);
}

static void make_rows(const comparison *c, pki_beside *out)
{
    out->paths = memory_zeroed(c->paths.count, sizeof *out->paths);
    for (uint32_t i = 0; i < c->paths.count; i++)
        make_row(c, i, out->usual_count, &out->paths[i]);
    if (c->paths.count)
        qsort(out->paths, c->paths.count, sizeof *out->paths, by_track_and_difference);
    out->path_count = PKI_MIN((size_t)c->paths.count, (size_t)PATHS_MOST);
    for (size_t i = out->path_count; i < c->paths.count; i++) {
        free(out->paths[i].where);
        free(out->paths[i].path);
    }
}

/* Makes out->beside of it, and reads the slices of those steps. What is in `out` already is used:
 * the capture, the warm-up. False, and why: the trace cannot be read. Without steps nothing. */
static bool beside_fill(slices *s, trace *t, pki_summary *out)
{
    comparison c = {.in = s};
    size_t column = 0;
    if (!slices_find_steps(s, t))
        return false;
    step_seen *step = beside_choose(s, out, &out->beside);
    if (!step)
        return true;
    if (!slices_read(s, t))
        return false;
    for (size_t i = 0; i < s->step_count; i++)
        if (s->steps[i].wanted)
            add_step(&c, &s->steps[i], &s->steps[i] == step ? BESIDE_USUAL_MOST : column++);
    make_rows(&c, &out->beside);
    files_fill(s, &out->beside);
    unplaced_fill(s, step, &out->beside);
    causes_fill(s, step, &c.waits, &out->beside);
    free_waits(&c.waits);
    tree_free(&c.calls);
    table_finish(&c.paths);
    free(c.times);
    return true;
}

bool beside_of_file(const char *path, slices *s, pki_summary *out, complaint *why)
{
    trace t;
    slices mine = {0};
    if (!trace_open(&t, path, true, why))
        return false;
    bool read = !trace_has_events(&t) || !trace_can_be_read_again(&t) ||
                beside_fill(s ? s : &mine, &t, out);
    trace_close(&t);
    slices_free(&mine);
    return read;
}
