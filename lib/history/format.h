/* lib/history/format.h - what is kept of some steps, as Chrome trace events.
 *
 * Threads: one at a time for each pki_chrome; the history may go on meanwhile, if what is
 * read is pinned.
 */
#pragma once

#include "history/layout.h"
#include "measure/spans/open_spans.h"
#include "out/chrome/chrome.h"

typedef bool pki_history_sink(void *user, const char *event, size_t bytes);

#define PKI_HISTORY_MEASURED 8u /* times that devices were measured */

typedef struct pki_history_measured {
    uint64_t from, until;
} pki_history_measured;

/* What overlaps with these ticks, and the steps with these numbers, if any are asked for. */
typedef struct pki_history_range {
    uint64_t from, until;      /* ticks */
    uint64_t first, last;      /* steps */
    uint64_t first_at;         /* position from which it is to be looked for */
    const pki_open_span *open; /* pk_spans that are open now, as far as they are known */
    size_t open_count;
    /* to be found out: when devices were measured, ns of the session */
    unsigned measured_count;
    pki_history_measured measured[PKI_HISTORY_MEASURED];
} pki_history_range;

#define PKI_HISTORY_ALL ((pki_history_range){.until = UINT64_MAX, .last = UINT64_MAX})

/* Each event, preceded by ",\n", until the sink answers false; then it answers false. *events: of
 * records. */
bool pki_history_format(const pki_history_view *view, pki_history_range *range, pki_chrome *chrome,
                        pki_history_sink *sink, void *user, uint64_t *events);
