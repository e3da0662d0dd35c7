/* tools/table.h - numbers for texts: the n-th different text gets n, from 0. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_NONE UINT32_MAX

typedef struct table {
    uint32_t count;
    char **texts; /* by number */
    size_t text_room;
    uint32_t slots; /* a power of two, or 0 */
    uint32_t *slot; /* number + 1; 0 is free */
} table;

void table_finish(table *t);

/* The text's number, TABLE_NONE if it is not there. */
uint32_t table_find(const table *t, const char *text);

/* The same, new if need be (then it is t->count - 1). */
uint32_t table_add(table *t, const char *text);
