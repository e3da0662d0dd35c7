/* lib/capture/choose.h - from steps that have ended to those of which a trace is to be made.
 *
 * Decided after the fact: the steps before a slow one are still there (lib/history). Steps may be
 * missing, where a ring was full.
 *
 * Threads: one at a time (the drain lock). No clock of its own, no file, no memory.
 */
#pragma once

#include "capture/clauses.h"
#include "capture/median.h"

typedef enum pki_capture_reason {
    PKI_CAPTURE_SLOW,
    PKI_CAPTURE_STEPS,
    PKI_CAPTURE_EVERY,
    PKI_CAPTURE_CYCLE,
    PKI_CAPTURE_CALL,     /* pk_capture */
    PKI_CAPTURE_REQUEST,  /* pk capture */
    PKI_CAPTURE_HANG,     /* the watchdog */
    PKI_CAPTURE_STRAGGLER /* all ranks: this one is late */
} pki_capture_reason;

const char *pki_capture_reason_name(pki_capture_reason reason);

/* It is of what the history holds at that moment. */
static inline bool pki_capture_is_of_now(pki_capture_reason reason)
{
    return reason == PKI_CAPTURE_CALL || reason == PKI_CAPTURE_HANG ||
           reason == PKI_CAPTURE_STRAGGLER;
}

/* Within the hour's budget those of more worth win: of slow steps their ratio to the median, of
 * those by turn 1, of those that somebody has asked for more than any step's. */
#define PKI_WORTH_TURN 1.0
#define PKI_WORTH_ASKED 1e9

typedef struct pki_wish {
    uint64_t first, last; /* steps; last UINT64_MAX: what there is now, in a run without steps */
    pki_capture_reason reason;
    double worth;
    uint64_t slow_step, slow_ns, median_ns; /* of PKI_CAPTURE_SLOW */
    char text[96];                          /* the program's words; "" for none */
    bool cut;                               /* the run ended before its last step */
    uint32_t serial;                        /* of a request; 0: none */
} pki_wish;

typedef struct pki_chooser {
    pki_clauses clauses;
    pki_medians_by_kind medians;
    uint64_t next;       /* the step that runs */
    uint32_t ranges_met; /* a bit for each that is over */
} pki_chooser;

/* Slow steps that follow each other are one capture, of so many steps at most. False: these are
 * two. */
#define PKI_WISH_MERGED_STEPS 32
bool pki_wish_merge(pki_wish *wish, const pki_wish *next);

#define PKI_WISHES_MOST (PKI_CAPTURE_RANGES + 3) /* that one step can give rise to */

/* A step has ended: how many wishes there are now. */
unsigned pki_choose(pki_chooser *chooser, uint64_t number, uint32_t kind, uint64_t ns,
                    pki_wish wishes[PKI_WISHES_MOST]);

/* Is one of these steps, none of which is over, to be captured by its number, or the first of them
 * in a cycle's warm-up? */
bool pki_choose_foresees(const pki_chooser *chooser, uint64_t first, uint64_t last);

/* The run has: what has begun is kept, and cut. */
unsigned pki_choose_at_end(pki_chooser *chooser, pki_wish wishes[PKI_WISHES_MOST]);
