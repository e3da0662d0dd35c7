/* lib/measure/thinning.h - which regions' calls are not all timed, so that perfkit keeps to its
 * share.
 *
 * Decisions alone, of what has been counted and measured since the last look: no clock, no thread,
 * so they are tested on costs that are made up. The regions that cost most go first, step by step
 * down a ladder: all calls; no events in the trace; one call of 8 timed, of 16, ... 4096. Where
 * there is room they come back up, one step at a time. Between the share that sends regions down
 * (0.85 of the bound), the one that they are sent to (0.65) and the one below which they may come
 * up (0.4, and 0.5 with what comes up) lies the room that keeps this from flapping; and whoever has
 * to go down soon after coming up waits twice as long the next time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a call costs, ns. */
typedef struct pki_thin_costs {
    double pair;                        /* begin and end, recorded on the fast path */
    double timed;                       /* the same for a timed call of a thinned region */
    double counted;                     /* begin and end of an untimed one */
    double pair_hidden, counted_hidden; /* the same two beside work that the processor does
                                           meanwhile: what they take at least */
    double fold;                        /* per record: the collector's... */
    double format;                      /* ...and with an event in the trace so much more */
} pki_thin_costs;

typedef struct pki_thin_region {
    uint32_t id;
    uint32_t thin;           /* as in pki_thin (core/thin.h); the answer is here, too */
    uint64_t timed, untimed; /* calls since the last look */
} pki_thin_region;

/* What a stretch of the run has taken, ns of CPU time. */
typedef struct pki_thin_input {
    double process; /* all of it, perfkit's part included */
    double beside;  /* perfkit's, but for begin and end: the collector and whoever does its work */
} pki_thin_input;

typedef struct pki_thinning {
    double bound; /* share of the process's CPU time */
    bool traced;  /* events are written */
    pki_thin_costs costs;
    double scale; /* what the collector has taken, by what the costs say; begins as 1 */
    double share; /* perfkit's, in the stretch before the last look */
    double over;  /* ns taken beyond the bound so far, and not saved since; at most some seconds' */
    uint32_t roomy;    /* looks in a row with room */
    uint32_t patience; /* so many before something comes up */
    uint32_t since_up; /* looks since something did */
    uint32_t spent;    /* looks in a row at which nothing was left to be saved, and what is sure to
                          be taken was more than may be... */
    double sure, cpu;  /* ...that, in them, and the process's CPU time; ns */
    bool beyond;       /* it has been so for long enough to be said */
} pki_thinning;

void pki_thinning_init(pki_thinning *thinning, double bound, bool traced, pki_thin_costs costs);

/* Changes regions[].thin. True: it has changed any. */
bool pki_thinning_adjust(pki_thinning *thinning, const pki_thin_input *input,
                         pki_thin_region *regions, size_t count);
