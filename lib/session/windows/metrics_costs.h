/* lib/session/windows/metrics_costs.h - what the process costs beside time, for its metrics. */
#pragma once

#include "out/metrics/metrics.h"

/* Nothing is known of the session that begins. */
void pki_metrics_costs_reset(void);

/* All but the process's own memory, which is read from files. Under the fold lock. */
void pki_metrics_costs_fill(pki_metrics *metrics);

/* Whether they have that counter's value as a family of its own. */
bool pki_metrics_costs_have(const pki_metrics_costs *costs, const char *counter);
