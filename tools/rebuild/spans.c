/* tools/rebuild/spans.c - pk_spans, from the pairs of events that they left. */
#include "rebuild/state.h"

#include "base/compiler.h"
#include "memory.h"

#include <string.h>

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

static void add_request(rebuild *r, const event *e)
{
    static const char *const outcomes[] = {"finished", "cancelled", "failed"};
    const char *said = object_text(e->args, "outcome");
    pki_request_done d = {.total = event_count(e, "total_ns"),
                          .queued = event_count(e, "queued_ns"),
                          .preempted = event_count(e, "preempted_ns"),
                          .ttft = event_count(e, "ttft_ns"),
                          .generated = event_count(e, "generated_ns"),
                          .reading = event_count(e, "reading_ns"),
                          .crowded = event_count(e, "crowded_ns"),
                          .behind = event_count(e, "behind_ns"),
                          .tokens = event_count(e, "tokens"),
                          .preemptions = event_count(e, "preemptions"),
                          .first_step = event_count(e, "first_step"),
                          .steps = event_count(e, "steps"),
                          .outcome = PK_REQUEST_FAILED,
                          .good = event_count(e, "good") > 0};
    for (uint32_t i = 0; i < PKI_COUNT_OF(outcomes); i++)
        d.outcome = strcmp(said, outcomes[i]) == 0 ? i : d.outcome;
    pki_requests_add(&r->requests, &d, rebuild_region(r, e), (uint32_t)e->span, e->start);
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
    } else if (e->type == EVENT_REQUEST) {
        add_request(r, e);
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
    if (r->requests.slowest_count) /* the limits are not in the trace */
        memory_needed(pki_requests_fill(&r->requests, 0, 0, 0, &out->requests));
}
