/* tools/rebuild/tree_rows.c - the call tree as rows of the summary. */
#include "rebuild/state.h"

#include "memory.h"

#include <stdlib.h>

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
