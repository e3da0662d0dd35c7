/* tools/merge/alike.h - operations whose lines differ from an earlier one's in their times and
 * their number on the communicator alone: most of a trace's. What the earlier line said is known.
 */
#pragma once

#include "merge/fields.h"
#include "merge/operations.h"

#define ALIKE_KEPT 8

/* What a line said, and where it may differ. */
typedef struct alike_line {
    char *text; /* NULL: none */
    size_t length, room;
    size_t begin;     /* up to its time */
    size_t behind;    /* from behind its duration */
    size_t number;    /* of the operation: its digits... */
    size_t after;     /* ...and what follows them */
    operation is;     /* but for times, number and source */
    uint64_t channel; /* of a collective: its key, into which the number is mixed */
} alike_line;

typedef struct alike {
    alike_line all[ALIKE_KEPT];
    uint32_t next;
} alike;

void alike_free(alike *a);

/* The line is like an earlier one, and this is what it says; in *channel see above, and the number
 * in *number. */
bool alike_find(const alike *a, line l, const fields *f, operation *o, uint64_t *channel,
                uint64_t *number);

/* A line, and what it says. */
void alike_add(alike *a, line l, const fields *f, const operation *o, uint64_t channel,
               uint64_t number);
