/* lib/measure/window/window.h - a part of a run in numbers: what is new since the window before.
 *
 * A window is what is written of a long run every so many steps or seconds
 * (session/windows/windows.c), and what `pk report` makes the run's report of again (merge.h). So
 * it has each figure twice: as people and scripts read it, and, in the members named `exact`, as it
 * can be added up without loss. docs/internals/report-format.md describes the line.
 */
#pragma once

#include <pk/stats.h>

#include "measure/costs/sums.h"
#include "measure/shape.h"
#include "measure/steps/cut.h"
#include "measure/window/sum.h"

#define PKI_WINDOW_FORMAT "perfkit window"
#define PKI_WINDOW_SCHEMA 1

typedef struct pki_window_region {
    uint32_t id; /* where it was made: not in the file */
    char *name;
    uint32_t kind;
    pki_dist time;
    uint64_t self, bytes, flops;
    pki_dist step_self; /* its self time in the steps that it was in */
    pki_region_thinned thinned;
    pki_window_sum exact;
} pki_window_region;

typedef struct pki_window_counter {
    uint32_t id; /* not in the file */
    char *name, *unit;
    pki_dist value;
    double last;
    pki_tally exact;
} pki_window_counter;

typedef struct pki_window_steps {
    uint64_t count;        /* of the usual kind, as all figures but those in `exact` */
    uint64_t of_all_kinds; /* with those of kinds of their own */
    uint64_t first, last;  /* numbers of the first and the last of all; of none both are 0 */
    pki_dist time;
    uint64_t items;
    double items_per_second;
    uint64_t kinds[PKI_SHARES];
    uint64_t broken_down;
    pki_processor processor;
    pki_utilisation utilisation;
    pki_steps_part exact; /* ids of regions are indices of pki_window.regions in the file */
} pki_window_steps;

/* What the window cost beside time; what is not known of it is not in the file. */
typedef struct pki_window_costs {
    pki_io_summary io;      /* counts: in the window; the best that a device gave: so far */
    pki_energy_sums energy; /* likewise */
    pki_memory_sum memory;  /* faults and looks: in the window */
    pki_gpu_memory_sums gpu_memory;
    pki_goodput_summary goodput; /* from the process's start to the window's end: parts change */
} pki_window_costs;

typedef struct pki_window {
    uint64_t index;        /* from 0, without gaps */
    uint64_t start, end;   /* since the session's start */
    bool last;             /* there is no other one behind it: the run has ended with pk_stop */
    uint32_t warmup_steps; /* as asked for; 0: to be found from the data */
    pki_run run;           /* wall and cpu: of the window */
    size_t verdict_count, region_count, counter_count, thread_count;
    pki_verdict *verdicts;
    pki_window_steps steps;
    pki_window_region *regions;
    pki_window_counter *counters;
    pki_thread_row *threads; /* from the run's start to the window's end */
    pk_counts counts;        /* memory_bytes: at the end; all others: in the window */
    pki_overhead overhead;
    pki_window_costs costs;
} pki_window;

extern const pki_shape pki_window_shape;

/* Its members in turn: of regions and counters there may be very many. */
extern const pki_shape pki_window_region_shape, pki_window_counter_shape;

void pki_window_finish(pki_window *window);

/* What an exact sum says of itself. stats is scratch: it holds the whole distribution then. */
pki_dist pki_window_sum_dist(const pki_window_sum *sum, pk_stats *stats);

/* False without memory. */
bool pki_window_sum_add(pki_window_sum *into, const pki_window_sum *from);

/* What was not there before; memory_bytes is now's. */
pk_counts pki_counts_difference(const pk_counts *now, const pk_counts *before);

/* ---- from what was sealed to what is written ---- */

/* ---- from what was sealed to what is written ---- */

/* Names for ids, and what the steps say. Percentiles of regions and counters are made as each is
 * written, since there may be very many (out/window/write.h). */

/* Ids that the steps refer to become indices of window->regions, which gets rows for those that
 * have none. False without memory. */
bool pki_window_complete(pki_window *window);
