/* lib/measure/summary.h - a run in numbers: what the reports print and what the report files hold.
 *
 * A pki_summary is filled in one of three ways, and the text report knows which by run.source
 * alone: by the session from live memory (lib/session/report/report.c), by `pk report` from a
 * report file, or by `pk report` from the events of a trace. Strings and arrays belong to the
 * summary's own heap blocks and go with pki_summary_finish. All times are nanoseconds; start times
 * count from the session's start.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pk/pk.h>

#include "core/overhead.h"
#include "measure/rows.h"
#include "measure/goodput/goodput.h"
#include "measure/kinds.h"
#include "measure/thinning.h"
#include "measure/machine/machine.h"
#include "measure/window/sum.h"
#include "stats/series.h"

#define PKI_REPORT_SCHEMA 1 /* "schema" in the report file; docs/internals/report-format.md */

/* What of a region's calls were pk_spans and their marks. */
typedef struct pki_span_row {
    uint64_t events; /* begins and marks; first: 0 leaves it out of the report file */
    uint64_t begun, ended, unfinished, marks;
} pki_span_row;

typedef struct pki_region_row {
    char *name;
    uint32_t kind;
    pki_dist time; /* of the calls, children included */
    uint64_t self; /* sum without children */
    uint64_t bytes, flops;
    double threads; /* at once, of regions with bytes or flops; 0: unknown. In no file */
    /* self time inside steps, as a share of all (steady) step time; 0 without steps */
    double step_share;
    pki_dist step_self; /* self time per steady step; steps without a call count as 0 */
    pki_dist gpu;       /* its spans on streams: from event to event, not kernel time */
    pki_dist kernels;   /* that were launched in it, in no region inside */
    pki_region_thinned thinned;
    pki_histogram histogram; /* of `time` */
    pki_span_row span;
    pki_window_sum exact; /* of `time`, as it is added up over ranks; count 0: not known */
} pki_region_row;

typedef struct pki_thread_row {
    char *name;
    uint32_t tid;
    bool ended;
    uint64_t recorded, dropped;
    uint64_t kinds[PKI_KINDS]; /* self time of its regions, by kind */
    size_t region_count;       /* only when report_threads was asked for */
    pki_region_row *regions;
} pki_thread_row;

/* A counter's samples in a part of the run. */
typedef struct pki_counter_point {
    uint64_t start; /* of the first of them */
    uint64_t samples;
    double min, mean, max;
} pki_counter_point;

typedef struct pki_counter_row {
    char *name, *unit;
    pki_dist value;
    double last;
    size_t point_count;
    pki_counter_point *points; /* by time, at most PKI_TIMELINE_MOST (measure/timeline.h) */
} pki_counter_row;

/* Of a run without steps (measure/whole_run.h). */
typedef struct pki_whole_run {
    uint64_t time; /* 0: there is none */
    char *thread;  /* whose it is: the main one's, or */
    bool busiest;  /* of those that have regions the one most in them, the main one having none */
    uint64_t kinds[PKI_SHARES];
} pki_whole_run;

/* What became of what devices and libraries did. */
typedef struct pki_activity_summary {
    uint64_t count;
    uint64_t unwritten;                /* not in the trace */
    uint64_t late;                     /* in no step: it came when its step was finished */
    uint64_t unmeasured;               /* missing in steps or distributions for want of memory */
    uint64_t overhead_count, overhead; /* what measuring took, by CUPTI's account; ns */
} pki_activity_summary;

/* All pk_spans (pk/span.h has what is what). */
typedef struct pki_span_summary {
    uint64_t
        events; /* begins, marks and what is wrong; first: 0 leaves it out of the report file */
    uint64_t begun, ended, unfinished, marks, dropped, ended_twice, of_earlier;
} pki_span_summary;

typedef enum pki_severity { PKI_GOOD, PKI_NOTE, PKI_WARN } pki_severity;

/* "input-bound": data time is 61 % of the step (threshold 30 %) ... */
typedef struct pki_verdict {
    char *name; /* stable, for machines: "input-bound" */
    pki_severity severity;
    double value, threshold; /* what was compared with what */
    char *text;              /* for people: one or two sentences with the figures */
} pki_verdict;

