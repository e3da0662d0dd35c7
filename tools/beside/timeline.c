#include "beside/timeline.h"

#include "base/compiler.h"
#include "measure/summary.h"
#include "memory.h"

#include <stdlib.h>

#define SHARES 4096 /* of the longer step: the first try at what is short */
#define VARIOUS UINT32_MAX
#define LANES_MOST 128

typedef struct block {
    uint64_t start, end; /* from the step's start */
    uint32_t step, lane, row, name, count;
} block;

typedef struct timeline {
    const slices *in;
    uint64_t shortest, merged, left_out;
    uint32_t *lanes; /* by track, from 1 on; 0: not shown */
    uint32_t lane_count;
    size_t count, room;
    block *blocks;
    size_t last[TIMELINE_ROWS_MOST]; /* of the lane: each row's last block + 1 */
    size_t depth, depth_room;
    uint64_t *ends; /* of the slices around */
} timeline;

/* ---- slices to blocks ---- */

/* Short ones become part of a short neighbour that is no further away than they are short. */
static bool join(timeline *t, const block *b)
{
    size_t last = t->last[b->row];
    block *to = last ? &t->blocks[last - 1] : NULL;
    bool near = to && b->start < to->end + t->shortest;
    if (!near || b->end - b->start >= t->shortest ||
        (to->count == 1 && to->end - to->start >= t->shortest))
        return false;
    t->merged += to->count == 1 ? 2 : 1;
    to->end = PKI_MAX(to->end, b->end);
    to->name = to->name == b->name ? b->name : VARIOUS;
    to->count++;
    return true;
}

static void add_block(timeline *t, const block *b)
{
    if (b->row >= TIMELINE_ROWS_MOST) {
        t->left_out++;
        return;
    }
    if (join(t, b))
        return;
    memory_fit(&t->blocks, &t->room, t->count + 1, sizeof *t->blocks);
    t->blocks[t->count++] = *b;
    t->last[b->row] = t->count;
}

static int outer_first(const void *a, const void *b)
{
    const slice *x = *(const slice *const *)a, *y = *(const slice *const *)b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return x->order > y->order ? -1 : 1;
}

static void place_slice(timeline *t, const slice *s, const step_seen *step, uint32_t which)
{
    while (t->depth && t->ends[t->depth - 1] <= s->start)
        t->depth--;
    block b = {.start = PKI_MAX(s->start, step->start) - step->start,
               .end = PKI_MIN(s->end, step->end) - step->start,
               .step = which,
               .lane = t->lanes[s->track] - 1,
               .row = (uint32_t)t->depth,
               .name = s->name,
               .count = 1};
    add_block(t, &b);
    memory_fit(&t->ends, &t->depth_room, t->depth + 1, sizeof *t->ends);
    t->ends[t->depth++] = s->end;
}

static bool overlaps(const slice *s, const step_seen *step)
{
    return s->start < step->end && s->end > step->start;
}

/* The slices of one track, from `first` on; the answer is where the next one's begin. */
static size_t place_track(timeline *t, size_t first, const step_seen *step, uint32_t which)
{
    const slices *s = t->in;
    size_t end = first, count = 0;
    while (end < s->count && s->all[end].track == s->all[first].track)
        end++;
    const slice **order = memory_zeroed(end - first, sizeof *order);
    for (size_t i = first; i < end; i++)
        if (overlaps(&s->all[i], step))
            order[count++] = &s->all[i];
    uint32_t *lane = &t->lanes[s->all[first].track];
    if (count && !*lane && t->lane_count < LANES_MOST)
        *lane = ++t->lane_count;
    if (!*lane) {
        t->left_out += count;
        count = 0;
    }
    if (count)
        qsort(order, count, sizeof *order, outer_first);
    t->depth = 0;
    for (size_t i = 0; i < TIMELINE_ROWS_MOST; i++)
        t->last[i] = 0;
    for (size_t i = 0; i < count; i++)
        place_slice(t, order[i], step, which);
    free(order);
    return end;
}

static void make(timeline *t, const step_seen *const steps[2])
{
    t->count = 0;
    t->merged = t->left_out = 0;
    for (uint32_t which = 0; which < 2 && steps[which]; which++)
        for (size_t i = 0; i < t->in->count;)
            i = place_track(t, i, steps[which], which);
}

/* ---- as JSON ---- */

