#include "measure/spans/spans.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/memory.h"

/* ---- which pk_spans are open, by their serial numbers ---- */

#define PKI_OPEN_SPANS_MOST (1u << 20)

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

/* ---- pk_spans in numbers: how many of each name have begun and ended ---- */

/* A shared one without memory for more. */
static pki_span_figures *figures_of(pki_span_counter *c, uint32_t name)
{
    static pki_span_figures nobodys;
    bool fits = pki_array_fit(&c->names, &c->room, name + (size_t)1, sizeof *c->names);
    return fits ? &c->names[name] : &nobodys;
}

static void count_begin(pki_span_counter *c, uint32_t name)
{
    figures_of(c, name)->begun++;
    c->all.begun++;
}

static void count_end(pki_span_counter *c, uint32_t name)
{
    figures_of(c, name)->ended++;
    c->all.ended++;
}

uint64_t pki_spans_begin(pki_span_counter *c, const pki_open_span *span)
{
    pki_open_span *waiting = pki_open_spans_find(&c->open, span->serial);
    count_begin(c, span->name);
    if (waiting && waiting->state == PKI_SPAN_ENDED) {
        uint64_t duration = waiting->start;
        pki_open_spans_remove(&c->open, waiting);
        count_end(c, span->name);
        return duration;
    }
    if (!waiting)
        pki_open_spans_add(&c->open, span);
    return UINT64_MAX;
}

/* Where the table is full, what is not in it may have been open. */
static bool waits(pki_span_counter *c, const pki_open_span *span, uint64_t duration)
{
    pki_open_span ended = *span;
    ended.state = PKI_SPAN_ENDED;
    ended.start = duration;
    return pki_open_spans_add(&c->open, &ended);
}

bool pki_spans_end(pki_span_counter *c, const pki_open_span *span, uint64_t duration, bool unbegun)
{
    pki_open_span *open = unbegun ? NULL : pki_open_spans_find(&c->open, span->serial);
    if (unbegun) {
        count_begin(c, span->name);
        c->unbegun++;
    } else if (open && open->state == PKI_SPAN_ENDED) {
        c->again++; /* of a copy */
        return false;
    } else if (open) {
        pki_open_spans_remove(&c->open, open);
    } else if (waits(c, span, duration)) {
        return false;
    }
    count_end(c, span->name);
    return true;
}

void pki_spans_mark(pki_span_counter *c, uint32_t name)
{
    figures_of(c, name)->marks++;
    c->all.marks++;
}

pki_span_row pki_spans_row(const pki_span_counter *c, uint32_t name, uint64_t samples)
{
    pki_span_figures f = name < c->room ? c->names[name] : (pki_span_figures){0};
    if (f.begun && !f.marks)
        f.ended = PKI_MAX(f.ended, samples);
    else if (f.marks && !f.begun)
        f.marks = PKI_MAX(f.marks, samples);
    f.begun = PKI_MAX(f.begun, f.ended);
    return (pki_span_row){.events = f.begun + f.marks,
                          .begun = f.begun,
                          .ended = f.ended,
                          .unfinished = f.begun - f.ended,
                          .marks = f.marks};
}

void pki_spans_finish_counter(pki_span_counter *c)
{
    pki_open_spans_finish(&c->open);
    free(c->names);
    *c = (pki_span_counter){0};
}
