/* lib/measure/costs/sums.h - what counters of energy and of I/O say of a run so far, or of a part
 * of it, as it can be added up: in integers, so windows give the run's own figures again. A report
 * is made of the same sums. */
#pragma once

#include "measure/costs/energy.h"

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
