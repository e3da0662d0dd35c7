/* lib/measure/rows.h - what a pki_summary consists of, part by part */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/overhead.h"
#include "measure/kinds.h"
#include "measure/machine/machine.h"
#include "measure/memory/growth.h"
#include "stats/buckets.h"
#include "stats/series.h"

/* ---- where a run ran and what it was: machine, command line, builds ---- */

/* What is not known is "" or 0. */
typedef struct pki_environment {
    uint64_t memory; /* bytes of the machine; 0: nothing of this was looked at */
    uint64_t processors;
    char *cpu, *architecture, *kernel;
    char *gpu, *driver;
    char *command;          /* words that look like secrets are *** */
    char *compiler;         /* of libpk */
    char *program_compiler; /* of the executable, by its .comment section */
    char *build_id;         /* its GNU build ID */
    char *commit, *branch;  /* of the git repository that the working directory was in at the end */
} pki_environment;

/* ---- what of the processors a run could have, and what it had ---- */

/* From looks about once a second while steps were made; `looks` 0: there was none. */
typedef struct pki_cpu_side {
    uint64_t looks;
    /* the thread that makes steps */
    uint64_t forced, own; /* switches: it was taken off its processor; it gave it up */
    /* threads of the process that ran, or were ready to, for more than half of a look's time */
    double busy;        /* mean over the looks */
    uint64_t busy_most; /* in one look */
    uint64_t threads;   /* in the last look, all of them */
    uint64_t allowed;   /* processors that the process may use, and... */
    uint64_t
        allowed_busy; /* ...that its busy threads may use together, in the last look with any */
    /* the cgroup's bound on CPU time */
    double quota; /* processors; 0: there is none */
    uint64_t quota_periods, quota_throttled, quota_throttled_time; /* since the start; ns */
    /* the clock of processors that it may use */
    double clock_mean, clock_most; /* Hz; 0: the kernel does not say */
    uint64_t heat_events;          /* they held it down for heat so often */
    /* the process's memory at the end, on a machine of several nodes; else 0 */
    uint64_t nodes;
    uint64_t near_bytes, far_bytes; /* on nodes whose processors it may use; on others */
    double largest_node;            /* share of the node that has most of it */
    uint64_t own_nodes;             /* nodes whose processors it may use */
} pki_cpu_side;

/* ---- what a report says of communication ---- */

/* Communicators, their operations by size and region, messages by partner, and single operations,
 * which are put beside other ranks'. Part of a pki_summary. */

#define PKI_PARTNERS_OTHER (-1) /* all those that were too many to be told apart */

/* Messages exchanged with a rank of the job. */
typedef struct pki_partner_row {
    int32_t rank;
    uint64_t sent, sent_bytes, sent_time; /* time: of the operations, added up */
    uint64_t received, received_bytes, received_time;
} pki_partner_row;

/* One operation, among those that all its ranks choose alike (comm/figures/figures.h). */
typedef struct pki_sequence_row {
    uint64_t key; /* the same on all its ranks */
    uint64_t start, duration;
    uint64_t waited; /* of it the program did, at its end */
    uint64_t bytes;
    uint32_t op, ranks; /* a pk_comm_op; of the communicator */
    int32_t partner;    /* of a message, or the root: rank of the job; -1: none */
    uint32_t region;    /* around the call, from 1, of pki_sequences.regions; 0: none, not told */
} pki_sequence_row;

typedef struct pki_sequence_region {
    char *name;
} pki_sequence_region;

typedef struct pki_sequences {
    uint64_t operations; /* that rows were chosen from; first: 0 leaves it out of the report file */
    uint64_t one_in;     /* they are those whose key this divides */
    uint64_t origin;     /* the start of the session, ns of... */
    char *clock;         /* ...this clock: the same for processes that share one */
    size_t row_count;
    pki_sequence_row *rows;
    size_t region_count;
    pki_sequence_region *regions;
} pki_sequences;

