/* tools/rows/nest.c - which call is in which.
 *
 * perfkit lists a thread's calls by their ends, so from the last to the first an outer call comes
 * before what is in it: a stack for each thread, and no sorting. Traces of others are sorted first.
 */
#include "rows/layout.h"

#include "base/compiler.h"

#include <stdlib.h>
#include <string.h>

#define TRACK_MASK (UINT32_MAX >> 1)

/* The calls of a thread that are around the one being looked at. */
typedef struct stack {
    uint32_t *calls;
    uint32_t depth, room;
} stack;

typedef struct nesting {
    const call_row *calls;
    call_nest *nests;
    stack *stacks; /* by track */
} nesting;

static uint32_t track_of(const call_row *c)
{
    return c->track & TRACK_MASK;
}

static bool push(stack *s, uint32_t call)
{
    if (s->depth == s->room) {
        uint32_t room = s->room ? 2 * s->room : 64;
        uint32_t *grown = realloc(s->calls, room * sizeof *grown);
        if (!grown)
            return false;
        s->calls = grown;
        s->room = room;
    }
    s->calls[s->depth++] = call;
    return true;
}

/* No later call ends behind this one, so what begins behind its beginning is around none of them. */
static bool place(nesting *n, uint32_t i)
{
    const call_row *c = &n->calls[i];
    stack *s = &n->stacks[track_of(c)];
    while (s->depth && n->calls[s->calls[s->depth - 1]].start > c->start)
        s->depth--;
    n->nests[i].self = c->duration;
    n->nests[i].depth = s->depth;
    if (s->depth) {
        uint32_t parent = s->calls[s->depth - 1];
        n->nests[i].parent = parent + 1;
        n->nests[parent].self -= PKI_MIN(n->nests[parent].self, c->duration);
    }
    return push(s, i);
}

static bool place_all(nesting *n, size_t first, size_t count, const uint32_t *order)
{
    for (size_t i = count; i > first; i--)
        if (!place(n, order ? order[i - 1 - first] : (uint32_t)(i - 1)))
            return false;
    return true;
}

/* ---- traces whose calls are in another order ---- */

static bool is_ordered(const rows *r, const call_row *calls, size_t first, size_t count)
{
    for (size_t i = 0; i < r->tracks.count; i++)
        ((rows_track *)rows_at(&r->tracks, sizeof(rows_track), i))->last_end = 0;
    for (size_t i = first; i < count; i++) {
        rows_track *t = rows_at(&r->tracks, sizeof *t, track_of(&calls[i]));
        uint64_t end = calls[i].start + calls[i].duration;
        if (end < t->last_end)
            return false;
        t->last_end = end;
    }
    return true;
}

/* Inner ones first; of two alike the earlier one in the file. */
static int inner_first(const void *a, const void *b, void *user)
{
    const call_row *calls = user;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const call_row *x = &calls[i], *y = &calls[k];
    uint64_t end_x = x->start + x->duration, end_y = y->start + y->duration;
    if (end_x != end_y)
        return end_x < end_y ? -1 : 1;
    if (x->start != y->start)
        return x->start > y->start ? -1 : 1;
    return i < k ? -1 : 1;
}

static bool place_sorted(nesting *n, size_t first, size_t count)
{
    uint32_t *order = malloc((count - first) * sizeof *order);
    if (!order)
        return false;
    for (size_t i = first; i < count; i++)
        order[i - first] = (uint32_t)i;
    qsort_r(order, count - first, sizeof *order, inner_first, (void *)n->calls);
    bool placed = place_all(n, first, count, order);
    free(order);
    return placed;
}

bool rows_nest(rows *r, size_t first)
{
    part *calls = &r->parts[ROWS_CALLS][0], *nests = &r->parts[ROWS_CALLS][2];
    if (calls->count == first)
        return true;
    call_nest *all = realloc(nests->data, calls->count * sizeof *all);
    if (!all)
        return false;
    memset(all + nests->count, 0, (calls->count - nests->count) * sizeof *all);
    nests->data = (char *)all;
    nests->count = nests->room = calls->count;
    nesting n = {(const call_row *)calls->data, all, calloc(r->tracks.count, sizeof *n.stacks)};
    if (!n.stacks)
        return false;
    bool placed = is_ordered(r, n.calls, first, calls->count)
                      ? place_all(&n, first, calls->count, NULL)
                      : place_sorted(&n, first, calls->count);
    for (size_t i = 0; i < r->tracks.count; i++)
        free(n.stacks[i].calls);
    free(n.stacks);
    return placed;
}
