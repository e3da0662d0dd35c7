/* lib/measure/window/merge.h - windows added up again, and what they have in common */
#pragma once

#include "measure/window/window.h"

/* ---- what windows cost beside time, taken apart and added up again ---- */

/* All false without memory. */

/* What is new since then. `out` is empty before. */
bool pki_window_costs_more(const pki_window_costs *now, const pki_window_costs *before,
                           pki_window_costs *out);

/* In the order of time. */
bool pki_window_costs_add(pki_window_costs *into, const pki_window_costs *more);

/* Into a summary that has none. */
bool pki_window_costs_fill(const pki_window_costs *costs, pki_summary *out);

void pki_window_costs_finish(pki_window_costs *costs);

/* ---- windows added up again: the report of the run, or of a part of it ---- */

/* pki_windows *all = pki_windows_create(false);
 *     ... for each window, in their order:
 *         why = pki_windows_add(all, &window);
 *     done = pki_windows_summary(all, &summary);
 *
 * From all windows of a run that has ended the summary's steps, regions, counters, threads and
 * counts are those of the run's own report, to the last digit, but for what a window does not know
 * step by step: series, and `drift` with its two thirds, are by window. Devices, kernels,
 * communicators and backends are in no window. Without the first window nothing is warm-up. */

typedef struct pki_windows pki_windows;

/* light: for verdicts alone, without distributions of regions and counters. NULL without memory. */
pki_windows *pki_windows_create(bool light);
void pki_windows_destroy(pki_windows *windows);

/* NULL, or why it cannot be: its figures contradict each other, it does not follow the one before,
 * or there is no memory; a sentence without a subject ("is ..."). Then they are of no more use. Of
 * the window run, threads and the numbers of regions are taken; it is still the caller's to finish.
 */
const char *pki_windows_add(pki_windows *windows, pki_window *window);

size_t pki_windows_count(const pki_windows *windows);

/* With verdicts; once. False without memory: it is empty then. */
bool pki_windows_summary(pki_windows *windows, pki_summary *out);
