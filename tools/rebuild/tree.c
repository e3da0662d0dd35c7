/* tools/rebuild/tree.c - calls by path: of each region, in which regions it was called */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "memory.h"
#include "rebuild/rebuild.h"

#define WAITING_MOST 65536     /* per track; beyond it, neighbours wait as one */
#define LIVE_MOST (1u << 21)   /* nodes, 40 bytes each, before that is done to all tracks */
#define NEIGHBOURS_LOOKED 1024 /* names in one path that are told apart */

/* ---- nodes ---- */

static uint32_t allocate_node(tree *t)
{
    uint32_t id = t->unused;
    if (id) {
        t->unused = t->nodes[id].next;
    } else {
        id = ++t->count;
        memory_fit(&t->nodes, &t->room, id + (size_t)1, sizeof *t->nodes);
    }
    t->live++;
    return id;
}

static void release_node(tree *t, uint32_t id)
{
    t->nodes[id].next = t->unused;
    t->unused = id;
    t->live--;
}

static void drop_list(tree *t, uint32_t list)
{
    while (list) {
        uint32_t next = t->nodes[list].next;
        drop_list(t, t->nodes[list].inner);
        release_node(t, list);
        list = next;
    }
}

/* The node of that name comes first in the list, where the next one looks first. False: there is
 * none of it. */
static bool bring_forward(tree *t, uint32_t *list, uint32_t name)
{
    uint32_t before = 0, at = *list, looked = 0;
    while (at && t->nodes[at].name != name) {
        before = at;
        at = ++looked < NEIGHBOURS_LOOKED ? t->nodes[at].next : 0;
    }
    if (!at)
        return false;
    if (before) {
        t->nodes[before].next = t->nodes[at].next;
        t->nodes[at].next = *list;
        *list = at;
    }
    return true;
}

static uint32_t joined(tree *t, uint32_t a, uint32_t b);

/* The node `from`, which is in no list, becomes part of the list. */
static void add_node(tree *t, uint32_t *list, uint32_t from)
{
    if (!bring_forward(t, list, t->nodes[from].name)) {
        t->nodes[from].next = *list;
        *list = from;
        return;
    }
    uint32_t inner = joined(t, t->nodes[*list].inner, t->nodes[from].inner);
    tree_node *to = &t->nodes[*list];
    const tree_node *more = &t->nodes[from];
    to->inner = inner;
    to->calls += more->calls;
    to->time += more->time;
    to->self += more->self;
    to->height = PKI_MAX(to->height, more->height);
    release_node(t, from);
}

/* Two lists as one; neither is one afterwards. */
static uint32_t joined(tree *t, uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t next = t->nodes[b].next;
        add_node(t, &a, b);
        b = next;
    }
    return a;
}

/* ---- calls ---- */

/* Of the older ones, each with its neighbour. A slice that begins between two such would not have
 * what lies in it of them. */
static void wait_as_one(tree *t, nest *n)
{
    size_t older = n->count / 4 * 3 / 2 * 2;
    for (size_t i = 0; i < older / 2; i++) {
        nest_slice a = n->waiting[2 * i], b = n->waiting[2 * i + 1];
        uint32_t both = joined(t, (uint32_t)a.value, (uint32_t)b.value);
        n->waiting[i] = (nest_slice){a.start, PKI_MAX(a.end, b.end), both};
    }
    memmove(&n->waiting[older / 2], &n->waiting[older], (n->count - older) * sizeof *n->waiting);
    n->count -= older / 2;
}

static void make_room(tree *t, nest *n)
{
    if (n->count >= WAITING_MOST)
        wait_as_one(t, n);
    for (size_t i = 0; t->live >= LIVE_MOST && i < t->tracks; i++)
        wait_as_one(t, &t->waiting[i]);
}

/* What waits within the slice: as one list, and how much of it that covers. */
static uint32_t collect_inner(tree *t, nest *n, size_t inside, uint64_t *covered)
{
    uint32_t list = 0;
    for (size_t i = inside; i < n->count; i++)
        list = joined(t, list, (uint32_t)n->waiting[i].value);
    n->count = inside;
    *covered = 0;
    for (uint32_t at = list; at; at = t->nodes[at].next)
        *covered += t->nodes[at].time;
    return list;
}

static uint32_t height_of(const tree *t, uint32_t list)
{
    uint32_t height = 0;
    for (; list; list = t->nodes[list].next)
        height = PKI_MAX(height, t->nodes[list].height + 1);
    return height;
}

void tree_call(tree *t, uint32_t track, uint32_t name, uint64_t start, uint64_t end)
{
    memory_fit(&t->waiting, &t->tracks, track + (size_t)1, sizeof *t->waiting);
    nest *n = &t->waiting[track];
    make_room(t, n);
    uint64_t covered, duration = end - start;
    size_t inside = nest_inside(n, start);
    uint32_t inner = collect_inner(t, n, inside, &covered);
    uint32_t height = height_of(t, inner);
    if (height > TREE_DEPTH_MOST) {
        drop_list(t, inner);
        inner = height = 0;
        covered = 0;
    }
    uint32_t id = allocate_node(t);
    t->nodes[id] = (tree_node){.name = name,
                               .inner = inner,
                               .height = height,
                               .calls = 1,
                               .time = duration,
                               .self = duration - PKI_MIN(duration, covered)};
    nest_add(n, inside, (nest_slice){start, end, id});
}

/* ---- the end ---- */

typedef struct placed {
    uint64_t time;
    uint32_t name, id;
} placed;

static int most_first(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? 1 : -1;
    return (x->name > y->name) - (x->name < y->name);
}

static uint32_t sorted(tree *t, uint32_t list)
{
    size_t count = 0, room = 0;
    placed *all = NULL;
    for (; list; list = t->nodes[list].next) {
        memory_fit(&all, &room, count + 1, sizeof *all);
        all[count++] = (placed){t->nodes[list].time, t->nodes[list].name, list};
    }
    if (count > 1)
        qsort(all, count, sizeof *all, most_first);
    while (count--) {
        tree_node *n = &t->nodes[all[count].id];
        n->next = list;
        n->inner = sorted(t, n->inner);
        list = all[count].id;
    }
    free(all);
    return list;
}

uint32_t tree_finish(tree *t)
{
    uint32_t list = 0;
    for (size_t i = 0; i < t->tracks; i++) {
        nest *n = &t->waiting[i];
        for (size_t k = 0; k < n->count; k++)
            list = joined(t, list, (uint32_t)n->waiting[k].value);
        n->count = 0;
    }
    return sorted(t, list);
}

static void walk(const tree *t, uint32_t list, uint32_t depth, tree_visit *visit, void *user)
{
    for (; list; list = t->nodes[list].next)
        if (visit(user, &t->nodes[list], depth))
            walk(t, t->nodes[list].inner, depth + 1, visit, user);
}

void tree_walk(const tree *t, uint32_t list, tree_visit *visit, void *user)
{
    walk(t, list, 0, visit, user);
}

void tree_clear(tree *t)
{
    for (size_t i = 0; i < t->tracks; i++)
        t->waiting[i].count = 0;
    t->count = t->unused = t->live = 0;
}

void tree_free(tree *t)
{
    for (size_t i = 0; i < t->tracks; i++)
        free(t->waiting[i].waiting);
    free(t->waiting);
    free(t->nodes);
    *t = (tree){0};
}
