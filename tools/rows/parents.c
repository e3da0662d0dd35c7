/* tools/rows/parents.c - which call is in which: depth, parent and self time.
 *
 * perfkit lists a thread's calls by their ends. Traces of others are sorted first.
 */
#include "rows/layout.h"

#include "base/compiler.h"
#include "memory.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

typedef struct nesting {
    const call_row *calls;
    call_nest *nests;
    nest *open; /* by track; value: the number of the call */
} nesting;

static uint32_t track_of(const call_row *c)
{
    return c->track & TRACK_MASK;
}

static void set_parent(nesting *n, uint32_t i)
{
    const call_row *c = &n->calls[i];
    nest *open = &n->open[track_of(c)];
    size_t inside = nest_inside(open, c->start);
    uint64_t self = c->duration;
    for (size_t k = inside; k < open->count; k++) {
        const nest_slice *inner = &open->waiting[k];
        n->nests[inner->value].parent = i + 1;
        self -= PKI_MIN(self, inner->end - inner->start);
    }
    n->nests[i].self = self;
    nest_add(open, inside, (nest_slice){c->start, c->start + c->duration, i});
}

/* Outer calls come behind those that are in them, so from the last one on depths are known. */
static void set_parents(nesting *n, size_t first, size_t count, const uint32_t *order)
{
    for (size_t i = first; i < count; i++)
        set_parent(n, order ? order[i - first] : (uint32_t)i);
    for (size_t i = count; i > first; i--) {
        call_nest *at = &n->nests[order ? order[i - 1 - first] : i - 1];
        at->depth = at->parent ? n->nests[at->parent - 1].depth + 1 : 0;
    }
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
    int order = nest_order(x->start, x->start + x->duration, y->start, y->start + y->duration);
    return order ? order : i < k ? -1 : 1;
}

static void set_parents_sorted(nesting *n, size_t first, size_t count)
{
    uint32_t *order = memory_zeroed(count - first, sizeof *order);
    for (size_t i = first; i < count; i++)
        order[i - first] = (uint32_t)i;
    qsort_r(order, count - first, sizeof *order, inner_first, (void *)n->calls);
    set_parents(n, first, count, order);
    free(order);
}

void rows_nest(rows *r, size_t first)
{
    part *calls = &r->parts[ROWS_CALLS][0], *nests = &r->parts[ROWS_CALLS][2];
    if (calls->count == first)
        return;
    call_nest *all = memory_resized(nests->data, calls->count * sizeof *all);
    memset(all + nests->count, 0, (calls->count - nests->count) * sizeof *all);
    nests->data = (char *)all;
    nests->count = nests->room = calls->count;
    nesting n = {(const call_row *)calls->data, all,
                 memory_zeroed(r->tracks.count, sizeof *n.open)};
    if (is_ordered(r, n.calls, first, calls->count))
        set_parents(&n, first, calls->count, NULL);
    else
        set_parents_sorted(&n, first, calls->count);
    for (size_t i = 0; i < r->tracks.count; i++)
        free(n.open[i].waiting);
    free(n.open);
}
