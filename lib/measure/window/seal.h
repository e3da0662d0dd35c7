/* lib/measure/window/seal.h - cutting a run's figures into windows, while it goes on */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "measure/fold/fold.h"
#include "measure/window/window.h"

/* ---- cutting a run's figures into windows, while it goes on ---- */

/* A window is the difference between what the distributions hold at its two ends, taken under the
 * fold lock: at the end of a step, before anything behind it is folded, or between two rounds of
 * the collector. Taking it costs some hundred nanoseconds for each region that had a call in it,
 * and nothing in between; names, percentiles, verdicts and text are made afterwards, by whoever
 * takes it out of the queue, without the lock.
 *
 * The queue is bounded. Where windows come faster than they are taken out, the one that runs is not
 * cut and goes on: nothing is lost, the window is longer than was asked for.
 *
 * Threads: all but pki_seal_pop under the fold lock; that takes it.
 * Failure: without memory the window is not cut, or a region's calls come with a later one. */

/* From now on, windows of so many steps, or so many ns, whichever ends first; 0: not by that.
 * Replaces what there was; both 0 ends it. */
void pki_seal_start(pki_fold *fold, uint64_t steps, uint64_t ns);

/* Between steps: cuts if the window is long enough and no step's end is to be expected for it. */
void pki_seal_poll(pki_fold *fold, uint64_t now_ns);

/* The last one, whatever is in it, and whatever waits already. */
void pki_seal_last(pki_fold *fold, uint64_t now_ns);

/* The oldest one that waits: ids and sums, without names or what is made of them, and its steps'
 * self times by id (complete.h). False: there is none. Takes the lock. */
bool pki_seal_pop(pki_window *window);

void pki_seal_after_fork(void);
