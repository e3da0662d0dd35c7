/* lib/core/request_record.h - a request that has ended, as a record of two slots.
 *
 * Times are in units of 1,024 ns (up to 73 minutes: what is more is that), and `behind` in 16 of
 * them, so ten figures fit. The
 * distributions come from marks, which are exact to the nanosecond; these are for their sums.
 */
#pragma once

#include <pk/request.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "core/record.h"

/* The stages' regions. */
#define PKI_REQUEST_QUEUE "request queue time"
#define PKI_REQUEST_TTFT "time to first token"
#define PKI_REQUEST_ITL "inter-token latency"
#define PKI_REQUEST_TPOT "time per output token"

#define PKI_REQUEST_GOOD 4u /* flags: the outcome, and this */
#define PKI_REQUEST_UNIT_NS 1024u
#define PKI_REQUEST_NO_TYPE ((uint64_t)15 << 32) /* a second slot is no record (pki_is_record) */

typedef struct pki_request_done {
    /* ns */
    uint64_t total, queued, preempted, ttft;
    uint64_t generated;       /* from the first token to the last one */
    uint64_t reading;         /* from schedule to the first token, without what it was preempted */
    uint64_t crowded, behind; /* pk/request.h */
    uint64_t tokens, preemptions, first_step, steps;
    uint32_t outcome; /* a pk_request_outcome */
    bool good;
} pki_request_done;

/* In force now, ns; 0: none. */
void pki_request_limits(uint64_t *ttft_ns, uint64_t *tpot_ns);

static inline uint64_t pki_request_units(uint64_t ns)
{
    uint64_t units = (ns + PKI_REQUEST_UNIT_NS / 2) / PKI_REQUEST_UNIT_NS;
    return PKI_MIN(units, (uint64_t)UINT32_MAX);
}

static inline uint64_t pki_request_pair(uint64_t low, uint64_t high)
{
    return PKI_MIN(low, (uint64_t)UINT32_MAX) | PKI_MIN(high, (uint64_t)UINT32_MAX) << 32;
}

static inline uint64_t pki_request_times(uint64_t low, uint64_t high)
{
    return pki_request_pair(pki_request_units(low), pki_request_units(high));
}

static inline void pki_request_pack(const pki_request_done *d, const pk_span *span, uint64_t now,
                                    pki_record record[2])
{
    uint64_t flags = PKI_FLAGS(d->outcome | (d->good ? PKI_REQUEST_GOOD : 0));
    record[0] =
        (pki_record){.start = now,
                     .value = pki_request_times(d->total, d->queued),
                     .what = PKI_WHAT(span->region, PKI_RECORD_REQUEST, 0) | flags,
                     .extra = span->serial | PKI_MIN(d->preemptions, (uint64_t)0xFFF) << 32 |
                              PKI_MIN(d->steps, (uint64_t)0xFFFFF) << 44};
    record[1] =
        (pki_record){.start = pki_request_times(d->ttft, d->generated),
                     .value = pki_request_times(d->preempted, d->reading),
                     .what = pki_request_times(d->crowded, d->behind) & ~PKI_REQUEST_NO_TYPE,
                     .extra = pki_request_pair(d->tokens, d->first_step)};
}

static inline pki_request_done pki_request_unpack(const pki_record *r, const pki_record *more)
{
    const uint64_t unit = PKI_REQUEST_UNIT_NS;
    return (pki_request_done){.total = (uint32_t)r->value * unit,
                              .queued = (r->value >> 32) * unit,
                              .preempted = (uint32_t)more->value * unit,
                              .ttft = (uint32_t)more->start * unit,
                              .generated = (more->start >> 32) * unit,
                              .reading = (more->value >> 32) * unit,
                              .crowded = (uint32_t)more->what * unit,
                              .behind = (more->what >> 32) * unit,
                              .tokens = (uint32_t)more->extra,
                              .preemptions = r->extra >> 32 & 0xFFF,
                              .first_step = more->extra >> 32,
                              .steps = r->extra >> 44,
                              .outcome = pki_what_flags(r->what) & 3,
                              .good = pki_what_flags(r->what) & PKI_REQUEST_GOOD};
}
