/* lib/backend/cupti/callers.h - in which region a call was made that allocates or frees.
 *
 * CUPTI calls back as such a call begins, on its thread, with the correlation that the record of
 * what it allocates will carry. What is open there is noted under that; no external id is pushed,
 * which would need a record of each call of the runtime.
 *
 * The places are 16384, each for the newest correlation that falls into it: a record is read within
 * two flushes, unless calls come by the hundred thousand a second. What was overwritten is known to
 * be unknown.
 *
 * Threads: any, without locks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

void pki_cupti_caller_note(uint32_t correlation, uint32_t region);

/* False: not known (any more). */
bool pki_cupti_caller_of(uint32_t correlation, uint32_t *region);
