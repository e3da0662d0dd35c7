/* lib/measure/summary.h - a run in numbers: what the reports print and what the report files hold.
 *
 * A pki_summary is filled in one of three ways, and the text report knows which by run.source
 * alone: by the session from live memory (lib/session/summarise.c), by `pk report` from a report
 * file, or by `pk report` from the events of a trace. Strings and arrays belong to the summary's
 * own heap blocks and go with pki_summary_finish. All times are nanoseconds; start times count from
 * the session's start.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pk/pk.h>

#include "core/overhead.h"
#include "measure/costs/rows.h"
#include "measure/cpu_side.h"
#include "measure/environment.h"
#include "measure/goodput/parts.h"
#include "measure/exchange_rows.h"
#include "measure/thinned.h"
#include "measure/machine/rows.h"
#include "measure/memory/rows.h"
#include "measure/requests/parts.h"
#include "measure/paths.h"
#include "measure/stage_rows.h"
#include "measure/window/sum.h"
#include "stats/histogram.h"

#define PKI_KINDS 6             /* enum pk_kind */
#define PKI_UNTRACKED PKI_KINDS /* index of the time outside every region */
#define PKI_SHARES (PKI_KINDS + 1)
#define PKI_REPORT_SCHEMA 1 /* "schema" in the report file; docs/report-format.md */

/* "other", "compute", "data", "comm", "io", "wait", "untracked" */
extern const char *const pki_kind_names[PKI_SHARES];

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

/* One region's part in one step. */
typedef struct pki_step_part {
    char *name;
    uint32_t kind;
    uint64_t self;
    double usual; /* its median over the steady steps */
} pki_step_part;

typedef struct pki_step_row {
    uint64_t index, start, duration, items;
    uint64_t kinds[PKI_SHARES];
    /* slowest steps only: the parts furthest above their usual, biggest excess first */
    size_t part_count;
    pki_step_part *parts;
} pki_step_row;

/* The step series, bounded: entry i stands for `merged` consecutive steps. */
typedef struct pki_series_row {
    uint64_t index, start; /* of its first step */
    uint64_t steps;        /* in this entry */
    uint64_t duration;     /* sum; kinds and items too */
    uint64_t longest, shortest;
    uint64_t median; /* exact up to 8 steps, see measure/steps/series.h beyond */
    uint64_t items;
    uint64_t kinds[PKI_SHARES];
} pki_series_row;

/* Steps of a kind of their own (pk_step_kind), or the time between steps. */
typedef struct pki_step_kind_row {
    pki_dist time; /* first: count 0 leaves it out of the report file */
    char *name;    /* NULL of what lies between steps */
    uint64_t items;
    uint64_t broken_down;       /* so many of them, of which... */
    uint64_t kinds[PKI_SHARES]; /* ...this is the self time of the thread that makes steps */
} pki_step_kind_row;

/* Of the steps of the usual kind; the others are in step_kinds. */
typedef struct pki_step_summary {
    uint64_t count;    /* all closed steps */
    uint64_t warmup;   /* so many first ones told apart */
    bool warmup_given; /* by the option, not found from the data */
    pki_dist all;      /* durations */
    pki_dist steady;   /* without the warm-up */
    pki_dist warm;     /* the warm-up's */
    uint64_t items;    /* in the steady steps */
    double items_per_second;
    uint64_t kinds[PKI_SHARES]; /* over the steady steps */
    uint64_t broken_down;       /* steady steps whose breakdown is known */
    size_t slowest_count;
    pki_step_row *slowest; /* of the steady ones, slowest first */
    size_t series_count;
    pki_series_row *series;
    /* Median step time in the first and the last third of the steady steps (by the series); 0 if
     * these are too few. */
    double first_third, last_third;
    double drift;            /* last over first, minus 1; 0 if too few */
    pki_processor processor; /* of the thread that makes the steps */
    pki_histogram histogram; /* of `steady` */
    pki_utilisation utilisation;
    size_t step_kind_count;
    pki_step_kind_row *step_kinds; /* most time first */
    pki_step_kind_row between;     /* time.count 0: each step began where the last one ended */
} pki_step_summary;

