/* tools/rows/rows.h - what runs did, as tables */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "complaint.h"

/* ---- what runs did, as tables ---- */

/* One row per call, kernel, step ... of all files given.
 *
 *     rows *r = rows_create(&wish);            // only these columns
 *     rows_add_file(r, "rank0.json", false, &why);
 *     rows_add_file(r, "rank1.json", false, &why);
 *     rows_cell(r, ROWS_CALLS, 0, column);
 *
 * Rows are kept as small structs, names as numbers: 24 bytes for a call, 16 more for each group of
 * columns that costs something (rows_about). Columns that follow from others, such as a call's
 * step, are made when they are asked for. What nobody wished for is not kept, and a file is not
 * walked through if nothing of it was.
 *
 * Not for two threads at once. */

typedef enum rows_table {
    ROWS_FILES,
    ROWS_STEPS,
    ROWS_REGIONS,
    ROWS_CALLS,
    ROWS_KERNELS,
    ROWS_MEMCPYS,
    ROWS_COLLECTIVES,
    ROWS_MESSAGES,
    ROWS_COUNTERS,
    ROWS_MARKS,
    ROWS_ACTIVITIES,
    ROWS_SPANS,
    ROWS_SPAN_MARKS,
    ROWS_REQUESTS,
    ROWS_THREADS,
    ROWS_DEVICES,
    ROWS_VERDICTS,
    ROWS_TABLES
} rows_table;

typedef enum cell_type { CELL_NULL, CELL_INTEGER, CELL_REAL, CELL_TEXT } cell_type;

typedef struct cell {
    cell_type type;
    int64_t integer;
    double real;      /* finite */
    const char *text; /* as long as the rows */
} cell;

typedef struct rows_column {
    const char *name, *about;
    uint8_t form, part; /* rows/layout.h */
    uint16_t offset;
} rows_column;

typedef struct rows_about {
    const char *name, *about;
    const rows_column *columns;
    size_t count; /* at most ROWS_COLUMNS */
} rows_about;

#define ROWS_COLUMNS 40

const rows_about *rows_about_table(rows_table of);
cell_type rows_column_type(const rows_column *column);

/* "CREATE TABLE NAME(file INTEGER, ...)" */
#define ROWS_SQL 4096
void rows_write_sql(rows_table of, const char *name, char sql[ROWS_SQL]);

/* A bit for each column that will be asked for; ROWS_COUNTED: at least how many there are. */
#define ROWS_COUNTED (UINT64_C(1) << 63)
typedef struct rows_wish {
    uint64_t columns[ROWS_TABLES];
    bool lenient; /* of a report, tables of events are empty; else it is refused */
} rows_wish;

#define ROWS_ALL (ROWS_COUNTED | ((UINT64_C(1) << ROWS_COLUMNS) - 1))

typedef struct rows rows;

rows *rows_create(const rows_wish *wish);
void rows_destroy(rows *r);

/* A trace or a report of perfkit, or any Chrome trace. False, and why: then the rows are of no more
 * use. show: on stderr how far it is, when it takes long. */
bool rows_add_file(rows *r, const char *path, bool show, complaint *why);

/* All of these. NULL; or the one that cannot be read, and why. */
const char *rows_add_files(rows *r, char *const *paths, size_t count, complaint *why);

/* Room for the next files: the rows go, and their texts stay. Files and the ids of calls are
 * counted on, so that file after file has the rows that all of them have together. */
void rows_forget(rows *r);

uint64_t rows_count(const rows *r, rows_table of);
cell rows_cell(rows *r, rows_table of, uint64_t row, unsigned column);
