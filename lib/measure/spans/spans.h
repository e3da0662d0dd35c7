/* lib/measure/spans/spans.h - pk_spans in numbers: how many of each name have begun and ended.
 *
 * Their durations are in their regions' distributions; this says which of those samples are spans'
 * or marks', and holds back an end until its begin has come, so that a copy's second end counts
 * nowhere. Also `pk report` goes by it, for traces.
 *
 * Threads: one at a time (the fold lock). Failure: without memory a span has no figures here; its
 * time counts.
 */
#pragma once

#include "measure/spans/open_spans.h"
#include "measure/summary.h"

typedef struct pki_span_figures {
    uint64_t begun, ended, marks;
} pki_span_figures;

typedef struct pki_span_counter {
    pki_open_spans open;
    pki_span_figures all;
    uint64_t unbegun; /* of all.begun: their begins have no record */
    uint64_t again;   /* ends behind a second one */
    size_t room;
    pki_span_figures *names; /* by id */
} pki_span_counter;

/* A begin. Returns its duration if its end has come before it, else UINT64_MAX. start: whatever the
 * user goes by. */
uint64_t pki_spans_begin(pki_span_counter *counter, const pki_open_span *span);

/* An end: false if it has to wait for its begin. unbegun: there is none to come. */
bool pki_spans_end(pki_span_counter *counter, const pki_open_span *span, uint64_t duration,
                   bool unbegun);

void pki_spans_mark(pki_span_counter *counter, uint32_t name);

/* What the report says of a name. samples: of its distribution, if it is no region's, too; else 0.
 * It has those without a record, which can be told apart only where a name has one use. */
pki_span_row pki_spans_row(const pki_span_counter *counter, uint32_t name, uint64_t samples);

void pki_spans_finish_counter(pki_span_counter *counter);
