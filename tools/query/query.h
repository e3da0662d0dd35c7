/* tools/query/query.h - what the files of pk query share */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rows/rows.h"

/* ---- the rows of many files, one file's at a time ---- */

/* Files that are read again whenever a table is gone through. */
typedef struct stream_files {
    char *const *paths;
    size_t count;
} stream_files;

/* Are all of them files that can be read a second time, and more text than that together? What is
 * compressed counts as what it may become. */
bool stream_is_worth(const stream_files *files, uint64_t bytes);

/* One way through the rows of a table. */
typedef struct stream {
    const stream_files *from;
    rows_table of;
    rows *rows; /* of the file that it has come to */
    size_t next;
} stream;

/* ---- tables.c: rows as tables of SQLite ---- */

/* What the tables of a connection are made of: rows of all files, or, without them, files that are
 * read one after the other each time a table is gone through; a table in which rows have to be
 * found, as a join does, is kept as soon as they are. Neither: nothing yet; who prepares a
 * statement then has the columns that it uses added to the wish. */
typedef struct query_tables {
    rows *rows;
    stream_files files;
    unsigned passes[ROWS_TABLES]; /* through those files, in this statement */
    rows **passed;                /* rows that have been passed in it */
    size_t passed_count;
    rows_wish wish;
} query_tables;

/* An error of SQLite's. */
int query_add_tables(sqlite3 *db, query_tables *tables);

/* Behind each one. */
void query_end_statement(query_tables *tables);

/* ---- aggregates that SQLite does not have ---- */

/* percentile, percentile_cont, median, stddev, stddev_pop, regexp. */
int query_add_functions(sqlite3 *db);

/* ---- the rows of a statement, in a form for people or for programs ---- */

typedef enum query_format {
    QUERY_TABLE,
    QUERY_CSV,
    QUERY_NDJSON,
    QUERY_JSON,
    QUERY_MARKDOWN,
    QUERY_FORMATS
} query_format;

extern const char *const query_format_names[QUERY_FORMATS];

/* ---- a table of a query, as SQLite has it ---- */

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
