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
