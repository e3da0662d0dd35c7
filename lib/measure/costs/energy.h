/* lib/measure/costs/energy.h - what counters of energy say of a run, of its steps and of their
 * kinds.
 *
 * A counter only grows, but wraps where its range ends, and may be reset. It is read now and then;
 * between two readings its energy is shared out by time: over the steps by kind, and what lies
 * outside steps. So a kind's energy is known only as well as its stretches (steps of it on end) are
 * long beside the distance of two readings, the period:
 *
 *     error = 2 x period x (highest - lowest power)     for each stretch, and for the run
 *
 * and what is shorter than 10 periods has no figure. No clock, no file: readings come as numbers.
 */
#pragma once

#include "measure/costs/rows.h"

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
