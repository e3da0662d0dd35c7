/* lib/session/collector/thinning.h - overhead_max: looks now and then what perfkit takes, and thins
 * regions.
 *
 * Under the drain lock, all of it.
 */
#pragma once

#include "session/session.h"

/* Is the record's event one of those that the trace goes without? Counts it, too. */
bool pki_thinning_excludes(pki_session *session, const pki_record *record);

/* How many of a region were, so far. */
uint64_t pki_thinning_excluded(uint32_t id);
