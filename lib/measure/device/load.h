/* lib/measure/device/load.h - what devices were busy with, as their own counters tell (NVML's GPM):
 * over the run, in steps of each kind, and in single steps.
 *
 * A reading has the means of an interval, and a device's counts may be PKI_LOAD_LAG old when they
 * are read. So an interval is of a kind of step if it and so much time before it lie in steps of
 * that kind alone, and of a step if they lie in that one; what is of several is counted as mixed,
 * and in the run's means only. Nothing is shared out: steps shorter than an interval have figures
 * by kind where many of a kind follow each other, and none of their own.
 *
 * Intervals wait until the steps in them are known, 1,024 of each device at most; then two become
 * one. No clock: times come as ns since the session started. One thread at a time (the fold lock).
 */
#pragma once

#include <stdbool.h>

#include "measure/rows.h"
#include "stats/tally.h"

#define PKI_LOAD_LAG 100000000u /* ns */
#define PKI_LOAD_DEVICES 16
#define PKI_LOAD_KINDS 8 /* of steps; 0 is the usual one, the last one has all others */
#define PKI_LOAD_WAITING 1024u
#define PKI_LOAD_STRETCHES                                                                         \
    64u /* of steps of one kind on end, and long steps, that are remembered */

typedef struct pki_load_interval {
    uint64_t from, to;
    double values[PKI_LOADS]; /* NAN: not known */
} pki_load_interval;

typedef struct pki_load_sum { /* of a metric: by time */
    uint64_t time, count;
    double sum, least, most;
} pki_load_sum;

typedef struct pki_load_device {
    uint32_t device;
    size_t first, count;
    pki_load_interval *waiting; /* a ring of PKI_LOAD_WAITING, in the order of time */
    pki_load_sum run[PKI_LOADS], kinds[PKI_LOAD_KINDS][PKI_LOADS];
    pki_tally steps[PKI_LOADS]; /* means in usual steps, each at least half covered */
    uint64_t step_start, step_end;
    pki_load_sum step[PKI_LOADS]; /* so far, in that one */
} pki_load_device;

typedef struct pki_load_stretch {
    uint64_t start, end;
    int kind; /* -1: between steps */
} pki_load_stretch;

typedef struct pki_load {
    size_t device_count, kind_count;
    pki_load_device *devices[PKI_LOAD_DEVICES];
    char kinds[PKI_LOAD_KINDS][48];
    uint64_t stretch_count, step_count; /* the last ones are in the rings */
    pki_load_stretch stretches[PKI_LOAD_STRETCHES], steps[PKI_LOAD_STRETCHES];
    uint64_t intervals, mixed, without_room;
} pki_load;

void pki_load_begin(pki_load *load);
void pki_load_finish(pki_load *load);

/* The next interval of a device. */
void pki_load_read(pki_load *load, uint32_t device, const pki_load_interval *interval);

/* A step that has ended, or what was between two. kind NULL: the usual one. */
void pki_load_step(pki_load *load, const char *kind, bool between, uint64_t start, uint64_t end);

/* No more will come: what waits is settled as far as it can be. */
void pki_load_end(pki_load *load);

/* Sets the rows and counts of `out`. False without memory. */
bool pki_load_fill(const pki_load *load, pki_load_summary *out);
