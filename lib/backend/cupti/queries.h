/* lib/backend/cupti/queries.h - calls that ask whether an event or a stream is done, and do not
 * wait.
 *
 * CUPTI records them as synchronisations, like calls that wait, and the collector asks about events
 * many times a second. Neither the record nor its type tells the two apart, so CUPTI's callback
 * notes which correlations were questions.
 *
 * The places are 8192, each for the newest question whose correlation falls into it: a record is
 * read within a round or two, unless a program asks hundreds of thousands of times a second.
 *
 * Threads: any, without locks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

void pki_cupti_query_note(uint32_t correlation);
bool pki_cupti_is_query(uint32_t correlation);
