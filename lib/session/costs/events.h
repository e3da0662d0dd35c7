/* lib/session/costs/events.h - hardware, software and top-down events per region, in a share of its
 * calls (costs=hardware,software,topdown).
 *
 * Whether they can be had is tried once, as the session starts; if not, nothing is sampled, and the
 * report says why. The share is such that a thread spends no more than the bound on each region
 * (core/events.h); the collector sees to it that all together keep to the bound of the process's
 * CPU time.
 */
#pragma once

#include "session/session.h"

/* What it took of the process's CPU time so far, ns. */
uint64_t pki_events_spent(void);

/* The share of it that events may take; 0: none are asked for. */
double pki_events_bound(const pki_config *config);
