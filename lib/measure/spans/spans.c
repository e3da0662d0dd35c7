#include "measure/spans/spans.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/compiler.h"

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
