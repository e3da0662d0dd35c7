/* tools/rebuild/spans.c - pk_spans, from the pairs of events that they left. */
#include "rebuild/state.h"

#include "base/compiler.h"
#include "memory.h"

static void count(rebuild *r, uint32_t region, uint64_t ns)
{
    memory_needed(pki_tally_add(&r->regions[region].time, (double)ns, 1));
}

/* Where the end comes first in the file, what is kept of it is its moment. */
static void begin(rebuild *r, const pki_open_span *opened)
{
    uint64_t moment = pki_spans_begin(&r->async, opened);
    if (moment != UINT64_MAX)
        count(r, opened->name, moment - PKI_MIN(moment, opened->start));
}

static void end(rebuild *r, const pki_open_span *ended, uint64_t moment)
{
    const pki_open_span *open = pki_open_spans_find(&r->async.open, ended->serial);
    uint64_t start = open ? open->start : 0;
    if (pki_spans_end(&r->async, ended, moment, false) && start <= moment)
        count(r, ended->name, moment - start);
}

void rebuild_span(rebuild *r, const event *e)
{
    uint32_t region = rebuild_region(r, e);
    const pki_open_span it = {
        .start = e->start, .serial = (uint32_t)e->span, .name = region, .state = PKI_SPAN_OPEN};
    r->last = PKI_MAX(r->last, e->start);
    r->first = PKI_MIN(r->first, e->start);
    r->points++;
    if (e->type == EVENT_SPAN_BEGIN) {
        begin(r, &it);
    } else if (e->type == EVENT_SPAN_END) {
        end(r, &it, e->start);
    } else {
        pki_spans_mark(&r->async, region);
        count(r, region, e->since);
    }
}

void rebuild_fill_spans(const rebuild *r, pki_summary *out)
{
    const pki_span_figures *all = &r->async.all;
    out->spans = (pki_span_summary){.begun = all->begun,
                                    .ended = all->ended,
                                    .unfinished = all->begun - PKI_MIN(all->begun, all->ended),
                                    .marks = all->marks,
                                    .ended_twice = r->async.open.ended};
    out->spans.events = all->begun + all->marks + r->async.open.ended;
}
