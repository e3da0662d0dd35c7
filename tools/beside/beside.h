/* tools/beside/beside.h - a step of a trace beside usual ones like it: where the difference is */
#pragma once

#include "beside/symbols.h"
#include "measure/rows.h"
#include "measure/summary.h"
#include "out/json_write.h"
#include "table.h"
#include "trace/trace.h"

/* ---- what a trace has of some of its steps ---- */

/* All slices of all threads and devices that overlap with them, in memory.
 *
 * The file is read twice: for its steps, of which the caller then marks those that it wants, and
 * for their slices. */

#define SLICES_STEP_THREAD 0u /* the track of the thread that makes the steps */

typedef struct step_seen {
    uint64_t index, start, end, items;
    uint32_t kind; /* of slices.kinds; 0: the usual one */
    bool wanted;
} step_seen;

typedef struct slice {
    uint64_t start, end;
    uint32_t track, name; /* name: in slices.names */
    uint32_t order;       /* in the file */
} slice;

typedef struct slice_track {
    char *process, *thread; /* NULL: not named */
    bool device, beside;    /* beside: what a library recorded of the process itself */
    uint32_t slices;
} slice_track;

/* The thread that makes steps was off its processor for `off` of it. */
typedef struct state_seen {
    uint64_t start, end, off; /* ns */
    uint32_t name;            /* in slices.names: SLICES_READY, _STOPPED, _SUSPENDED or _BLOCKED */
    bool brief;               /* short waits, off for `off` of it together */
} state_seen;

/* What it was seen to wait for, and who had its processor, while the step was late
 * (session/captures/looks.c). */
typedef struct look_seen {
    uint64_t start, end;
    uint64_t off, ran, ready, kernel; /* ns */
    uint64_t count;                   /* of what it is about */
    double rate, usual_rate;          /* kHz */
    bool waits;                       /* it is about what it waits for */
    bool first;                       /* of all of its name */
    bool brief;                       /* made amid short waits */
    uint32_t name; /* of the states that it is about; SLICES_NO_NAME: there is none */
    char *what, *call, *object, *by, *by_region;
} look_seen;

#define SLICES_NO_NAME UINT32_MAX

/* In place of the digit of a kind, in names of slices that stand for states and samples: no region
 * is called so. */
#define SLICES_MADE 'w'

#define SLICES_READY "(no processor)"
#define SLICES_STOPPED "(stopped)"
#define SLICES_SUSPENDED "(suspended)"
#define SLICES_BLOCKED "(blocked)"     /* it waits for what its region has asked for... */
#define SLICES_BLOCKED_AT "(blocked: " /* ...which was seen: "(blocked: fsync run.log)" */

/* The slice without a length of a sample has this and its number in place of a name. */
#define SLICES_SAMPLE 0x80000000u

/* Where its processor was (session/captures/stacks.c). */
typedef struct sample_seen {
    uint64_t at, ns;       /* ns: that it stands for */
    char *stack, *build;   /* as the trace has it */
    uint32_t first, count; /* of slices.frames, innermost first */
    uint32_t path, column; /* of slices.sample_paths; TABLE_NONE: in no step that is wanted */
} sample_seen;

typedef struct code_file {
    char *path, *build;
} code_file;

/* What the process did from one reading to the next (files.h). */
#define FILES_COUNTERS 6

typedef struct files_reading {
    uint64_t at, step; /* ns; the one that ends there */
    unsigned has;      /* a bit for each... */
    double values[FILES_COUNTERS];
} files_reading;

typedef struct slices {
    size_t step_count, step_room, count, room, track_room;
    step_seen *steps; /* by time */
    slice *all;       /* once they have been read: by track, and in it by end, inner ones first */
    table tracks;     /* pid, '/', tid; the first is that of SLICES_STEP_THREAD */
    slice_track *about;
    table names;           /* the kind as a digit, or SLICES_MADE, then the name */
    table kinds;           /* of steps, from 1 on */
    files_reading reading; /* that is being put together */
    size_t reading_count, reading_room;
    files_reading *readings; /* at the ends of steps that are wanted */
    size_t state_count, state_room;
    bool records; /* of switches: else there are accounts, and looks, and no more */
    symbols symbols;
    size_t sample_count, sample_room, frame_count, frame_room, file_room;
    sample_seen *samples;
    uint32_t *frames; /* of functions */
    code_file *files; /* by number */
    table functions, sample_paths;
    size_t look_count, look_room;
    look_seen *looks;
    state_seen *states; /* those that say where they lie are slices, too, in the innermost region */
} slices;

/* The steps of the first thread that makes some. False, and why: it cannot be read; no steps are no
 * reason. */
bool slices_find_steps(slices *s, trace *t);

/* The slices of the steps that are wanted. */
bool slices_read(slices *s, trace *t);

void slices_free(slices *s);

static inline const char *slices_name(const slices *s, uint32_t name)
{
    return s->names.texts[name] + 1;
}

/* ---- two steps slice by slice, for the page ---- */

/* The one that is looked at, and a usual one.
 *
 * Bounded whatever they hold: what is shorter than a few thousandths of the longer step becomes one
 * block with its neighbours, which says how many it stands for; how short is raised until all fit.
 */

/* An object: "steps" [{index, took}], "names" [[kind, name]], "lanes" [{name, sort}], "slices"
 * [[step, lane, row, start in the step, length, name or -1, how many]], "shortest", "merged",
 * "left_out". */
void timeline_put(const slices *s, const pki_beside *beside, pki_json *json);

/* Within that object: samples of the step as a tree, regions and in them functions, "flame" {names,
 * nodes [[depth, name, ns in the step, ns in a usual one]] in preorder, outermost first}. What is
 * small in both is left out. */
void stacks_put(const slices *s, const pki_beside *beside, pki_json *json);

/* ---- what no region covers ---- */

/* Functions for the places of summary->outside; rows of one are one. */
void outside_name(pki_summary *summary);

/* ---- what the process read and wrote in a step, beside usual ones ---- */

/* Of counters that costs=io leaves at ends of steps (lib/session/costs/io.h). */

/* An event of a counter, which may be one of them. Those of one reading come behind each other. */
void files_add(slices *s, const event *e);

/* ---- a step of a trace beside usual ones like it: where the difference is ---- */

/* The step is the one that a capture was kept for, else the longest. Usual are steps of the same
 * kind (pk_step_kind) that are nearer to their median than to it, the 32 next to it at most. Of
 * each path its self time in the step stands beside the median of that over the usual ones; on the
 * thread that makes the steps these times, with what is outside every region, are the step's
 * duration to the nanosecond. Slices that reach beyond a step count as far as they are in it. */

/* The same of a file. s: NULL, or what has been read, to be freed by slices_free. */
bool beside_of_file(const char *path, slices *s, pki_summary *out, complaint *why);
