/* tools/rows/order.h - the rows of a table in the order of some of its columns, and found by one.
 *
 * SQL asks for it in two ways: rows by groups, and the rows that another one belongs to. Both are
 * one permutation: made by radix, so five million calls by name take a tenth of a second.
 */
#pragma once

#include "rows/rows.h"

#include <stdbool.h>

#define ORDER_COLUMNS 4

typedef struct order_by {
    rows_table of;
    unsigned count;
    uint8_t columns[ORDER_COLUMNS];
    bool descending[ORDER_COLUMNS];
} order_by;

typedef struct order {
    order_by by;
    uint32_t *places; /* of the rows, in order */
    uint64_t *keys;   /* of the first column, by row */
    uint32_t *ranks;  /* of names, in the alphabet */
    size_t count;
} order;

/* False if there are 2^32 rows. NULL comes first, as in SQLite. */
bool order_make(order *o, rows *r, const order_by *by);
void order_finish(order *o);

/* The places [*first, *end) at which the first column, ascending, has this value. */
void order_find(const order *o, rows *r, const cell *value, size_t *first, size_t *end);
