/* tools/export/export.h - rows in files that other engines read: one for each table, or one
 * database. */
#pragma once

#include "complaint.h"
#include "rows/rows.h"

#include <stdbool.h>
#include <stdio.h>

/* A table's rows onto a stream; errors stick to it. */
typedef void export_table(FILE *to, rows *r, rows_table of);

export_table export_csv, export_ndjson;

/* export/folder.c: DIR/TABLE.ENDING for each table of the wish. False, and why. */
bool export_folder(const char *path, const char *ending, export_table *put, rows *r,
                   const rows_wish *wish, complaint *why);

/* export/sqlite.c, or none.c without it. False, and why. */
bool export_sqlite(const char *path, rows *r, const rows_wish *wish, complaint *why);
