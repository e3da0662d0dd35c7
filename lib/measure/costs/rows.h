/* lib/measure/costs/rows.h - what a run cost beside time, as the report says it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/buckets.h"

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
