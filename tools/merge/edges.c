#include "merge/edges.h"

#include "memory.h"

#include <stdlib.h>

#define EDGES_MOST 2048 /* 48 MiB: each clock with the first one, and some more */
#define TABLE 8192

/* What one collective says of each clock: when the last of its ranks began, the first ended. */
typedef struct extremes {
    uint64_t last_start, first_end;
    bool there;
} extremes;

typedef struct finding {
    edges *edges;
    const merge_clocks *clocks;
    const merge_sources *sources;
    extremes *of; /* by clock */
} finding;

static edge *make_edge(finding *f, uint32_t a, uint32_t b, size_t slot)
{
    edges *e = f->edges;
    if (e->count == EDGES_MOST)
        return NULL;
    const merge_clock *one = &f->clocks->all[a], *other = &f->clocks->all[b];
    edge *made = memory_zeroed(1, sizeof *made);
    made->a = a;
    made->b = b;
    made->about = other->real_offset - one->real_offset;
    made->found.span = (double)(other->last - other->first);
    memory_fit(&e->all, &e->room, e->count + 1, sizeof *e->all);
    e->all[e->count++] = made;
    e->table[slot] = (uint32_t)e->count;
    return made;
}

/* a < b; NULL: there are too many. */
static edge *edge_of(finding *f, uint32_t a, uint32_t b)
{
    edges *e = f->edges;
    size_t slot = ((size_t)a * 40503 + b) % TABLE;
    for (; e->table[slot]; slot = (slot + 1) % TABLE) {
        edge *it = e->all[e->table[slot] - 1];
        if (it->a == a && it->b == b)
            return it;
    }
    return make_edge(f, a, b, slot);
}

static uint32_t clock_of(const finding *f, const operation *o)
{
    return f->sources->all[o->source].clock;
}

static uint64_t moment(const finding *f, const operation *o, uint64_t ns)
{
    return f->sources->all[o->source].base_ns + ns;
}

/* What happened at `before` of one clock cannot be later than `after` of another. */
static void add_order(finding *f, uint32_t one, uint64_t before, uint32_t other, uint64_t after)
{
    if (one == other)
        return;
    edge *e = edge_of(f, one < other ? one : other, one < other ? other : one);
    if (!e)
        return;
    uint64_t first = f->clocks->all[e->b].first;
    if (one == e->b) /* before + offset <= after */
        bounds_most(&e->found, (double)(int64_t)(before - first),
                    (double)((int64_t)(after - before) - e->about));
    else /* before <= after + offset */
        bounds_least(&e->found, (double)(int64_t)(after - first),
                     (double)((int64_t)(before - after) - e->about));
}

static void add_messages(finding *f, const operation *all, size_t count)
{
    size_t sends = operations_receives(all, count);
    if (2 * sends != count)
        return;
    for (size_t i = 0; i < sends; i++) {
        const operation *s = &all[i], *r = &all[sends + i];
        add_order(f, clock_of(f, s), moment(f, s, s->start), clock_of(f, r), moment(f, r, r->end));
    }
}

static void find_extremes(finding *f, const operation *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        extremes *x = &f->of[clock_of(f, &all[i])];
        uint64_t start = moment(f, &all[i], all[i].start), end = moment(f, &all[i], all[i].end);
        if (!x->there || start > x->last_start)
            x->last_start = start;
        if (!x->there || end < x->first_end)
            x->first_end = end;
        x->there = true;
    }
}

/* All pairs would be bounds, too; those with one clock say nearly as much, for less. */
static void add_all_to_all(finding *f, const operation *all, size_t count)
{
    uint32_t centre = UINT32_MAX;
    find_extremes(f, all, count);
    for (size_t i = 0; i < count; i++)
        centre = clock_of(f, &all[i]) < centre ? clock_of(f, &all[i]) : centre;
    extremes c = f->of[centre];
    for (size_t i = 0; i < count; i++) {
        uint32_t clock = clock_of(f, &all[i]);
        extremes *x = &f->of[clock];
        if (x->there && clock != centre) {
            add_order(f, clock, x->last_start, centre, c.first_end);
            add_order(f, centre, c.last_start, clock, x->first_end);
        }
        x->there = false;
    }
}

/* One rank gives to all, or gets from all. */
static void add_rooted(finding *f, const operation *all, size_t count)
{
    const operation *root = NULL;
    for (size_t i = 0; i < count; i++)
        root = all[i].rank == all[i].peer ? &all[i] : root;
    for (size_t i = 0; root && i < count; i++) {
        const operation *from = root->kind == OPERATION_FROM ? root : &all[i];
        const operation *to = root->kind == OPERATION_FROM ? &all[i] : root;
        add_order(f, clock_of(f, from), moment(f, from, from->start), clock_of(f, to),
                  moment(f, to, to->end));
    }
}

static void add_group(void *user, operation *all, size_t count)
{
    finding *f = user;
    if (all[0].kind >= OPERATION_SEND)
        add_messages(f, all, count);
    else if (!operations_are_one(all, count) || all[0].kind == OPERATION_LOOSE)
        return;
    else if (all[0].kind == OPERATION_ALL)
        add_all_to_all(f, all, count);
    else
        add_rooted(f, all, count);
}

bool edges_find(edges *e, const merge_clocks *c, const merge_sources *s, operations *o,
                complaint *why)
{
    *e = (edges){.table = memory_zeroed(TABLE, sizeof *e->table)};
    finding f = {e, c, s, memory_zeroed(c->count, sizeof *f.of)};
    bool found = operations_each(o, add_group, &f, why);
    free(f.of);
    return found;
}

void edges_free(edges *e)
{
    for (size_t i = 0; i < e->count; i++)
        free(e->all[i]);
    free(e->all);
    free(e->table);
}
