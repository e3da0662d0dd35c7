/* lib/measure/goodput/account.h - where a run's time goes: each moment into one part.
 *
 *     a moment is     a hang, if the watchdog has found one,
 *                     else the phase that is announced (pk/goodput.h),
 *                     else what its step is: by its kind, and whether the training has been as far
 *                     else start-up before the first step, other after it
 *
 * Of a usual step the self time of kind PK_DATA is waiting for data, as far as no phase lies in it;
 * a step that is recomputed is that as a whole. The first step of a run that never calls
 * pk_step_begin holds its set-up: what it takes beyond the mean of those after it is start-up.
 *
 * All moments are ns since the session's start. The parts of pki_account_parts sum to the length of
 * the run exactly. A function of its arguments: no clock, no file.
 *
 * Threads: one at a time (the collector, under the fold lock).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "measure/goodput/parts.h"

#define PKI_ACCOUNT_SPANS 256 /* phases and hangs in one step; further ones count as the step */

/* Places of what has not ended: a phase, a hang. Those that have follow. */
enum { PKI_ACCOUNT_PHASE, PKI_ACCOUNT_HANG, PKI_ACCOUNT_ENDED };

typedef struct pki_account_span {
    uint64_t begin, end;
    uint32_t part;
} pki_account_span;

typedef struct pki_account {
    uint64_t before;            /* the process's time before the session: start-up */
    int64_t furthest_before;    /* steps behind the training in earlier runs; -1: unknown */
    int64_t at;                 /* steps behind it now; -1: the program does not say */
    uint64_t steps, recomputed; /* usual ones */

    uint64_t parts[PKI_PARTS]; /* of [0, covered), but for the first step */
    uint64_t covered;
    size_t span_count;
    pki_account_span spans[PKI_ACCOUNT_SPANS];
    bool begun, first_held; /* a step has ended; the first one is in none of the parts yet */
    uint32_t first_part;
    uint64_t first, later, later_count;
    bool at_told; /* at_step holds from the step of that number on */
    uint64_t at_index, at_step;
} pki_account;

typedef struct pki_account_step {
    uint64_t index, start, duration, data;
    const char *kind; /* NULL: the usual one */
    bool between;
} pki_account_step;

void pki_account_begin(pki_account *account, uint64_t before, int64_t furthest_before);

/* A phase or a hang that is over. */
void pki_account_span_add(pki_account *account, uint64_t begin, uint64_t end, uint32_t part);

/* What goes on since then. part 0: no phase does. A hang goes on until it is said to be over, or a
 * step ends that it lies in. */
void pki_account_phase(pki_account *account, uint64_t since, uint32_t part);
void pki_account_hang(pki_account *account, uint64_t since);
void pki_account_hang_over(pki_account *account, uint64_t end);

/* The training has so many steps behind it before the step of that number. */
void pki_account_at(pki_account *account, uint64_t step, uint64_t index);

/* In their order. NULL for account: nothing. */
void pki_account_add(pki_account *account, const pki_account_step *step);

/* Of [0, now), and the time before it. last: the run ends here, so nothing is unfinished. */
void pki_account_parts(const pki_account *account, uint64_t now, bool last,
                       uint64_t parts[PKI_PARTS]);