/* One operation. */
typedef struct pki_comm_call_row {
    char *region;
    size_t comm;
    uint32_t op;
    uint64_t bytes, sequence, start, duration, exposed;
    bool in_step; /* it began in... */
    uint64_t step;
} pki_comm_call_row;

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
    char *algorithm, *protocol; /* "": unknown */
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
    pki_comm_way *ways; /* those that the library named, most calls first */
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
    /* What NCCL told while its plugin's pool was full; those of them that are operations, which are
     * in no row, unless a wrapper counts them. */
    uint64_t dropped_events, dropped_operations;
    size_t comm_count, collective_count, region_count, slowest_count;
    pki_comm_row *comms;
    pki_operation_row *collectives; /* by communicator, operation and size */
    pki_comm_region_row *regions;   /* by total time, most first */
    pki_comm_call_row *slowest;     /* slowest first */
    size_t partner_count;
    pki_partner_row *partners; /* by rank; PKI_PARTNERS_OTHER last */
    pki_sequences sequences;
} pki_comm_summary;

/* ---- calls by path, which is a region and those around it ---- */

/* The call tree of a run, and a step beside usual ones like it. Parts of a pki_summary, made from
 * the events of a trace: a session keeps no paths (docs/design.md says why). */

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
    uint64_t blocked;     /* of self: it waited for something, off its processor; 0: or not known */
    double usual_blocked, usual_calls;
} pki_path_row;

/* What the processor was in, that no region covers, by samples of its stacks; and who had called
 * it. */
typedef struct pki_outside_row {
    char *function, *caller; /* "": not known yet, only... */
    char *place, *build;     /* "/usr/lib/libm.so.6+0x1234", its file's build id; "(kernel)" */
    char *caller_place, *caller_build; /* "": nobody that is known */
    uint64_t samples, ns;
} pki_outside_row;

typedef struct pki_outside {
    uint64_t sampled; /* ns of CPU time of the threads that are; 0: none */
    uint64_t outside; /* of it in no region */
    size_t count;
    pki_outside_row *rows; /* the dearest first */
} pki_outside;

/* Causes, beside the words of out/chrome/events.h for what a thread waits for. */
#define PKI_NO_PROCESSOR "no-processor"
#define PKI_STOPPED "stopped"
#define PKI_SUSPENDED "suspended"
#define PKI_WAITED "waited" /* off its processor, for what the program has asked for */
#define PKI_COLLECTIVE "collective"
#define PKI_PAGE_FAULTS "page-faults"
#define PKI_NUMA "numa"
#define PKI_COMPACTED "huge-pages" /* split, or memory compacted to have some */
#define PKI_MORE_WORK "more-work"
#define PKI_OTHER_KIND "other-kind"
#define PKI_LOWER_CLOCK "lower-clock"
#define PKI_COMPUTE "compute"
#define PKI_LONGER "longer" /* it computed or waited: not known */
#define PKI_LESS "less"     /* all that took less than usual, below 0 */
#define PKI_BY_QUOTA "its cgroup's quota"
#define PKI_BY_HOST "the host of this virtual machine"
#define PKI_BY_HEAT "heat"
#define PKI_BY_OWN_THREADS "other threads of its own"

/* What slow steps went to in place of what like steps do, where a session has followed it
 * (session/captures/states.c). */
typedef struct pki_slow_cause {
    char *cause;    /* PKI_SUSPENDED, _STOPPED, _NO_PROCESSOR, _WAITED, _COMPUTE or _LONGER */
    uint64_t steps; /* of which it is the dearest... */
    double ns;      /* ...and what it took of all of them */
    char *by;       /* "": not known, or there is none */
} pki_slow_cause;

/* Steps that the clause slow= of captures has found. */
typedef struct pki_slow_steps {
    uint64_t count;
    double longer; /* ns: than the median of like ones, all of them together */
    size_t cause_count;
    pki_slow_cause *causes; /* the dearest first */
} pki_slow_steps;

