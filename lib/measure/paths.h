/* lib/measure/paths.h - calls by path, which is a region and those around it: the call tree of a
 * run, and a step beside usual ones like it. Parts of a pki_summary, made from the events of a
 * trace: a session keeps no paths (docs/design.md says why).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Regions of one name within one path, on whatever thread. Rows are in preorder. */
typedef struct pki_tree_row {
    char *name;
    uint32_t kind;
    uint32_t depth; /* 0: in no other region */
    uint64_t calls;
    uint64_t time, self; /* with the regions inside, and without */
} pki_tree_row;

/* A path in a step, and in the usual ones. */
typedef struct pki_path_row {
    char *where; /* "": the thread that makes the steps; else another thread, or a device */
    char *path;  /* "forward > attention"; "": outside every region */
    uint32_t kind;
    uint64_t calls, self; /* in the step */
    double usual;         /* self time: its median over the usual steps */
} pki_path_row;

/* What the process read or wrote in a step, as a counter of costs=io says, and in usual ones. */
typedef struct pki_io_beside {
    char *name;     /* "io.written" */
    uint64_t value; /* since the reading before, so of... */
    uint64_t steps; /* ...so many steps, of which it is the last */
    double usual;   /* of one: the median */
    bool telling;   /* by enough to be worth a line */
} pki_io_beside;

/* A step of a trace beside usual ones like it. */
typedef struct pki_beside {
    uint64_t took; /* 0: there is nothing to set beside each other */
    uint64_t step;
    double usual;        /* what the usual ones took, the median */
    uint64_t usual_step; /* the one that is nearest to that */
    uint64_t usual_count;
    bool same_kind; /* as pk_step_kind has announced them; else there were none, and it is others */
    size_t path_count;
    size_t io_count; /* 0: nothing is known of it */
    pki_io_beside *io;
    pki_path_row *paths; /* the stepping thread's first, by how much they differ from the usual */
} pki_beside;

/* A step in a capture or around it. */
typedef struct pki_captured_step {
    uint64_t index, start, duration, items;
    char *kind;    /* "": the usual one */
    bool captured; /* its events are in the file, */
    bool kernels;  /* those of kernels, too */
} pki_captured_step;

/* What the trace says if it is a capture (docs/internals/trace-format.md). */
typedef struct pki_capture {
    uint64_t captured; /* so many steps are in it and around it; 0: it is no capture */
    char *reason, *text;
    uint64_t first, last;
    uint64_t slow_step, slow, median; /* why: this step took so long, like ones so long */
    bool cut, beginning_gone, full;
    uint64_t records_lost;
    uint64_t refused; /* captures of the run so far */
    size_t step_count;
    pki_captured_step *steps;
} pki_capture;
