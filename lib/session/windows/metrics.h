/* lib/session/windows/metrics.h - the run's figures for Prometheus (metrics_path), written every
 * metrics_seconds by the collector: aside first, and renamed, so that nobody reads half of them.
 *
 * All of it under the drain lock.
 */
#pragma once

#include "session/session.h"

/* Can there be such a file? And the first one, at once. After the fold has been opened. */
pk_status pki_metrics_open(pki_session *session);

/* If it is time to. What cannot be written is said once and tried again the next time. */
void pki_metrics_round(pki_session *session);

/* The last figures. After the last counts. */
void pki_metrics_end(pki_session *session);

void pki_metrics_abandon(void);
void pki_metrics_after_fork(void);

/* The verdicts of the last window. */
void pki_metrics_judged(const pki_verdict *verdicts, size_t count);
