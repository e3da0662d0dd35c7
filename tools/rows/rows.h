/* tools/rows/rows.h - what runs did, as tables */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "complaint.h"
#include "measure/summary.h"
#include "out/json_write.h"
#include "table.h"
#include "trace/trace.h"

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
    ROWS_NOTES,
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
    uint8_t form, part; /* a rows_form; which of the ROWS_PARTS */
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

/* ---- a cell in a file: as CSV (RFC 4180), as JSON ---- */

/* Errors stick to the stream. NULL is nothing. */
void cell_write_csv(FILE *to, const cell *c);
void csv_write_text(FILE *to, const char *text);

/* NULL is written: readers take a file's columns from its first lines. */
void cell_write_json(pki_json *to, const char *key, const cell *c);

/* ---- the rows of a table in the order of some of its columns, and found by one ---- */

/* SQL asks for it in two ways: rows by groups, and the rows that another one belongs to. Both are
 * one permutation: made by radix, so five million calls by name take a tenth of a second. */

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

/* ---- the structs that rows are kept in, and how columns lie in them ---- */

/* Of rows*.c alone. */

/* How a cell is made of a row. Rows with times begin with start and duration, in ns. */
typedef enum rows_form {
    /* of the file that the row is from */
    FORM_FILE,
    FORM_RANK,
    /* of start and duration */
    FORM_END,  /* NULL if the duration is UINT64_MAX */
    FORM_UNIX, /* start, since 1970 */
    FORM_STEP, /* in which it began */
    /* of the member at the offset */
    FORM_U64,
    FORM_COUNT,  /* the same; 0 is NULL */
    FORM_KNOWN,  /* the same; UINT64_MAX is NULL */
    FORM_U32,    /* ROWS_NONE is NULL */
    FORM_I32,    /* -1 is NULL */
    FORM_BOOL,   /* a uint8_t */
    FORM_US,     /* ns in a uint64_t, as us; UINT64_MAX is NULL */
    FORM_REAL,   /* NaN is NULL */
    FORM_WHOLE,  /* a double too */
    FORM_SOME,   /* the same; 0 is NULL */
    FORM_TEXT,   /* a char * to one of the names' texts */
    FORM_NAME,   /* a name's number, ROWS_NONE is NULL */
    FORM_KIND,   /* a pk_kind in a uint32_t */
    FORM_REGION, /* the name of one of rows.regions... */
    FORM_REGION_KIND,
    FORM_TRACK, /* the thread of one of rows.tracks... */
    FORM_TRACK_NAME,
    FORM_UNBALANCED, /* ...and the highest bit of its number */
    FORM_BITS,       /* a uint64_t as two's complement; NULL if the one behind it is 0 */
    FORM_ID,         /* the row's number, from 1 */
    FORM_PARENT      /* the number of another one + 1, or 0 */
} rows_form;

#define ROWS_NONE UINT32_MAX
#define ROWS_PARTS 3
#define TRACK_MASK (UINT32_MAX >> 1) /* the bit above it: call_row */

typedef struct file_row {
    uint64_t start_unix, duration;
    uint64_t events;
    uint32_t file, path, host, pid, program, version;
    int32_t rank, ranks;
    uint8_t complete, cut, has_events;
} file_row;

typedef struct step_row {
    uint64_t start, duration, step, items;
    uint32_t thread, process; /* of rows.process_keys */
    uint32_t kind;            /* "": the usual one */
    uint8_t warmup;
} step_row;

typedef struct call_row {
    uint64_t start, duration;
    uint32_t region; /* of rows.regions */
    uint32_t track;  /* of rows.tracks; the highest bit: unbalanced */
} call_row;

typedef struct call_work {
    uint64_t bytes, flops;
} call_work;

typedef struct call_nest {
    uint64_t self;
    uint32_t parent, depth;
} call_nest;

typedef struct device_row { /* kernels, copies */
    uint64_t start, duration, correlation, bytes;
    uint32_t name, region, device, stream;
    uint32_t direction;
} device_row;

typedef struct kernel_more {
    uint64_t queued;
    uint32_t registers, shared;
} kernel_more;

typedef struct collective_row { /* collectives, messages */
    uint64_t start, duration, bytes, sequence, exposed;
    double algbw, busbw;
    uint32_t name, communicator, library, operation, type, region;
    uint32_t ranks, in_flight, algorithm, protocol, calls;
    int32_t peer, tag; /* of a collective the root */
} collective_row;

