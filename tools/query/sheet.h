/* tools/query/sheet.h - a table of a query, as SQLite has it. Of plan.c and tables.c alone. */
#pragma once

#include "query/query.h"
#include "rows/order.h"

#define ORDERS_MOST 8 /* of a table; beyond it, the oldest one goes if nobody reads it */

/* The ways to go through a table: idxNum, with the columns in idxStr: a letter each, its number +
 * 1, and this bit. */
enum { SHEET_ALL, SHEET_ORDERED, SHEET_FOUND };
#define SHEET_DESCENDING 0x40

typedef struct kept_order {
    order o;
    unsigned readers;
} kept_order;

typedef struct sheet {
    sqlite3_vtab base;
    query_tables *from;
    rows_table of;
    rows *whole; /* of all files, where rows have to be found in those that are not kept */
    kept_order *orders[ORDERS_MOST];
    size_t order_count;
} sheet;

/* Its files are read one after the other. */
bool sheet_is_streamed(const sheet *s);

/* plan.c: chooses the way to take, and has the columns that are asked for added to the wish. */
int sheet_choose(sqlite3_vtab *table, sqlite3_index_info *info);
