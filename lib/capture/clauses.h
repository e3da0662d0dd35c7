/* lib/capture/clauses.h - which steps are worth a trace: pk_options.capture, taken apart.
 *
 *     slow=1.2              a step beyond 1.2 x the rolling median of like steps, and the 3 before
 *     slow=1.2,floor:500    and by 500 us at least; without it 100
 *     steps=100-104         these; also "steps=7", and several such clauses
 *     every=1000            each thousandth
 *     cycle=skip:10,wait:5,warmup:1,active:3,repeat:2     active is needed; repeat 0: for ever
 *     request               what `pk capture` asks for
 *     straggler             all ranks have found that this one is late (PK_MPI_STRAGGLERS)
 *     kernels=armed         CUPTI records while one of these is near; kernels=always: all the time;
 *                           kernels=armed,steps:4 so many behind a slow one
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PKI_CAPTURE_RANGES 8
#define PKI_CAPTURE_BEFORE 3          /* steps that are kept with a slow one */
#define PKI_CAPTURE_STEPS_MOST 10000u /* in one capture */
#define PKI_CAPTURE_BEHIND 4          /* a slow step, with CUPTI armed by it */
#define PKI_CAPTURE_BEHIND_MOST 1000u
#define PKI_CAPTURE_STRAGGLER_STEPS 8u /* of a rank that has been found late */

typedef struct pki_step_range {
    uint64_t first, last;
} pki_step_range;

typedef struct pki_cycle {
    uint64_t skip, wait, warmup, active, repeat; /* active 0: there is none */
} pki_cycle;

/* CUPTI cannot look back. */
typedef enum pki_capture_kernels {
    PKI_KERNELS_UNSAID,
    PKI_KERNELS_ARMED, /* it records from a slow step on, and where a capture is foreseen */
    PKI_KERNELS_ALWAYS
} pki_capture_kernels;

typedef struct pki_clauses {
    double slow; /* 0: no such clause */
    uint64_t floor_ns;
    pki_step_range ranges[PKI_CAPTURE_RANGES];
    uint32_t range_count;
    uint64_t every; /* 0: no such clause */
    pki_cycle cycle;
    bool request, straggler;
    pki_capture_kernels kernels;
    uint64_t behind; /* steps behind a slow one that are captured with it, if CUPTI is armed */
} pki_clauses;

/* "" is none. False, and why (which clause, and what is wrong with it). */
bool pki_clauses_parse(const char *text, pki_clauses *clauses, char *why, size_t size);

/* Is one of them about steps? */
bool pki_clauses_await_steps(const pki_clauses *clauses);

/* The most steps that one capture by these clauses is of. */
uint64_t pki_clauses_longest(const pki_clauses *clauses);
