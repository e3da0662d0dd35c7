/* lib/measure/costs/sums.h - what counters of energy and of I/O say of a run, of its steps and
 * parts */
#pragma once

#include "measure/rows.h"
#include "stats/tally.h"

/* ---- what counters of energy say of a run, of its steps and of their kinds ---- */

/* A counter only grows, but wraps where its range ends, and may be reset. It is read now and then;
 * between two readings its energy is shared out by time: over the steps by kind, and what lies
 * outside steps. So a kind's energy is known only as well as its stretches (steps of it on end) are
 * long beside the distance of two readings, the period:
 *
 *     error = 2 x period x (highest - lowest power)     for each stretch, and for the run
 *
 * and what is shorter than 10 periods has no figure. No clock, no file: readings come as numbers.
 */

#define PKI_ENERGY_COUNTERS 32
#define PKI_ENERGY_KINDS 16
#define PKI_ENERGY_PERIODS 10

typedef struct pki_energy_counter {
    char name[48];
    double range; /* J, at which it begins anew; 0: it never does */
    bool begun;
    double last, fresh, joules, lowest, highest; /* J; W */
    uint64_t since, at, readings, resets;
    double kinds[PKI_ENERGY_KINDS]; /* J in steps of each kind */
} pki_energy_counter;

typedef struct pki_energy_account {
    size_t count;
    pki_energy_counter counters[PKI_ENERGY_COUNTERS];
    size_t kind_count; /* 0 is the usual one */
    char kinds[PKI_ENERGY_KINDS][48];
    uint64_t steps[PKI_ENERGY_KINDS], time[PKI_ENERGY_KINDS], stretches[PKI_ENERGY_KINDS];
    uint64_t items[PKI_ENERGY_KINDS];
    uint64_t pending[PKI_ENERGY_KINDS]; /* ns of steps since the last round */
    uint64_t round_at;
    uint32_t held;     /* a bit for each GPU whose clocks are held down now */
    bool held_in_step; /* any was, since the last step's end */
    char held_by[64];  /* what did so first */
    uint64_t held_steps, held_time, free_steps, free_time;
    int last_kind; /* -1: none */
    uint64_t last_end;
} pki_energy_account;

void pki_energy_begin(pki_energy_account *account);

/* Which one; -1: there is no room. */
int pki_energy_counter_of(pki_energy_account *account, const char *name, double range);

/* A reading, J. Less than the one before: it has wrapped if it has a range, and then within its
 * upper half; else it was reset, and what it had since the reading before is unknown. */
void pki_energy_read(pki_energy_account *account, int counter, double joules, uint64_t now);

/* All counters have been read. */
void pki_energy_round(pki_energy_account *account, uint64_t now);

/* From here on a GPU's clocks are held down; why: NULL: they are not any more. */
void pki_energy_held(pki_energy_account *account, unsigned gpu, const char *why);

/* A step that has ended. kind NULL: the usual one. */
void pki_energy_step(pki_energy_account *account, const char *kind, uint64_t start, uint64_t end,
                     uint64_t items);

/* ---- the kernel's counts of a process's I/O, sample by sample ---- */

/* Counts only grow; what a run did is the last sample less the first. The best that a device gave
 * is that of the samples a tenth of a second apart or more. No clock, no file. */

#define PKI_IO_WINDOW 100000000u /* ns */

/* The text of /proc/PID/io. False if it is none. */
bool pki_io_parse(const char *text, pki_io_counts *counts);

/* What one has more than the other; 0 where it has less. */
pki_io_counts pki_io_more(const pki_io_counts *now, const pki_io_counts *before);

/* All zero is an empty one. */
typedef struct pki_io_account {
    bool begun;
    uint64_t since, at, window_at; /* ns */
    pki_io_counts first, last, window;
    double best_read, best_write;
} pki_io_account;

void pki_io_add(pki_io_account *account, const pki_io_counts *counts, uint64_t now);

/* Sets what is counted; the other members are left as they are. */
void pki_io_fill(const pki_io_account *account, pki_io_summary *out);

/* ---- what the process read and wrote in each step, reading by reading ---- */

/* A reading has what was done since the one before, and how many steps ended
 * meanwhile: each of them has their mean. No clock, no file. */

enum {
    PKI_IO_READ,
    PKI_IO_WRITTEN,
    PKI_IO_DEVICE_READ,
    PKI_IO_DEVICE_WRITTEN,
    PKI_IO_OPERATIONS,
    PKI_IO_FIGURES
};

typedef struct pki_io_reading {
    uint64_t last, steps; /* the last of its steps, and how many; 0: it is of none */
    double values[PKI_IO_FIGURES];
} pki_io_reading;

typedef struct pki_io_most {
    double value;
    uint64_t step, steps; /* the last of its reading, and how many that has */
} pki_io_most;

/* All zero is an empty one. */
typedef struct pki_io_course {
    uint64_t readings, steps, alone, device;
    pki_tally each[PKI_IO_FIGURES]; /* by steps */
    pki_io_most most[PKI_IO_FIGURES];
} pki_io_course;

void pki_io_course_finish(pki_io_course *course);
void pki_io_course_add(pki_io_course *course, const pki_io_reading *reading);
pki_io_steps pki_io_course_summary(const pki_io_course *course);

/* ---- sums ---- */

/* What counters of energy and of I/O say of a run so far, or of a part
 * of it, as it can be added up: in integers, so windows give the run's own figures again. A report
 * is made of the same sums. */

/* A counter's energy in the run, or in its steps of a kind. */
typedef struct pki_energy_sum {
    char *counter, *step_kind; /* as pki_energy_row has them */
    uint64_t microjoules, time, steps, items;
    uint64_t stretches;                 /* of steps of the kind on end; of the run 1, or 0 */
    uint64_t watched, readings, resets; /* of the counter: ns; readings but the first */
    double lowest, highest;             /* W, between two readings; so far, of parts too */
} pki_energy_sum;

typedef struct pki_energy_sums {
    uint64_t asked; /* first: 0 leaves it out of a line of windows */
    char *why_not, *held_by;
    uint64_t held_steps, held_time, free_steps, free_time;
    size_t row_count;
    pki_energy_sum *rows;
} pki_energy_sums;

/* These are false without memory; `out` is empty before. */

bool pki_energy_sum_up(const pki_energy_account *account, const char *why_not,
                       pki_energy_sums *out);

/* What is new since then. */
bool pki_energy_more(const pki_energy_sums *now, const pki_energy_sums *before,
                     pki_energy_sums *out);

/* In the order of time. */
bool pki_energy_add(pki_energy_sums *into, const pki_energy_sums *more);

/* As a report says it. */
bool pki_energy_fill(const pki_energy_sums *sums, pki_energy_summary *out);

void pki_energy_sums_finish(pki_energy_sums *sums);

/* The same of I/O; the best that a device gave is so far, of parts too. */
pki_io_summary pki_io_sums_more(const pki_io_summary *now, const pki_io_summary *before);
void pki_io_sums_add(pki_io_summary *into, const pki_io_summary *more);
