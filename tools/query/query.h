/* tools/query/query.h - what the files of pk query share. */
#pragma once

#include "complaint.h"
#include "query/stream.h"
#include "rows/rows.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

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

/* ---- functions.c ---- */

/* percentile, percentile_cont, median, stddev, stddev_pop, regexp. */
int query_add_functions(sqlite3 *db);

/* ---- print.c ---- */

typedef enum query_format {
    QUERY_TABLE,
    QUERY_CSV,
    QUERY_NDJSON,
    QUERY_JSON,
    QUERY_MARKDOWN,
    QUERY_FORMATS
} query_format;

extern const char *const query_format_names[QUERY_FORMATS];

/* Runs it and prints its rows. An error of SQLite's, SQLITE_DONE if there is none. */
int query_print(sqlite3_stmt *statement, query_format format);

/* ---- sql.c ---- */

/* Where in the SQL something is wrong, for whoever wrote it: the line, and a mark below. */
void query_point_at(const char *sql, int offset);

/* A connection to a database that is read only (NULL: to an empty one in memory), in which SQL from
 * anywhere, and what a file from anywhere has for a schema, can reach nothing but its rows. An
 * error of SQLite's; *db may be there all the same, and tells which. */
int query_open(const char *path, sqlite3 **db);

/* Sorting goes through files, not through memory. An error of SQLite's. */
int query_sort_in_files(sqlite3 *db);

/* Nothing but reading, by functions that are known to be harmless, is allowed from now on. */
void query_forbid_changes(sqlite3 *db);
