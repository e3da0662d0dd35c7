/* lib/measure/window/difference.h - what a region or a counter has more than at the last cut.
 *
 * Beside each distribution stands what it held when it was cut last; the difference becomes a
 * window's row. Only the extremes cannot be subtracted: tables keep those since the last cut apart.
 *
 * Under the fold lock. Threads enter the calls that they lose meanwhile, each in the sums first and
 * in its bucket last (stats/slot.h), so a row may have one half of such a call and a later row the
 * other. The rows' sum is exact all the same, but for a thread that is still losing a call when the
 * last window is cut: the report, made a moment later, may have more of it.
 */
#pragma once

#include "measure/fold/fold.h"
#include "measure/window/window.h"

/* What a name's distribution held at the last cut. */
typedef struct pki_held {
    uint64_t count, sum, min, max, squares_low, squares_high, self, bytes, flops, untimed, spread;
    uint64_t in_table; /* of count, in the table of all: the rest is lost calls' */
    uint64_t merged;   /* of these, calls that threads which have ended had lost */
    bool waited;       /* last time there were only halves of lost calls */
    pki_tally buckets; /* of a counter: all of it */
} pki_held;

/* Nothing has come since then. any_lost: threads have counted lost calls, of whatever name. */
bool pki_held_is_idle_region(const pki_held *held, const pki_slot *slot, bool any_lost);
bool pki_held_is_idle_counter(const pki_held *held, const pki_values *values, bool any_lost);

/* The row, and from now on what is in it is held. Where there are only halves of lost calls the row
 * is empty, once, unless it is the last: the other halves should be there at the next cut. False:
 * no memory; the row is to be finished, and what is in it comes with a later window. slot, values:
 * in the fold's table of all; NULL: not there. */
bool pki_held_cut_region(pki_held *held, pki_fold *fold, uint32_t id, pki_slot *slot, bool last,
                         pki_window_region *row);
bool pki_held_cut_counter(pki_held *held, pki_fold *fold, uint32_t id, pki_values *values,
                          bool last, pki_window_counter *row);

void pki_held_finish(pki_held *held);
