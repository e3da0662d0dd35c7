/* lib/measure/window/complete.h - from what was sealed to what is written */
#pragma once

#include "measure/window/window.h"

/* ---- from what was sealed to what is written ---- */

/* Names for ids, and what the steps say. Percentiles of regions and counters are made as each is
 * written, since there may be very many (out/window/write.h). */

/* Ids that the steps refer to become indices of window->regions, which gets rows for those that
 * have none. False without memory. */
bool pki_window_complete(pki_window *window);
