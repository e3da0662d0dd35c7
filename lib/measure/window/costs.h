/* lib/measure/window/costs.h - what windows cost beside time, taken apart and added up again. */
#pragma once

#include "measure/window/window.h"

/* All false without memory. */

/* What is new since then. `out` is empty before. */
bool pki_window_costs_more(const pki_window_costs *now, const pki_window_costs *before,
                           pki_window_costs *out);

/* In the order of time. */
bool pki_window_costs_add(pki_window_costs *into, const pki_window_costs *more);

/* Into a summary that has none. */
bool pki_window_costs_fill(const pki_window_costs *costs, pki_summary *out);

void pki_window_costs_finish(pki_window_costs *costs);
