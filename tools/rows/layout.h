/* tools/rows/layout.h - the structs that rows are kept in, and how columns lie in them. Of rows*.c
 * alone. */
#pragma once

#include "measure/summary.h"
#include "rows/rows.h"
#include "table.h"

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

/* rows/parents.c: depth, parent and self time of the calls from `first` on. */
void rows_nest(rows *r, size_t first);

/* rows/rows.c: what a report says. */
void rows_add_summary(rows *r, const pki_summary *summary, bool steps_too);
