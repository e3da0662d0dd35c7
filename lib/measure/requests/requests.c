#include "measure/requests/requests.h"

#include <stdlib.h>
#include <string.h>

#define SLOW_SHARE 10 /* one of so many */

/* Octave and quarter. */
static unsigned cell_of(uint64_t ns)
{
    unsigned octave = ns ? 63u - (unsigned)__builtin_clzll(ns) : 0;
    return octave < 2 ? octave * 4 : octave * 4 + (unsigned)(ns >> (octave - 2) & 3);
}

static uint64_t edge_of(unsigned cell)
{
    unsigned octave = cell / 4;
    return octave < 2 ? (uint64_t)1 << octave : (uint64_t)(4 + cell % 4) << (octave - 2);
}

/* They sum up to the whole; rounding may have let one be longer. */
static pki_request_parts parts_of(const pki_request_done *d)
{
    uint64_t left = d->total;
    pki_request_parts p = {.count = 1, .total = d->total};
    p.queued = PKI_MIN(d->queued, left);
    left -= p.queued;
    p.preempted = PKI_MIN(d->preempted, left);
    left -= p.preempted;
    uint64_t reading = PKI_MIN(d->reading, left);
    p.crowded = PKI_MIN(d->crowded, reading);
    p.prefill = reading - p.crowded;
    left -= reading;
    p.behind = PKI_MIN(d->behind, left);
    p.decode = left - p.behind;
    return p;
}

static void add_parts(pki_request_parts *to, const pki_request_parts *p)
{
    to->count += p->count;
    to->total += p->total;
    to->queued += p->queued;
    to->preempted += p->preempted;
    to->prefill += p->prefill;
    to->crowded += p->crowded;
    to->decode += p->decode;
    to->behind += p->behind;
}

static void note_slow(pki_requests *r, const pki_slow_request *slow)
{
    size_t at = r->slowest_count;
    while (at > 0 && r->slowest[at - 1].parts.total < slow->parts.total)
        at--;
    if (at == PKI_SLOW_REQUESTS)
        return;
    r->slowest_count = PKI_MIN(r->slowest_count + 1, (size_t)PKI_SLOW_REQUESTS);
    memmove(&r->slowest[at + 1], &r->slowest[at],
            (r->slowest_count - at - 1) * sizeof r->slowest[0]);
    r->slowest[at] = *slow;
}

static void note_name(pki_requests *r, uint32_t name)
{
    size_t i = 0;
    while (i < r->name_count && r->names[i] != name)
        i++;
    if (i == r->name_count && i < PKI_REQUEST_SORTS)
        r->names[r->name_count++] = name;
}

void pki_requests_add(pki_requests *r, const pki_request_done *d, uint32_t name, uint32_t serial,
                      uint64_t end)
{
    pki_slow_request slow = {.parts = parts_of(d),
                             .serial = serial,
                             .start = end - PKI_MIN(end, d->total),
                             .ttft = d->ttft,
                             .tokens = d->tokens,
                             .preemptions = d->preemptions,
                             .outcome = d->outcome,
                             .first_step = d->first_step,
                             .steps = d->steps};
    r->outcomes[PKI_MIN(d->outcome, (uint32_t)PK_REQUEST_FAILED)]++;
    note_name(r, name);
    r->good += d->good;
    r->tokens += d->tokens;
    r->preemptions += d->preemptions;
    add_parts(&r->cells[cell_of(d->total)], &slow.parts);
    if (d->outcome == PK_REQUEST_FINISHED && !d->good)
        add_parts(&r->missed, &slow.parts);
    note_slow(r, &slow);
}

/* From the top down, until there is a tenth. */
static uint64_t fill_slow_tenth(const pki_requests *r, uint64_t count, pki_request_parts *slow)
{
    unsigned cell = PKI_REQUEST_CELLS;
    while (cell > 0 && slow->count * SLOW_SHARE < count)
        add_parts(slow, &r->cells[--cell]);
    return edge_of(cell);
}

bool pki_requests_fill(const pki_requests *r, uint64_t ttft_limit, uint64_t tpot_limit,
                       uint64_t dropped, pki_request_summary *out)
{
    bool limited = ttft_limit || tpot_limit;
    *out = (pki_request_summary){.finished = r->outcomes[PK_REQUEST_FINISHED],
                                 .cancelled = r->outcomes[PK_REQUEST_CANCELLED],
                                 .failed = r->outcomes[PK_REQUEST_FAILED],
                                 .good = r->good,
                                 .tokens = r->tokens,
                                 .preemptions = r->preemptions,
                                 .dropped = dropped,
                                 .ttft_limit = ttft_limit,
                                 .tpot_limit = tpot_limit};
    out->count = out->finished + out->cancelled + out->failed;
    for (unsigned i = 0; i < PKI_REQUEST_CELLS; i++)
        add_parts(&out->all, &r->cells[i]);
    out->goodput = out->count ? (double)r->good / (double)out->count : 0;
    if (limited)
        out->slow = r->missed;
    else
        out->slow_from = fill_slow_tenth(r, out->count, &out->slow);
    if (!r->slowest_count)
        return true;
    out->slowest = malloc(sizeof r->slowest);
    if (!out->slowest)
        return false;
    memcpy(out->slowest, r->slowest, sizeof r->slowest);
    out->slowest_count = r->slowest_count;
    return true;
}