/* What a step's difference from the usual ones is made of (tools/beside/causes.c). */
typedef struct pki_cause {
    char *cause;    /* a word of docs/internals/trace-format.md */
    double ns;      /* of the difference */
    bool outside;   /* the program did nothing for it */
    bool leads;     /* a good part, and of no region, which would be blamed for it: named first */
    bool waits;     /* off its processor, for what the program has asked for */
    char *region;   /* the path; "": outside every region, or of none */
    char *function; /* that its processor was in more than usual; "": not known, or in none */
    char *caller;   /* of that, as a rule; "": not known */
    char *call, *object, *by, *by_region; /* "": not known, or there is none */
    double now, usual;                    /* calls, items or Hz; 0: it is not about these */
    double sampled, sampled_usual;   /* ns of ns in that function, and usually in it, by samples: */
    uint64_t samples, usual_samples; /* of the path, in the step, and in all usual ones */
} pki_cause;

/* What the process read or wrote in a step, as a counter of costs=io says, and in usual ones. */
typedef struct pki_io_beside {
    char *name;     /* "io.written" */
    uint64_t value; /* since the reading before, so of... */
    uint64_t steps; /* ...so many steps, of which it is the last */
    double usual;   /* of one: the median */
    bool telling;   /* by enough to be worth a line */
} pki_io_beside;

/* How long its thread could have gone on and had no processor, where only this is known, and not in
 * which regions. */
typedef struct pki_unplaced {
    uint64_t ready; /* ns in the step, about; 0: none, or the paths have it */
    double usual;   /* in a usual one, the median */
} pki_unplaced;

/* A step of a trace beside usual ones like it. */
typedef struct pki_beside {
    uint64_t took; /* 0: there is nothing to set beside each other */
    uint64_t step;
    double usual;        /* what the usual ones took, the median */
    uint64_t usual_step; /* the one that is nearest to that */
    uint64_t usual_count;
    bool same_kind; /* as pk_step_kind has announced them; else there were none, and it is others */
    size_t path_count, cause_count;
    pki_cause *causes;  /* those that lead, the dearest, the others, the dearest first */
    double unexplained; /* of the difference, ns */
    char *untold;       /* sentences: what the kernel does not say, and why; "" */
    pki_unplaced unplaced;
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
    uint64_t refused;      /* captures of the run so far */
    uint64_t kernels_late; /* steps whose kernels had not all come when it was written */
    size_t step_count;
    pki_captured_step *steps;
} pki_capture;

/* ---- the stages of the loop, of a summary ---- */

/* What a job of many ranks is made of (measure/steps/stages.h). */

/* A region, by the self time of which the thread that makes steps divides each of them. */
typedef struct pki_stage_row {
    char *name;
    uint32_t kind;
} pki_stage_row;

/* A block of steps in numbers: these, and the self time of each stage. */
enum pki_block_head {
    PKI_BLOCK_INDEX, /* of its first step */
    PKI_BLOCK_STEPS,
    PKI_BLOCK_TIME, /* from begin to end, added up */
    PKI_BLOCK_ITEMS,
    PKI_BLOCK_HEAD
};

/* The steps of a kind, block behind block. */
typedef struct pki_loop_row {
    char *name; /* "": the usual kind */
    size_t number_count;
    uint64_t *numbers;
    size_t no_processor_count;
    uint64_t *no_processor; /* ns, of each block: see core/ready.h. NULL: not known */
    size_t seat_count;
    uint64_t *seats; /* two of each block: a processor, and how much of the thread's own time was
                        there (core/seats.h; 0: not known). NULL: of none is it known */
    size_t start_count;
    uint64_t *starts; /* of each block: when it began, ns since the session did. NULL: not known */
} pki_loop_row;

typedef struct pki_stage_summary {
    uint64_t width;  /* numbers of a block; 0: there are none */
    uint64_t warmup; /* so many first steps of the usual kind are */
    size_t stage_count, loop_count;
    pki_stage_row *stages; /* in the order in which they first began */
    pki_loop_row *loops;   /* the usual kind first */
} pki_stage_summary;

/* ---- what a run cost beside time, as the report says it ---- */

/* What the kernel counts of a process (/proc/PID/io). */
typedef struct pki_io_counts {
    uint64_t read_chars, write_chars; /* bytes of calls, wherever they came from */
    uint64_t read_calls, write_calls;
    uint64_t read_device, write_device; /* bytes from a device, and for one */
} pki_io_counts;

