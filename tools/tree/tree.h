/* tools/tree/tree.h - calls by path: of each region, in which regions it was called.
 *
 *     tree t = {0};
 *     tree_call(&t, track, name, start, end);      (in the order of their ends, inner ones first)
 *     tree_walk(&t, tree_finish(&t), show, me);
 *     tree_free(&t);
 *
 * Which slice lies in which is known when the outer one comes (trace/trace.h). Until then a slice
 * waits with the tree of what lies in it, which then becomes part of its parent's: so no more is
 * kept than has not found its place, and the calls of one name within one path are one node.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

#define TREE_DEPTH_MOST 512 /* what is deeper counts as its parent's own */

typedef struct tree_node {
    uint32_t name;
    uint32_t next, inner; /* its neighbour, the first of those in it; 0: none */
    uint32_t height;      /* of what is in it */
    uint64_t calls, time, self;
} tree_node;

typedef struct tree {
    tree_node *nodes; /* from 1 on */
    size_t room;
    uint32_t count, unused; /* a list by `next` */
    uint32_t live;
    nest *waiting; /* by track; value: a list of nodes */
    size_t tracks;
} tree;

void tree_call(tree *t, uint32_t track, uint32_t name, uint64_t start, uint64_t end);

/* All tracks' as one list of nodes, by time, most first; 0: none. Then only the list is good. */
uint32_t tree_finish(tree *t);

/* Each node of the list and below, outer ones first. False from `visit`: not what is in it. */
typedef bool tree_visit(void *user, const tree_node *node, uint32_t depth);
void tree_walk(const tree *t, uint32_t list, tree_visit *visit, void *user);

void tree_free(tree *t);

/* Forgets all calls and keeps the memory. */
void tree_clear(tree *t);
