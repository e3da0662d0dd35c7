/* lib/session/windows/metrics.h - the run's figures for Prometheus (metrics_path), written every
 * metrics_seconds by the collector: aside first, and renamed, so that nobody reads half of them.
 *
 * All of it under the drain lock.
 */
#pragma once

#include "session/session.h"

/* The verdicts of the last window. */
void pki_metrics_judged(const pki_verdict *verdicts, size_t count);