/* Of what was done in a step, by steps; of a reading that has several, each has the mean. */
typedef struct pki_io_step_figure {
    pki_dist each;
    uint64_t most_step,
        most_steps; /* where the most is: the last step of that reading, of so many */
} pki_io_step_figure;

typedef struct pki_io_steps {
    uint64_t steps;           /* that readings have; first: 0 leaves it out of the report file */
    uint64_t readings, alone; /* alone: steps with a reading of their own */
    uint64_t device;          /* steps of readings with anything from or for a device */
    pki_io_step_figure read, written, device_read, device_written, operations;
} pki_io_steps;

typedef struct pki_io_summary {
    uint64_t asked;    /* first: 0 leaves it out of the report file */
    char *why_not;     /* NULL or "": the counts are known */
    uint64_t observed; /* ns */
    uint64_t read_chars, write_chars, read_calls, write_calls, read_device, write_device;
    double best_read,
        best_write;           /* bytes per second of a device, in a tenth of a second and more */
    uint64_t exposed, hidden; /* self time of kind io: of the thread that makes steps, of others */
    bool blocked_known;       /* the kernel counts the next one */
    uint64_t blocked;         /* ns: the former thread waited for a device */
    uint64_t saves, save_time, save_bytes; /* checkpoints that were announced (pk/goodput.h) */
    pki_io_steps steps;                    /* of the run alone, not of its windows */
} pki_io_summary;

#define PKI_ENERGY_RUN "(run)" /* step_kind of the run's row; a kind of steps... */

/* A counter's energy, of the run or of its steps of a kind. */
typedef struct pki_energy_row {
    char *counter, *step_kind; /* ...whose name begins so has it twice: "(run)", "", "(run)(run)" */
    double joules, watts, per_step, per_item, error; /* J; all 0 if it is... */
    bool refused;                                    /* ...shorter than 10 periods */
    uint64_t time, steps, items, period, resets;     /* ns; period: of the readings */
} pki_energy_row;

typedef struct pki_energy_summary {
    uint64_t asked; /* first: 0 leaves it out of the report file */
    char *why_not;  /* "": there are counters, and all of them could be read */
    size_t row_count;
    pki_energy_row *rows;
    char *held_by; /* what held a GPU's clocks down, "" if nothing did, in... */
    uint64_t held_steps, held_time, free_steps, free_time; /* ...usual steps; and the others */
} pki_energy_summary;

/* Means of a row below: of a call. */
enum {
    PKI_EVENT_INSTRUCTIONS,
    PKI_EVENT_CYCLES,
    PKI_EVENT_CACHE_MISSES,
    PKI_EVENT_BRANCH_MISSES,
    PKI_EVENT_PROCESSOR, /* ns on one */
    PKI_EVENT_FAULTS,
    PKI_EVENT_SWITCHES,
    PKI_EVENT_MIGRATIONS,
    PKI_EVENT_SLOTS, /* of the pipeline */
    PKI_EVENT_MEANS
};

/* Quotients of a row below: by cycles, in 1,000 instructions, of all slots. */
enum {
    PKI_EVENT_IPC,
    PKI_EVENT_CACHE,
    PKI_EVENT_BRANCH,
    PKI_EVENT_RETIRING,
    PKI_EVENT_BAD_SPECULATION,
    PKI_EVENT_FRONTEND_BOUND,
    PKI_EVENT_BACKEND_BOUND,
    PKI_EVENT_RATIOS
};

/* What sampled calls of a region have counted, of each call on average. */
typedef struct pki_events_row {
    char *region;
    uint64_t calls, sampled, missed; /* missed: sampled, without the processor's counters */
    uint64_t time;                   /* of all calls, ns */
    double value[PKI_EVENT_MEANS], error[PKI_EVENT_MEANS]; /* -1: not known */
    double ratio[PKI_EVENT_RATIOS], ratio_error[PKI_EVENT_RATIOS];
} pki_events_row;

