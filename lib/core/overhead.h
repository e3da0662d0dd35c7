/* lib/core/overhead.h - what recording costs here and now. */
#pragma once

#include <stdint.h>

#define PKI_READY_LEAST 50000u       /* ns that core/ready.h does not look after */
#define PKI_READY_UNKNOWN UINT64_MAX /* of a step: nobody announces borders */

/* In a step's record: ns that it was ready, up to 18 minutes, and 65,536 ns that it was off. */
#define PKI_READY_BITS 40
static inline uint64_t pki_ready_pack(uint64_t ready, uint64_t off)
{
    uint64_t most = (UINT64_C(1) << PKI_READY_BITS) - 1, parts = off >> 16;
    uint64_t parts_most = (UINT64_C(1) << (63 - PKI_READY_BITS)) - 1;
    return (ready < most ? ready : most) | (parts < parts_most ? parts : parts_most)
                                               << PKI_READY_BITS;
}

/* What a thread has had of the processors; ns. */
typedef struct pki_processor {
    uint64_t observed; /* how long it was watched; 0: nothing is known */
    uint64_t running;  /* of that: on a processor */
    uint64_t ready;    /* of that: ready to run, and without one; the rest it waited by itself */
} pki_processor;

/* What perfkit has taken of the processors since the session began; CPU time in ns. It lies in the
 * arena, so that a killed run's is known too. */
typedef struct pki_toll {
    double region_ns;   /* one begin and end, by pki_measure_region_ns */
    uint64_t process;   /* what the whole process has taken meanwhile, perfkit's part included */
    uint64_t collector; /* its thread: folding, formatting, compressing, writing */
    uint64_t callers;   /* the program's threads, where they did the same: pk_flush, pk_stop, and on
                           their way out */
    uint64_t backends;  /* threads of their own */
    pki_processor stepper; /* what the thread that makes steps had of them */
    double counted_ns; /* one of a call that is not timed, and its share of what it takes more to
                          time others of its region; 0: there are none (overhead_max) */
    double overhead_max;
    uint64_t beyond;   /* 1: perfkit takes more than that, with all but few calls not timed */
    uint64_t captures; /* who writes captures of the history: a thread of its own, or pk_stop */
    uint64_t readings; /* the program's threads: what `costs` asks for, at the ends of steps and in
                          sampled calls */
} pki_toll;

/* Nanoseconds of one pk_region_begin and pk_region_end, recorded: the least of several batches. 0
 * without memory. */
double pki_measure_region_ns(uint32_t monotonic);

/* Likewise of a call that is counted and not timed (core/thin.h). */
double pki_measure_counted_ns(void);

/* Both beside work in which each instruction waits for the one before, so that the processor has
 * time for others: by how much they make it longer. As little as that they cost where a program's
 * own work is like that; what it is lies between these and the two above. */
typedef struct pki_hidden_ns {
    double pair, counted;
} pki_hidden_ns;

pki_hidden_ns pki_measure_hidden_ns(uint32_t monotonic);
