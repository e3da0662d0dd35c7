/* lib/measure/spans/open_spans.h - which pk_spans are open, by their serial numbers.
 *
 * A span's begin and end come out of two threads' rings, in either order: an end that comes first
 * waits here for its begin. What is left of those is the second end of a copy.
 *
 * The same for the session, for captures and for `pk report` of a trace. Memory: 32 bytes each, in
 * a table that is a quarter full at least once it has grown; nothing before the first span.
 * Threads: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PKI_OPEN_SPANS_MOST (1u << 20)

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