/* Of a run without steps (measure/whole_run.h). */
typedef struct pki_whole_run {
    uint64_t time; /* 0: there is none */
    char *thread;  /* whose it is */
    uint64_t kinds[PKI_SHARES];
} pki_whole_run;

#define PKI_GPU_SHORT_NS 10000u      /* a kernel below that is a short one */
#define PKI_GPU_LAUNCH_GAP_NS 50000u /* a gap up to that is one between launches */

/* What is known of a device in a step. Times in ns. */
enum pki_gpu_figure {
    PKI_GPU_STEP, /* the step's duration */
    PKI_GPU_BUSY, /* something ran on it, on whatever stream */
    PKI_GPU_IDLE, /* nothing did */
    PKI_GPU_GAPS, /* how many times; a gap across a step's end is one in each */
    PKI_GPU_LONGEST_GAP,
    PKI_GPU_COMM,         /* a collective was in flight on one of its streams... */
    PKI_GPU_COMM_HIDDEN,  /* ...and a stream without one computed meanwhile */
    PKI_GPU_COMM_EXPOSED, /* ...and none did */
    PKI_GPU_MEMORY,       /* bytes in use at the step's end */
    /* from here on only of steps that were measured */
    PKI_GPU_COPY,        /* something was copied */
    PKI_GPU_COPY_ALONE,  /* ...and no kernel ran meanwhile */
    PKI_GPU_SYNC,        /* a thread waited for it */
    PKI_GPU_SYNC_GAPS,   /* idle time of gaps that such a wait reaches into */
    PKI_GPU_LAUNCH_GAPS, /* idle time of other gaps, of those up to PKI_GPU_LAUNCH_GAP_NS */
    PKI_GPU_KERNELS,     /* that began in it */
    PKI_GPU_SHORT_KERNELS,
    PKI_GPU_H2D_TIME, /* copies that began in it, added up: host to device... */
    PKI_GPU_H2D_BYTES,
    PKI_GPU_D2H_TIME,
    PKI_GPU_D2H_BYTES,
    PKI_GPU_D2D_TIME, /* ...within the device... */
    PKI_GPU_D2D_BYTES,
    PKI_GPU_P2P_TIME, /* ...to another one */
    PKI_GPU_P2P_BYTES,
    PKI_GPU_FIGURES
};

/* "step", "busy", ...: their names in the report file */
extern const char *const pki_gpu_figures[PKI_GPU_FIGURES];

typedef struct pki_gpu_copies {
    uint64_t count, time, bytes;
} pki_gpu_copies;

enum { PKI_H2D, PKI_D2H, PKI_D2D, PKI_P2P, PKI_DIRECTIONS };

/* "h2d", "d2h", ... */
extern const char *const pki_direction_names[PKI_DIRECTIONS];

/* A device in some consecutive steps. Times are sums over them. */
typedef struct pki_gpu_series_row {
    uint64_t index, steps;
    uint64_t step, busy, gaps, longest_gap;
    uint64_t copy_alone, sync_gaps, launch_gaps, kernels; /* 0 if it was not measured */
    uint64_t comm_hidden, comm_exposed;                   /* 0 if that is not known */
} pki_gpu_series_row;

/* A device, over the whole run; `per_step` over the steady steps since its first use. */
typedef struct pki_gpu_row {
    uint32_t device;
    bool measured; /* per_step is made of kernels and copies; else of stream spans */
    uint64_t streams;
    uint64_t spans;
    uint64_t collectives; /* timed by events; those that CUPTI measures are kernels */
    uint64_t kernels, short_kernels, kernel_time; /* graphs are among the kernels */
    uint64_t memsets;
    pki_gpu_copies copies[PKI_DIRECTIONS];
    pki_dist per_step[PKI_GPU_FIGURES];
    size_t series_count;
    pki_gpu_series_row *series; /* all steps since its first use (measure/device/series.h) */
} pki_gpu_row;

