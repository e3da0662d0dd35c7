/* lib/measure/machine/rows.h - what a report says of the machine's limits: part of a pki_summary.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A region beside the machine's limits (roofline.h); rates per second, of all its
 * threads together. */
typedef struct pki_roofline_row {
    char *region;
    double share;        /* of the self time of all regions */
    double threads;      /* that ran it at once */
    bool all_processors; /* it is held against the roof of all: more than these were at work */
    double intensity;    /* operations per byte; 0: without bytes, or without operations */
    double bytes_per_second, flops_per_second;
    double of_double, of_single; /* the achieved share of the attainable, by precision */
    bool memory_bound_double, memory_bound_single;
} pki_roofline_row;

/* The steps' operations beside the hardware's peak (utilisation.h); of the steady steps that have
 * told theirs. */
typedef struct pki_utilisation {
    uint64_t steps; /* 0: none has */
    uint64_t time;  /* of these steps, ns */
    double model, hardware;
    double peak;     /* operations per second; 0: not known, and... */
    double mfu, hfu; /* ...these are 0, too */
    char *precision; /* of the peak; "" if it is a number of the user's alone */
    char *source;    /* of the peak; or why it is not known. NULL: nobody has looked for it */
} pki_utilisation;

/* Limits of one processor and of all: B/s, operations/s. */
typedef struct pki_roofline {
    uint64_t measured; /* s since 1970; 0: there is none */
    char *host, *cpu;  /* where it was measured */
    uint64_t processors;
    double bandwidth_one, bandwidth_all;
    double double_one, double_all, single_one, single_all;
    size_t row_count;
    pki_roofline_row *rows; /* in the order of the regions */
} pki_roofline;