typedef struct pki_events_summary {
    uint64_t asked; /* first: 0 leaves it out of the report file */
    char *why_not_hardware, *why_not_software,
        *why_not_topdown;                /* "": not asked for, or all is counted */
    uint64_t threads, threads_without;   /* that were sampled; that could not be... */
    char *why_threads;                   /* ...for that reason */
    uint64_t threads_lost, calls_beyond; /* descriptors closed; no room for the region */
    double bound;                        /* share of CPU time */
    uint64_t spent;                      /* ns of it */
    size_t row_count;
    pki_events_row *rows; /* by the regions' time, most first */
} pki_events_summary;

/* ---- what a report says of devices and their kernels: part of a pki_summary ---- */

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
    uint64_t graphs, graph_time;                  /* recorded as wholes, whatever is inside */
    uint64_t memsets;
    pki_gpu_copies copies[PKI_DIRECTIONS];
    pki_dist per_step[PKI_GPU_FIGURES];
    size_t series_count;
    pki_gpu_series_row *series; /* all steps since its first use (measure/device/steps.h) */
} pki_gpu_row;

/* Graphs recorded as wholes, of the time of all kernels; whether they are enough of it that what
 * may be inside them, gaps and collectives, matters. */
#define PKI_GPU_GRAPHS_SHARE 0.01
double pki_gpu_graphs_share(const pki_gpu_row *row);
bool pki_gpu_graphs_told(const pki_gpu_row *row);

/* What a device was busy with, as its own counters tell; shares first. */
enum {
    PKI_LOAD_SM,        /* SMs that had work */
    PKI_LOAD_OCCUPANCY, /* warps in them, of those that fit */
    PKI_LOAD_TENSOR,    /* tensor cores, of whatever precision */
    PKI_LOAD_FP64,      /* and the other pipes */
    PKI_LOAD_FP32,
    PKI_LOAD_FP16,
    PKI_LOAD_DRAM,      /* its bandwidth */
    PKI_LOAD_NVLINK_IN, /* bytes a second, from here on */
    PKI_LOAD_NVLINK_OUT,
    PKI_LOAD_PCIE_IN,
    PKI_LOAD_PCIE_OUT,
    PKI_LOADS,
    PKI_LOAD_SHARES = PKI_LOAD_NVLINK_IN
};

/* "sm_active", ...: as counters are called */
extern const char *const pki_load_names[PKI_LOADS];

/* One of these of a device, in the run or in its steps of a kind. Means are by time. */
typedef struct pki_load_row {
    uint32_t device;
    char *metric, *step_kind; /* "(run)", "" and others as of pki_energy_row */
    uint64_t intervals, time; /* that it is made of; ns */
    double mean, least, most; /* %, or bytes a second; the extremes are of intervals */
    pki_dist per_step;        /* means of usual steps that are long enough; in the run's row */
} pki_load_row;

typedef struct pki_load_summary {
    uint64_t intervals;           /* first: 0 leaves it out of the report file */
    uint64_t mixed, without_room; /* in steps of several kinds or none; lost */
    size_t row_count;
    pki_load_row *rows; /* by device, metric; the run's first */
} pki_load_summary;

/* Something that a device said of itself, so many times. */
typedef struct pki_gpu_event_row {
    uint32_t device;
    char *what; /* "xid", "clocks", "rows" */
    char *text;
    uint64_t number;             /* of the XID; rows replaced */
    uint64_t count, first, time; /* ns: when first; how long together, 0 of a moment */
} pki_gpu_event_row;

typedef struct pki_gpu_event_summary {
    uint64_t count;  /* first: 0 leaves it out of the report file */
    uint64_t beyond; /* for which there was no row */
    size_t row_count;
    pki_gpu_event_row *rows; /* in the order of their first time */
} pki_gpu_event_summary;

/* A kernel by its name; the last row may be that of all names for which there was no room. */
typedef struct pki_kernel_row {
    char *name;
    char *region;        /* that launched most of its time; "": none was open */
    double region_share; /* how much of it */
    pki_dist time;
} pki_kernel_row;

#define PKI_OTHER_KERNELS "(other kernels)"