typedef struct counter_row {
    uint64_t start, duration; /* duration 0 */
    double value;
    uint32_t name, unit, thread;
} counter_row;

typedef struct mark_row {
    uint64_t start, duration;
    uint32_t name, thread;
} mark_row;

typedef struct note_row {
    uint64_t start, duration; /* the call's */
    uint64_t value, known;
    uint32_t region, thread, key, words;
} note_row;

typedef struct activity_row {
    uint64_t start, duration, correlation;
    uint32_t kind, name, region, device, track;
} activity_row;

/* The program's number of a span, and whether it is known. */
typedef struct span_id {
    uint64_t id, known;
} span_id;

typedef struct span_row {
    uint64_t start, duration; /* duration UINT64_MAX: it was open when the file ended */
    uint64_t span;            /* perfkit's number */
    span_id id;
    uint32_t region, thread, end_thread;
} span_row;

typedef struct span_mark_row {
    uint64_t start, duration; /* duration 0 */
    uint64_t span, since;
    uint32_t region, thread;
} span_mark_row;

typedef struct request_row {
    uint64_t start, duration;
    uint64_t span;
    span_id id;
    uint64_t queued, preempted, prefill, crowded, decode, behind, ttft;
    uint64_t tokens, preemptions, first_step, steps;
    double tpot;
    uint32_t region, outcome;
    uint8_t good;
} request_row;

typedef struct verdict_row {
    double value, threshold;
    uint32_t name, severity, text;
} verdict_row;

/* Rows of one layout, in the order in which they were added. */
typedef struct part {
    char *data;
    size_t count, room;
} part;

/* A thread or a stream, of one file. */
typedef struct rows_track {
    uint32_t tid, name, process;
    uint64_t last_end;
} rows_track;

/* A region, by name and kind. */
typedef struct rows_region {
    uint32_t name;
    uint8_t kind;
} rows_region;

/* The rows of a table that are of this file begin here. */
typedef struct file_start {
    size_t first[ROWS_TABLES];
} file_start;

/* Where the last cell was found, since the next one is near. */
typedef struct rows_memo {
    size_t file, step;
} rows_memo;

struct rows {
    rows_wish wish;
    part parts[ROWS_TABLES][ROWS_PARTS];
    part files; /* of file_start */
    table names, region_keys, track_keys, process_keys;
    part regions, tracks; /* of rows_region, rows_track */
    rows_memo memo[ROWS_TABLES];
    uint64_t files_before, calls_before; /* that are forgotten */
};

extern const size_t rows_widths[ROWS_TABLES][ROWS_PARTS];

/* rows.c. Room for one more, zeroed. */
void *rows_push(part *p, size_t width);
void *rows_append(rows *r, rows_table of, unsigned part_of);

static inline void *rows_at(const part *p, size_t width, size_t i)
{
    return p->data + i * width;
}

static inline bool rows_wanted(const rows *r, rows_table of)
{
    return r->wish.columns[of] != 0;
}

/* Is a column of this part of it? */
bool rows_wants_part(const rows *r, rows_table of, unsigned part_of);

/* The name's number; "" is ROWS_NONE. */
uint32_t rows_name(rows *r, const char *name);
const char *rows_name_of(const rows *r, uint32_t id);

/* The first row of the file that is being added, or of the given one. */
size_t rows_first(const rows *r, rows_table of, size_t file);
file_row *rows_file(const rows *r, size_t file);

/* rows/events.c: depth, parent and self time of the calls from `first` on. */
void rows_nest(rows *r, size_t first);

/* ---- rows of the events of a trace. Of rows*.c alone ---- */

#define ROWS_LINES 1024u /* a power of two */

typedef struct rows_line {
    uint32_t line, region, track;
} rows_line;

typedef struct rows_reader {
    rows *to;
    uint64_t events;
    rows_table begun_in; /* collectives or messages */
    size_t begun;        /* the operation whose end comes next, + 1; 0: none. Its id is... */
    uint64_t begun_id;   /* ...this */
    rows_line lines[ROWS_LINES];
    part moments; /* of span_moment */
} rows_reader;

void rows_add_event(void *reader, const event *e);

/* Behind the file's last event: which moments of pk_spans belong together. */
void rows_pair_spans(rows_reader *from);
