#include "measure/spans/open_spans.h"

#include <stdlib.h>

#define FIRST_ROOM 64u

/* Threads take serials by the hundred, so their low bits are often alike. */
static size_t index_of(const pki_open_spans *s, uint32_t serial)
{
    uint32_t hash = serial * 2654435769u;
    return (hash ^ hash >> 16) & (s->room - 1);
}

static size_t next_of(const pki_open_spans *s, size_t at)
{
    return (at + 1) & (s->room - 1);
}

pki_open_span *pki_open_spans_find(const pki_open_spans *s, uint32_t serial)
{
    if (!s->used)
        return NULL;
    for (size_t at = index_of(s, serial); s->cells[at].state; at = next_of(s, at))
        if (s->cells[at].serial == serial)
            return &s->cells[at];
    return NULL;
}

static void put(pki_open_spans *s, const pki_open_span *span)
{
    size_t at = index_of(s, span->serial);
    while (s->cells[at].state)
        at = next_of(s, at);
    s->cells[at] = *span;
    s->used++;
    s->ended += span->state == PKI_SPAN_ENDED;
}

static bool grow(pki_open_spans *s)
{
    pki_open_spans larger = {.room = s->room ? 2 * s->room : FIRST_ROOM};
    larger.cells = calloc(larger.room, sizeof *larger.cells);
    if (!larger.cells)
        return false;
    for (size_t i = 0; i < s->room; i++)
        if (s->cells[i].state)
            put(&larger, &s->cells[i]);
    free(s->cells);
    *s = larger;
    return true;
}

bool pki_open_spans_add(pki_open_spans *s, const pki_open_span *span)
{
    if (s->used >= PKI_OPEN_SPANS_MOST || (2 * (s->used + 1) > s->room && !grow(s)))
        return false;
    put(s, span);
    return true;
}

/* Closes the gap with what has been put off by what stood there. */
void pki_open_spans_remove(pki_open_spans *s, pki_open_span *span)
{
    size_t gap = (size_t)(span - s->cells);
    s->used--;
    s->ended -= span->state == PKI_SPAN_ENDED;
    for (size_t at = next_of(s, gap); s->cells[at].state; at = next_of(s, at)) {
        size_t wanted = index_of(s, s->cells[at].serial);
        if (((at - wanted) & (s->room - 1)) < ((at - gap) & (s->room - 1)))
            continue;
        s->cells[gap] = s->cells[at];
        gap = at;
    }
    s->cells[gap].state = PKI_SPAN_NONE;
}

void pki_open_spans_finish(pki_open_spans *s)
{
    free(s->cells);
    *s = (pki_open_spans){0};
}