static void put_step(const step_seen *s, pki_json *j)
{
    pki_json_open(j, NULL, '{');
    pki_json_uint(j, "index", s->index);
    pki_json_uint(j, "took", s->end - s->start);
    pki_json_close(j, '}');
}

static void put_lane(const timeline *t, uint32_t track, pki_json *j)
{
    const slice_track *about = &t->in->about[track];
    bool device = about->device;
    const char *name = about->thread ? about->thread : t->in->tracks.texts[track];
    char both[400];
    snprintf(both, sizeof both, "%.190s%s%.190s", device && about->process ? about->process : "",
             device && about->process ? ", " : "", name);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "name", both);
    pki_json_text(j, "sort",
                  track == SLICES_STEP_THREAD ? "steps"
                  : device                    ? "device"
                  : about->beside             ? "library"
                                              : "thread");
    pki_json_close(j, '}');
}

static void put_lanes(const timeline *t, pki_json *j)
{
    pki_json_open(j, "lanes", '[');
    for (uint32_t lane = 1; lane <= t->lane_count; lane++)
        for (uint32_t track = 0; track < t->in->tracks.count; track++)
            if (t->lanes[track] == lane)
                put_lane(t, track, j);
    pki_json_close(j, ']');
}

/* Only names that occur, numbered anew. */
static void put_names(timeline *t, pki_json *j)
{
    uint32_t *numbers = memory_zeroed(t->in->names.count, sizeof *numbers), used = 0;
    pki_json_open(j, "names", '[');
    for (size_t i = 0; i < t->count; i++) {
        block *b = &t->blocks[i];
        if (b->name == VARIOUS)
            continue;
        if (!numbers[b->name]) {
            numbers[b->name] = ++used;
            pki_json_open(j, NULL, '[');
            pki_json_text(j, NULL, pki_kind_names[slices_kind(t->in, b->name)]);
            pki_json_text(j, NULL, slices_name(t->in, b->name));
            pki_json_close(j, ']');
        }
        b->name = numbers[b->name] - 1;
    }
    pki_json_close(j, ']');
    free(numbers);
}

static void put_block(const block *b, pki_json *j)
{
    pki_json_open(j, NULL, '[');
    pki_json_uint(j, NULL, b->step);
    pki_json_uint(j, NULL, b->lane);
    pki_json_uint(j, NULL, b->row);
    pki_json_uint(j, NULL, b->start);
    pki_json_uint(j, NULL, b->end - b->start);
    pki_json_int(j, NULL, b->name == VARIOUS ? -1 : (int64_t)b->name);
    pki_json_uint(j, NULL, b->count);
    pki_json_close(j, ']');
}

static void put(timeline *t, const step_seen *const steps[2], pki_json *j)
{
    pki_json_open(j, NULL, '{');
    pki_json_open(j, "steps", '[');
    for (int i = 0; i < 2 && steps[i]; i++)
        put_step(steps[i], j);
    pki_json_close(j, ']');
    put_lanes(t, j);
    put_names(t, j);
    pki_json_open(j, "slices", '[');
    for (size_t i = 0; i < t->count; i++)
        put_block(&t->blocks[i], j);
    pki_json_close(j, ']');
    pki_json_uint(j, "shortest", t->merged ? t->shortest : 0);
    pki_json_uint(j, "merged", t->merged);
    pki_json_uint(j, "left_out", t->left_out);
    pki_json_close(j, '}');
}

static const step_seen *find(const slices *s, uint64_t index)
{
    for (size_t i = 0; i < s->step_count; i++)
        if (s->steps[i].wanted && s->steps[i].index == index)
            return &s->steps[i];
    return NULL;
}

void timeline_put(const slices *s, const pki_beside *beside, pki_json *json)
{
    const step_seen *steps[2] = {find(s, beside->step),
                                 beside->usual_count ? find(s, beside->usual_step) : NULL};
    timeline t = {.in = s, .lanes = memory_zeroed(s->tracks.count, sizeof *t.lanes)};
    uint64_t longest = beside->took;
    if (steps[1])
        longest = PKI_MAX(longest, steps[1]->end - steps[1]->start);
    t.shortest = longest / SHARES;
    do
        make(&t, steps);
    while (t.count > TIMELINE_SLICES_MOST && (t.shortest = 2 * t.shortest + 1) < longest);
    put(&t, steps, json);
    free(t.lanes);
    free(t.blocks);
    free(t.ends);
}
