/* lib/core/phase.h - the phases of the training (pk/goodput.h), as they are announced.
 *
 * Announcements are rare, so they stand in a list of the process and not in the rings: who asks for
 * them is the collector, for the account of the run (measure/goodput/goodput.h), and the report.
 * Moments are CLOCK_MONOTONIC, ns.
 *
 * Threads: any; one short lock. A thread that does not get it soon gives up, and is counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pk/goodput.h>

#define PKI_PHASES 6 /* enum pk_phase; 0: none */

/* So long without a break: parts of phases inside each other do not overlap. */
typedef struct pki_phase_part {
    uint64_t begin, end;
    uint32_t phase;
} pki_phase_part;

/* Since pki_phases_reset. */
typedef struct pki_phases {
    bool known;                 /* false: who asked did not get the lock, and nothing else holds */
    uint64_t count[PKI_PHASES]; /* begun */
    uint64_t time[PKI_PHASES];  /* ns, of ended parts */
    uint64_t saves, save_bytes; /* checkpoints that are complete */
    int64_t saved;              /* the last one's step; -1: none */
    uint64_t missed;            /* calls that gave up, parts that found no room */
    uint64_t training_calls;    /* of pk_training_set_step... */
    uint64_t training_at;       /* ...the last one: this is behind... */
    uint64_t training_index;    /* ...the session's step of this number */
    uint32_t open;              /* the phase that runs; 0: none */
    uint64_t since;
} pki_phases;

void pki_phases_reset(void); /* no session is on */
pki_phases pki_phases_now(void);

/* Ended parts that have not been taken yet, the oldest first: how many. */
size_t pki_phases_drain(pki_phase_part *out, size_t most);

void pki_phases_after_fork(void);
