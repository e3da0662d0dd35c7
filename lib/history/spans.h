/* lib/history/spans.h - which pk_spans overlap with some steps of the history.
 *
 * A span's records may lie anywhere: its begin before the steps or before all that is kept, its end
 * behind them, and the end before the begin, since they come out of two threads' rings. Each event
 * is written once, and none without its begin.
 */
#pragma once

#include "history/format.h"
#include "measure/spans/open_spans.h"

/* The event of a PKI_RECORD_SPAN_*, two of an end whose begin has not been written, or none. */
size_t pki_history_span(pki_open_spans *seen, const pki_chrome *chrome, char out[PKI_EVENT_BYTES],
                        uint32_t tid, const pki_history_range *range, const pki_record *record,
                        const pki_record *more);

/* Of those that are still open a begin, if they have none yet, and an end at these ticks, marked;
 * false if the sink has answered so. */
bool pki_history_open_spans(const pki_open_spans *seen, const pki_chrome *chrome,
                            const pki_history_range *range, uint64_t ticks, pki_history_sink *sink,
                            void *user);
