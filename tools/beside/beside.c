#include "beside/beside.h"

#include "base/compare.h"
#include "base/compiler.h"
#include "beside/files.h"
#include "memory.h"
#include "tree/tree.h"

#include <pk/pk.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATHS_MOST 2000 /* rows; those that differ least are left out beyond it */
#define PATH_BYTES 2000
#define BETWEEN " > "

/* A path's self times, step by step. */
typedef struct path_times {
    uint64_t self[BESIDE_USUAL_MOST + 1], calls; /* the usual steps, and behind them the step */
} path_times;

typedef struct comparison {
    const slices *in;
    tree calls;
    table paths; /* where, '\x1f', its kind as a digit, the path */
    size_t room;
    path_times *times;
    size_t column; /* of the step that is looked at */
    const char *where;
    char path[PATH_BYTES];
    size_t ends[TREE_DEPTH_MOST + 3]; /* of the path, up to each depth */
    uint64_t covered;
} comparison;

/* ---- a step ---- */

static path_times *times_of(comparison *c, const char *where, char kind, const char *path)
{
    char key[PATH_BYTES + 1200];
    snprintf(key, sizeof key, "%.1000s\x1f%c%s", where, kind, path);
    uint32_t id = table_add(&c->paths, key);
    memory_fit(&c->times, &c->room, id + (size_t)1, sizeof *c->times);
    return &c->times[id];
}

/* What no longer fits is said to be so: paths that differ behind it are one. */
static void extend(comparison *c, const char *name, uint32_t depth)
{
    size_t at = depth ? c->ends[depth - 1] : 0;
    int n = snprintf(c->path + at, sizeof c->path - at, "%s%s", depth ? BETWEEN : "", name);
    c->ends[depth] = PKI_MIN(at + (size_t)PKI_MAX(n, 0), sizeof c->path - 1);
}

static bool add_node(void *user, const tree_node *node, uint32_t depth)
{
    comparison *c = user;
    extend(c, slices_name(c->in, node->name), depth);
    path_times *t = times_of(c, c->where, c->in->names.texts[node->name][0], c->path);
    t->self[c->column] += node->self;
    if (c->column == BESIDE_USUAL_MOST)
        t->calls += node->calls;
    if (depth == 0)
        c->covered += node->time;
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
    c->covered = 0;
    tree_walk(&c->calls, tree_finish(&c->calls), add_node, c);
    return i;
}

static void add_step(comparison *c, const step_seen *step, size_t column)
{
    uint64_t covered = 0, took = step->end - step->start;
    c->column = column;
    for (size_t i = 0; i < c->in->count;) {
        bool own = c->in->all[i].track == SLICES_STEP_THREAD;
        i = add_track(c, step, i);
        covered = own ? c->covered : covered;
    }
    path_times *outside = times_of(c, "", (char)('0' + PKI_UNTRACKED), "");
    outside->self[column] = took - PKI_MIN(took, covered);
}

/* ---- rows ---- */

static double median_of(uint64_t *all, size_t count)
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
    bool own = x->where[0] == 0, other_own = y->where[0] == 0;
    if (own != other_own)
        return own ? -1 : 1;
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
                          .calls = t->calls,
                          .self = t->self[BESIDE_USUAL_MOST],
                          .usual = median_of(t->self, usual)};
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

bool beside_fill(slices *s, trace *t, pki_summary *out)
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
    tree_free(&c.calls);
    table_finish(&c.paths);
    free(c.times);
    return true;
}

bool beside_of_file(const char *path, slices *s, pki_summary *out, complaint *why)
{
    trace t;
    slices own = {0};
    if (!trace_open(&t, path, true, why))
        return false;
    bool read =
        !trace_has_events(&t) || !trace_can_be_read_again(&t) || beside_fill(s ? s : &own, &t, out);
    trace_close(&t);
    slices_free(&own);
    return read;
}