/* ---- a run's memory in numbers ---- */

/* Part of a pki_summary. Bytes, and per step means per step of whatever kind. */

/* What libpk_alloc counted of a region's own: what was asked for while it was the innermost one. */
typedef struct pki_memory_region {
    char *name;                                /* "": no region was open */
    uint64_t allocations, bytes, frees, freed; /* in the session */
    uint64_t live;                             /* at its end, of whatever age */
    uint64_t peak, at_peak;                    /* the most; and when all regions' was at its most */
    double steady; /* allocations in a step of the run's later half or more */
    pki_growth growth;
} pki_memory_region;

/* What the kernel says of the process, of the run so far or, but for the extremes, a part of it. */
typedef struct pki_memory_sum {
    uint64_t looks; /* first: 0 leaves it out of a line of windows */
    uint64_t resident, most_resident, most_private; /* at the end; the most so far */
    uint64_t minor_faults, major_faults;
} pki_memory_sum;

typedef struct pki_memory_summary {
    uint64_t looks;                   /* first: 0 leaves it out of the report file */
    uint64_t resident, most_resident; /* at the end; the most since the program's start */
    uint64_t most_private; /* that is no file's and shared with nobody, as far as was seen */
    uint64_t minor_faults, major_faults;
    double steady_minor, steady_major;              /* in a step of the later half or more */
    pki_dist step_resident, step_minor, step_major; /* by steps */
    size_t series_count;
    struct pki_counter_point *series; /* resident, by time; as a counter's (measure/summary.h) */
    pki_growth growth;                /* of private memory */
    uint64_t limit, used; /* the nearest limit and the most against it; limit 0: there is none */
    char *limit_of;       /* whose: "cgroup", "RLIMIT_AS" */
    char *allocator;      /* beneath libpk_alloc; "": that is not there, or counts nothing... */
    char *uncounted;      /* ...for this reason */
    uint64_t live, peak, within; /* bytes allocated: at the end, at most; and how exact peaks are */
    uint64_t sampled;            /* all of it estimated from one byte in so many; 0: it is not */
    uint64_t steady_steps;       /* of `steady` */
    size_t region_count;
    pki_memory_region *regions; /* by bytes at the peak, most first */
} pki_memory_summary;

/* What CUDA has allocated, as CUPTI records it: a kind of memory on a place. */
typedef struct pki_gpu_memory_kind {
    char *kind; /* "device", "pool", "array", "managed", "static", "pinned" */
    uint64_t allocations, bytes, frees, freed, live, peak, at_peak;
} pki_gpu_memory_kind;

/* A memory pool: what it has reserved of the device, and how much of that was in use. */
typedef struct pki_gpu_pool_row {
    uint64_t pool; /* a number on its device, from 0, as they were seen */
    bool gone;     /* it was destroyed */
    uint64_t reserved, used, most_reserved, used_then; /* at the end; when most was reserved */
    double unused;                                     /* 1 - used_then / most_reserved */
} pki_gpu_pool_row;

/* A device's, or what is pinned of the host's. Of pools: what they have reserved of the device, at
 * the end and at most; and how much of that was in use then. */
typedef struct pki_gpu_memory_place {
    char *place;    /* "gpu0"; "host" */
    uint64_t total; /* bytes of the device; 0: unknown */
    uint64_t allocations, bytes, frees, freed, live, peak, peak_ns;
    uint64_t held, most_held; /* of the device: pools count with all that they have reserved */
    uint64_t in_use;          /* the most that NVML saw in use, by all processes; 0: unknown */
    uint64_t pool_reserved, pool_used, most_reserved, used_then;
    double unused; /* 1 - used_then / most_reserved */
    double steady; /* allocations of its own, not of a pool, in a step of the later half */
    pki_growth growth;
    size_t kind_count;
    pki_gpu_memory_kind *kinds;
    size_t region_count;
    pki_memory_region *regions; /* by bytes at the peak, most first */
    size_t pool_count;
    pki_gpu_pool_row *pools; /* by number */
} pki_gpu_memory_place;

