/* lib/measure/window/utilisation.h - the steps' operations of a window, and of windows together. */
#pragma once

#include "measure/window/window.h"

/* Of a window whose exact figures are there: the sums, without a peak. */
void pki_window_work(pki_window_steps *steps);

/* The last peak that a window has named: it is of the process, and not added up. False without
 * memory. */
bool pki_peak_update(pki_utilisation *kept, const pki_window *window);

/* Into the sums of all windows. False without memory. */
bool pki_peak_apply(const pki_utilisation *kept, pki_utilisation *sums);
