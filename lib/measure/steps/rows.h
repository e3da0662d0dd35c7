/* lib/measure/steps/rows.h - what a report says of steps: part of a pki_summary. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/overhead.h"
#include "measure/kinds.h"
#include "measure/machine/machine.h"
#include "stats/series.h"

/* One region's part in one step. */
typedef struct pki_step_part {
    char *name;
    uint32_t kind;
    uint64_t self;
    double usual; /* its median over the steady steps */
} pki_step_part;

typedef struct pki_step_row {
    uint64_t index, start, duration, items;
    uint64_t kinds[PKI_SHARES];
    /* slowest steps only: the parts furthest above their usual, biggest excess first */
    size_t part_count;
    pki_step_part *parts;
} pki_step_row;

/* The step series, bounded: entry i stands for `merged` consecutive steps. */
typedef struct pki_series_row {
    uint64_t index, start; /* of its first step */
    uint64_t steps;        /* in this entry */
    uint64_t duration;     /* sum; kinds and items too */
    uint64_t longest, shortest;
    uint64_t median; /* exact up to 8 steps, see measure/steps/series.h beyond */
    uint64_t items;
    uint64_t kinds[PKI_SHARES];
} pki_series_row;

/* Steps of a kind of their own (pk_step_kind), or the time between steps. */
typedef struct pki_step_kind_row {
    pki_dist time; /* first: count 0 leaves it out of the report file */
    char *name;    /* NULL of what lies between steps */
    uint64_t items;
    uint64_t broken_down;       /* so many of them, of which... */
    uint64_t kinds[PKI_SHARES]; /* ...this is the self time of the thread that makes steps */
} pki_step_kind_row;

/* Of the steps of the usual kind; the others are in step_kinds. */
typedef struct pki_step_summary {
    uint64_t count;    /* all closed steps */
    uint64_t warmup;   /* so many first ones told apart */
    bool warmup_given; /* by the option, not found from the data */
    pki_dist all;      /* durations */
    pki_dist steady;   /* without the warm-up */
    pki_dist warm;     /* the warm-up's */
    uint64_t items;    /* in the steady steps */
    double items_per_second;
    uint64_t kinds[PKI_SHARES]; /* over the steady steps */
    uint64_t broken_down;       /* steady steps whose breakdown is known */
    size_t slowest_count;
    pki_step_row *slowest; /* of the steady ones, slowest first */
    size_t series_count;
    pki_series_row *series;
    /* Median step time in the first and the last third of the steady steps (by the series); 0 if
     * these are too few. */
    double first_third, last_third;
    double drift;            /* last over first, minus 1; 0 if too few */
    pki_processor processor; /* of the thread that makes the steps */
    pki_histogram histogram; /* of `steady` */
    pki_utilisation utilisation;
    size_t step_kind_count;
    pki_step_kind_row *step_kinds; /* most time first */
    pki_step_kind_row between;     /* time.count 0: each step began where the last one ended */
} pki_step_summary;
