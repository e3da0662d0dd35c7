/* lib/session/report/limits.h - the run beside what its machine can do. */
#pragma once

#include "measure/summary.h"
#include "session/options/config.h"

/* The option `peak`. */
pk_status pki_limits_config(pki_config *config, const pk_options *options);

/* Regions that can be held against the machine's limits are, if there is its file; one that was
 * named and is none is said in the log. So are the steps that have announced their operations, and
 * why not, if their peak is not known. False without memory. */
bool pki_limits_fill(const pki_config *config, pki_summary *summary);

/* That peak, of a process that so many devices work for. It reads files. */
void pki_limits_peak(const pki_config *config, size_t gpus, pki_peak *peak);
