/* lib/session/windows/metrics.h - the run's figures for Prometheus (metrics_path) */
#pragma once

#include "out/metrics/metrics.h"
#include "session/session.h"

/* ---- what the process costs beside time, for its metrics ---- */

/* Whether they have that counter's value as a family of its own. */
bool pki_metrics_costs_have(const pki_metrics_costs *costs, const char *counter);

/* ---- metrics ---- */

/* The run's figures for Prometheus (metrics_path), written every
 * metrics_seconds by the collector: aside first, and renamed, so that nobody reads half of them.
 *
 * All of it under the drain lock. */

/* The verdicts of the last window. */
void pki_metrics_judged(const pki_verdict *verdicts, size_t count);
