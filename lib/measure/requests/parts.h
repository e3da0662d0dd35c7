/* lib/measure/requests/parts.h - what a pki_summary says of requests. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What the time of requests went to, ns; the parts sum up to the total (pk/request.h). */
typedef struct pki_request_parts {
    uint64_t count; /* of them; first */
    uint64_t total, queued, preempted, prefill, crowded, decode, behind;
} pki_request_parts;

#define PKI_SLOW_REQUESTS 10

typedef struct pki_slow_request {
    pki_request_parts parts;
    uint64_t serial; /* of its span in the trace */
    uint64_t start, ttft, tokens, preemptions, first_step, steps;
    uint32_t outcome; /* a pk_request_outcome */
} pki_slow_request;

/* Requests that have ended. */
typedef struct pki_request_summary {
    uint64_t count; /* first: 0 leaves it out of the report file */
    uint64_t finished, cancelled, failed, good, tokens, preemptions, dropped;
    uint64_t ttft_limit, tpot_limit; /* ns; 0: none */
    double goodput;                  /* good of all; without limits that of the finished */
    uint64_t slow_from;              /* slow: those that took so long; 0: that missed a limit */
    pki_request_parts all, slow;
    size_t slowest_count;
    pki_slow_request *slowest;
} pki_request_summary;
