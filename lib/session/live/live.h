/* lib/session/live/live.h - what goes on, for who looks from outside; hangs */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* ---- when is it a hang? The rule alone, on whatever clock ---- */

/* Nothing has ended, no step and no region on any thread, for longer than
 *
 *     hang_seconds, or 5 x the p99 of what is open, if that is more
 *
 * What is open: the step, and the innermost region of the thread that makes the steps; where no
 * thread does, of all threads. (An outer region's p99 would be a whole epoch's.) A region with a
 * limit of its own (pk_region_set_limit) takes the place of both while it is open there, the
 * innermost one first; a region of kind PK_IO without one is no hang, however long it takes.
 * Nothing open, and no step ever made: nobody waits for anything.
 *
 * Who looks may have been stopped itself (SIGSTOP, a suspended machine): time in which nobody
 * looked does not count. */

typedef struct pki_watch_input {
    uint64_t now;   /* ns */
    uint64_t ended; /* steps and regions; any change is progress */
    bool any;       /* something is open, or steps are made */
    uint64_t usual; /* the largest p99 of what is open, ns */
    bool excused;   /* within a phase that may take as long as it takes */
    uint64_t limit; /* of the region that has one, ns; 0: none has */
    uint64_t since; /* when that region began */
} pki_watch_input;

typedef struct pki_watch {
    uint64_t hang;   /* ns; hang_seconds */
    uint64_t period; /* between two looks, ns */
    uint64_t ended, since, last;
    bool begun, raised;
} pki_watch;

typedef enum pki_watch_event {
    PKI_WATCH_NOTHING,
    PKI_WATCH_HANG, /* once, until something ends */
    PKI_WATCH_GOES_ON
} pki_watch_event;

pki_watch_event pki_watch_update(pki_watch *watch, const pki_watch_input *input);
