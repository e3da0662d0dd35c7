/* lib/session/report/summary_rows.h - regions, counters and threads of a summary, from the
 * session's memory.
 *
 * Each fills its array and count of the summary. False: no memory; what there is goes with the
 * summary. Under the fold lock; threads take the registry's.
 */
#pragma once

#include "measure/fold/fold.h"
#include "measure/summary.h"
#include "session/session.h"

typedef struct pki_summary_builder {
    const pki_session *session;
    pki_fold *fold;
    pki_summary *out;
    pk_stats *stats; /* scratch */
    bool goes_on;    /* the session */
} pki_summary_builder;

bool pki_summary_add_regions(pki_summary_builder *builder);
bool pki_summary_add_counters(pki_summary_builder *builder);
bool pki_summary_add_threads(pki_summary_builder *builder);
