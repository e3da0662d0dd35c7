/* lib/measure/requests/requests.h - pk_requests in numbers: what became of them, and what the time
 * of all and of the slow ones went to.
 *
 * Of each request that has ended there is one record, so nothing is kept of those under way. Which
 * are the slowest tenth is known at the end: sums stand by how long it took, in a quarter of an
 * octave each, and the tenth begins at the edge of one.
 *
 * Threads: one at a time (the fold lock).
 */
#pragma once

#include "core/record.h"
#include "measure/summary.h"

#define PKI_REQUEST_CELLS (64 * 4)
#define PKI_REQUEST_SORTS 16

typedef struct pki_requests {
    uint64_t outcomes[PK_REQUEST_FAILED + 1];
    uint64_t good, tokens, preemptions;
    size_t name_count;
    uint32_t names[PKI_REQUEST_SORTS]; /* their regions; further ones are not noted */
    pki_request_parts missed;          /* the limits: not good */
    pki_request_parts cells[PKI_REQUEST_CELLS];
    size_t slowest_count;
    pki_slow_request slowest[PKI_SLOW_REQUESTS]; /* slowest first */
} pki_requests;

/* Of that region; end: ns of the session. */
void pki_requests_add(pki_requests *requests, const pki_request_done *done, uint32_t name,
                      uint32_t serial, uint64_t end);

/* Limits in ns, 0: none. False without memory. */
bool pki_requests_fill(const pki_requests *requests, uint64_t ttft_limit, uint64_t tpot_limit,
                       uint64_t dropped, pki_request_summary *out);