typedef struct pki_gpu_memory_summary {
    uint64_t asked;                        /* first: 0 leaves it out of the report file */
    char *why_not;                         /* "": it was recorded */
    uint64_t operations;                   /* allocations and frees that were recorded */
    uint64_t unknown_frees, unknown_freed; /* of what was allocated before, and bytes */
    uint64_t missed_frees;                 /* an address was allocated anew and never freed */
    uint64_t untied;                       /* region unknown: these count outside */
    uint64_t dropped, lost; /* by CUPTI, of whatever kind; without a time, or memory for it */
    uint64_t steady_steps;  /* of `steady` */
    uint64_t pools_beyond;  /* records of pools that there was no row for */
    size_t place_count;
    pki_gpu_memory_place *places;
} pki_gpu_memory_summary;

/* A place, in a part of the run: what can be added up. */
typedef struct pki_gpu_memory_sum {
    char *place;
    uint64_t allocations, bytes, frees, freed;     /* in the part */
    uint64_t live, held, pool_reserved, pool_used; /* at its end */
    uint64_t peak, most_held, most_reserved;       /* the most in the part */
    uint64_t peak_ns, used_then; /* since the session's start; of what was reserved then */
    uint64_t peak_so_far;        /* of the run: not in the file */
} pki_gpu_memory_sum;

typedef struct pki_gpu_memory_sums {
    uint64_t asked; /* first: 0 leaves it out of a line of windows */
    char *why_not;
    uint64_t operations, dropped, lost;
    size_t place_count;
    pki_gpu_memory_sum *places;
} pki_gpu_memory_sums;

/* ---- what a report says of steps: part of a pki_summary ---- */

/* One region's part in one step. */
typedef struct pki_step_part {
    char *name;
    uint32_t kind;
    uint64_t self;
    double usual; /* its median over the steady steps */
} pki_step_part;

/* Of its own time, as libpk_mpi tells (core/ready.h), ns: ready to run without a processor, and off
 * its processor for whatever reason. */
typedef struct pki_step_off {
    uint64_t told; /* 0: nobody does */
    uint64_t ready, off;
} pki_step_off;

typedef struct pki_step_row {
    uint64_t index, start, duration, items;
    uint64_t kinds[PKI_SHARES];
    pki_step_off processor; /* slowest steps only */
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
    uint64_t median; /* exact up to 8 steps, see measure/steps/stages.h beyond */
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

/* What steps were taken from, in a program that says nothing of them (lib/attach). */
typedef struct pki_found_steps {
    uint64_t turns;  /* of the loop; 0: nothing was looked for, or found; first */
    uint64_t time;   /* of all these, ns */
    uint64_t before; /* the first of these, over before it was known: no steps */
    uint64_t alike;  /* percent of the turns that were looked at with a usual content */
    char *by;        /* what each begins with... */
    char *step;      /* ...and how `pk run --step` has it; "": not at all */
} pki_found_steps;

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

/* ---- what a pki_summary says of requests ---- */

/* What the time of requests went to, ns; the parts sum up to the total (pk/request.h). */
typedef struct pki_request_parts {
    uint64_t count; /* of them; first */
    uint64_t total, queued, preempted, prefill, crowded, decode, behind;
} pki_request_parts;

#define PKI_SLOW_REQUESTS 10

typedef struct pki_slow_request {
    pki_request_parts parts;
    uint64_t serial; /* of its span in the trace */
    uint64_t start, ttft, tokens, preemptions, first_step, steps;
    uint32_t outcome; /* a pk_request_outcome */
} pki_slow_request;

/* Requests that have ended. */
typedef struct pki_request_summary {
    uint64_t count; /* first: 0 leaves it out of the report file */
    uint64_t finished, cancelled, failed, good, tokens, preemptions, dropped;
    uint64_t ttft_limit, tpot_limit; /* ns; 0: none */
    double goodput;                  /* good of all; without limits that of the finished */
    uint64_t slow_from;              /* slow: those that took so long; 0: that missed a limit */
    pki_request_parts all, slow;
    size_t slowest_count;
    pki_slow_request *slowest;
} pki_request_summary;