typedef struct pki_backend_row {
    char *name;
    bool live;
    char *version, *reason;
} pki_backend_row;

typedef struct pki_run {
    char *program, *host, *version;
    uint32_t pid;
    int32_t rank, world_size; /* world_size 0: not a job of several */
    uint64_t start_unix;      /* ns since 1970 */
    uint64_t wall;            /* length of the session */
    uint64_t cpu;             /* CPU time of the process during the session; 0 if unknown */
    char *clock;              /* "tsc", "cntvct", "monotonic" */
    double clock_hz;
    double clock_step_ns; /* smallest difference it can show */
    double clock_uncertainty_ns;
    double clock_ppm;               /* of its rate at start against the whole run */
    char *trace_path;               /* "" if there is none */
    char *source;                   /* "session", or what it was read from: "trace events", ... */
    bool complete;                  /* false: a killed run, recovered, or still running */
    int32_t local_rank, local_size; /* on this host; local_size 0: not known */
    char *clock_reason;             /* why the cycle counter is not trusted; "": it is */
    bool awaits_steps;              /* captures of steps are asked for; not in the file */
    int64_t calendar_set;           /* ns, by which that clock was meanwhile; not in the file */
} pki_run;

/* What perfkit itself took; CPU time in ns. Filled by pki_overhead_fill (measure/overhead.h). */
typedef struct pki_overhead {
    double region_ns;  /* one begin + end, measured at start */
    double total;      /* all below */
    double share;      /* of the process's CPU time if that is known, else of the run's length */
    double recording;  /* region_ns, for each region and point */
    double collector;  /* the collector thread: folding, formatting, compressing, writing */
    double callers;    /* the program's threads that did so: pk_flush, pk_stop, those that ended */
    double captures;   /* who writes captures: a thread of its own, or pk_stop */
    double readings;   /* the program's threads: what `costs` asks for */
    double backends;   /* threads of backends */
    double counted_ns; /* one begin + end that is counted and not timed, with a share of what timing
                          others of its region takes more; 0: there are none */
} pki_overhead;

typedef struct pki_summary {
    pki_run run;
    pki_environment environment;
    pk_counts counts;
    pki_overhead overhead;
    pki_thinned thinned;
    pki_activity_summary activities;
    size_t verdict_count, region_count, thread_count, counter_count, backend_count;
    size_t gpu_count, kernel_count;
    pki_verdict *verdicts;
    pki_region_row *regions; /* by self time, most first */
    pki_thread_row *threads;
    pki_counter_row *counters;
    pki_step_summary steps;
    pki_found_steps found_steps;
    pki_slow_steps slow_steps;
    pki_stage_summary stages;
    pki_whole_run whole_run;
    pki_outside outside;
    pki_cpu_side cpu_side;
    pki_roofline roofline;
    pki_io_summary io;
    pki_energy_summary energy;
    pki_goodput_summary goodput;
    pki_events_summary events;
    pki_backend_row *backends;
    pki_gpu_row *gpus;       /* by ordinal */
    pki_kernel_row *kernels; /* by total time, most first */
    pki_load_summary gpu_load;
    pki_gpu_event_summary gpu_events;
    pki_comm_summary comm;
    pki_capture capture;
    pki_beside beside;
    size_t tree_count;
    pki_tree_row *tree;
    pki_span_summary spans;
    pki_request_summary requests;
    pki_memory_summary memory;
    pki_gpu_memory_summary gpu_memory;
} pki_summary;

void pki_summary_init(pki_summary *summary);   /* all zero */
void pki_summary_finish(pki_summary *summary); /* frees what it points to, zeroes it */
void pki_step_summary_finish(pki_step_summary *steps);
void pki_stage_summary_finish(pki_stage_summary *stages);
void pki_gpu_finish(pki_summary *summary);  /* of it gpus and kernels */
void pki_comm_finish(pki_summary *summary); /* of it comm */
void pki_summary_clear_verdicts(pki_summary *summary);

/* The order of pki_summary.regions: by self time, most first; then by name and kind. */
void pki_regions_sort(pki_region_row *regions, size_t count);
