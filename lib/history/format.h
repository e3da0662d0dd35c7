/* lib/history/format.h - what is kept of some steps, as Chrome trace events */
#pragma once

#include "history/history.h"
#include "measure/spans/spans.h"
#include "out/chrome/chrome.h"

/* ---- what is kept of some steps, as Chrome trace events ---- */

/* Threads: one at a time for each pki_chrome; the history may go on meanwhile, if what is
 * read is pinned. */

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

/* ---- which pk_spans overlap with some steps of the history ---- */

/* A span's records may lie anywhere: its begin before the steps or before all that is kept, its end
 * behind them, and the end before the begin, since they come out of two threads' rings. Each event
 * is written once, and none without its begin. */

/* The event of a PKI_RECORD_SPAN_*, two of an end whose begin has not been written, or none. */
size_t pki_history_span(pki_open_spans *seen, const pki_chrome *chrome, char out[PKI_EVENT_BYTES],
                        uint32_t tid, const pki_history_range *range, const pki_record *record,
                        const pki_record *more);

/* Of those that are still open a begin, if they have none yet, and an end at these ticks, marked;
 * false if the sink has answered so. */
bool pki_history_open_spans(const pki_open_spans *seen, const pki_chrome *chrome,
                            const pki_history_range *range, uint64_t ticks, pki_history_sink *sink,
                            void *user);