/* A kernel by its name; the last row may be that of all names for which there was no room. */
typedef struct pki_kernel_row {
    char *name;
    char *region;        /* that launched most of its time; "": none was open */
    double region_share; /* how much of it */
    pki_dist time;
} pki_kernel_row;

#define PKI_OTHER_KERNELS "(other kernels)"

/* What became of what devices and libraries did. */
typedef struct pki_activity_summary {
    uint64_t count;
    uint64_t unwritten;                /* not in the trace */
    uint64_t late;                     /* in no step: told when its step was done with */
    uint64_t unmeasured;               /* missing in steps or distributions for want of memory */
    uint64_t overhead_count, overhead; /* what measuring took, as CUPTI tells; ns */
} pki_activity_summary;

/* A communicator, as this process sees it. */
typedef struct pki_comm_row {
    char *library, *name;
    uint64_t id; /* 0: unknown */
    int32_t rank, size;
    uint64_t calls, bytes;  /* bytes as given to the calls */
    uint64_t time, exposed; /* added up: of operations beside each other more than has passed */
    uint64_t busy, waited;  /* each moment once: any was under way, any was waited for */
    uint64_t on_stream; /* of time: timed on a device's stream; what of it was waited is unknown */
    uint64_t enqueued, started, completed; /* sequence numbers of the last ones, from 1 */
    uint64_t under_way;                    /* at the end: they need not complete in their order */
    uint32_t in_flight;                    /* most at once */
} pki_comm_row;

/* How a library went about it, as it says: "RING", "LL128". */
typedef struct pki_comm_way {
    char *algorithm, *protocol; /* "": not told */
    uint64_t calls;
    double channels; /* mean */
} pki_comm_way;

/* Its operations of one sort and size; bandwidths in GB/s, count 0 where there is none. */
typedef struct pki_operation_row {
    size_t comm;   /* index of pki_summary.comms */
    uint32_t op;   /* a pk_comm_op */
    uint64_t size; /* the class: from so many bytes up to twice that; 0: none */
    uint64_t bytes, exposed;
    pki_dist time, algbw, busbw;
    size_t way_count;
    pki_comm_way *ways; /* those that were told, most calls first */
} pki_operation_row;

/* Its operations of one sort in one region. */
typedef struct pki_comm_region_row {
    char *region; /* "": none was open */
    size_t comm;
    uint32_t op;
    uint64_t bytes, exposed;
    pki_dist time;
} pki_comm_region_row;

typedef struct pki_comm_summary {
    uint64_t unmeasured; /* operations missing in the rows for want of memory or room */
    size_t comm_count, collective_count, region_count, slowest_count;
    pki_comm_row *comms;
    pki_operation_row *collectives; /* by communicator, operation and size */
    pki_comm_region_row *regions;   /* by total time, most first */
    pki_comm_call_row *slowest;     /* slowest first */
    size_t partner_count;
    pki_partner_row *partners; /* by rank; PKI_PARTNERS_OTHER last */
    pki_sequences sequences;
} pki_comm_summary;

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
} pki_run;

/* What perfkit itself took; CPU time in ns. Filled by pki_overhead_fill (measure/overhead.h). */
typedef struct pki_overhead {
    double region_ns;  /* one begin + end, measured at start */
    double total;      /* all below */
    double share;      /* of the process's CPU time if that is known, else of the run's length */
    double recording;  /* region_ns, for each region and point */
    double collector;  /* the collector thread: folding, formatting, compressing, writing */
    double callers;    /* the program's threads that did so: pk_flush, pk_stop, those that ended */
    double backends;   /* threads of backends */
    double counted_ns; /* one begin + end that is counted and not timed; 0: there are none */
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
    pki_stage_summary stages;
    pki_whole_run whole_run;
    pki_cpu_side cpu_side;
    pki_roofline roofline;
    pki_io_summary io;
    pki_energy_summary energy;
    pki_goodput_summary goodput;
    pki_events_summary events;
    pki_backend_row *backends;
    pki_gpu_row *gpus;       /* by ordinal */
    pki_kernel_row *kernels; /* by total time, most first */
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
