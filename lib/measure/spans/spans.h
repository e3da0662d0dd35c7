/* lib/measure/spans/spans.h - pk_spans in numbers, and which of them are open */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "measure/summary.h"

/* ---- which pk_spans are open, by their serial numbers ---- */

/* A span's begin and end come out of two threads' rings, in either order: an end that comes first
 * waits here for its begin. What is left of those is the second end of a copy.
 *
 * The same for the session, for captures and for `pk report` of a trace. Memory: 32 bytes each, in
 * a table that is a quarter full at least once it has grown; nothing before the first span.
 * Threads: one at a time. */

typedef enum pki_open_state {
    PKI_SPAN_NONE, /* of a cell: empty */
    PKI_SPAN_OPEN,
    PKI_SPAN_ENDED, /* and its begin is to come */
    PKI_SPAN_SEEN   /* open, and written already: the users' own */
} pki_open_state;

typedef struct pki_open_span {
    uint64_t start; /* of one that has ended: its duration */
    uint64_t id;    /* the program's */
    uint32_t serial, name;
    uint32_t state;
    uint32_t tid; /* who began it, where that is known */
} pki_open_span;

typedef struct pki_open_spans {
    pki_open_span *cells;
    size_t room, used; /* room: a power of two, or 0 */
    size_t ended;      /* of them in that state */
} pki_open_spans;

/* NULL: it is not among them. */
pki_open_span *pki_open_spans_find(const pki_open_spans *spans, uint32_t serial);

/* One that is not among them. False without memory, or room for more. */
bool pki_open_spans_add(pki_open_spans *spans, const pki_open_span *span);

/* Others may move. */
void pki_open_spans_remove(pki_open_spans *spans, pki_open_span *span);

void pki_open_spans_finish(pki_open_spans *spans);

/* ---- pk_spans in numbers: how many of each name have begun and ended ---- */

/* Their durations are in their regions' distributions; this says which of those samples are spans'
 * or marks', and holds back an end until its begin has come, so that a copy's second end counts
 * nowhere. Also `pk report` goes by it, for traces.
 *
 * Threads: one at a time (the fold lock). Failure: without memory a span has no figures here; its
 * time counts. */

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
