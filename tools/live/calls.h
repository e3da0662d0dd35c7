/* tools/live/calls.h - distributions in an arena (stats/slot.h), from outside. */
#pragma once

#include "live/snapshot.h"

/* All that are linked from the slot at that offset, 0 for none. What cannot be read ends the list.
 * False without memory. */
bool live_calls_read(const target *t, uint64_t first, live_calls **calls, size_t *room,
                     size_t *count);

bool live_calls_stats(const target *t, const live_calls *calls, pk_stats *stats);
