/* tools/export/export.h - rows in files that other engines read: one for each table, one for each
 * table and rank, or one database.
 *
 * File after file of a run is read, and its rows go to each sink in turn: only one file's are ever
 * kept.
 */
#pragma once

#include "complaint.h"
#include "rows/rows.h"

#include <stdbool.h>
#include <stdio.h>

/* Where rows go. */
typedef struct export_sink {
    bool (*take)(void *user, rows *r, complaint *why);     /* the rows of one more file */
    bool (*close)(void *user, bool whole, complaint *why); /* not whole: what was begun goes */
    void *user;
} export_sink;

/* How a table is written; errors stick to the stream. */
typedef struct export_form {
    const char *ending;
    void (*head)(FILE *to, rows_table of);
    void (*put)(FILE *to, rows *r, rows_table of);
} export_form;

extern const export_form export_csv, export_ndjson;

/* export/sqlite.c, or none.c without it. */
bool export_to_sqlite(export_sink *to, const char *path, const rows_wish *wish, complaint *why);
