/* lib/session/limits.h - the run beside what its machine can do. */
#pragma once

#include "measure/summary.h"
#include "session/config.h"

/* Regions that can be held against the machine's limits are, if there is its file; one that was
 * named and is none is said in the log. False without memory. */
bool pki_limits_fill(const pki_config *config, pki_summary *summary);
