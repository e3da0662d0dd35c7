/* pk/request.h - requests to a server that generates tokens: how long each waited, and for what.
 *
 *     static pk_region completion = PK_REGION("completion");
 *
 *     r->stages = pk_request_begin(&completion, r->id);        // it has arrived, and waits
 *     pk_request_schedule(&r->stages);                         // it is in the batch
 *     for (;;) {                                               // a step of the batch:
 *         ... compute ...
 *         pk_request_prefill(&r->stages, prompt_tokens);       // so many tokens of its prompt
 *         pk_request_tokens(&r->stages, 1);                    // and a token came out
 *         pk_step(batch_tokens);
 *     }
 *     pk_request_end(&r->stages, PK_REQUEST_FINISHED);
 *
 * A request is a span (pk/span.h) and more: what is said there of threads, values that are all
 * zero, failure and drops holds here, too. Its stages are marks of the span in the trace and
 * distributions of their own, by these names:
 *
 *     "request queue time"       from begin to schedule, and again from preempt to schedule
 *     "time to first token"      TTFT: from begin to the first pk_request_tokens
 *     "inter-token latency"      ITL: from one pk_request_tokens to the next, whatever its count
 *     "time per output token"    TPOT = (last - first) / (tokens - 1), of each request with two
 *                                tokens and more; tokens of the first event count, as every event's
 *     the request's own region   from begin to end: end to end
 *
 * In the metrics file they are the histograms gen_ai_server_time_to_first_token_seconds,
 * gen_ai_server_time_per_output_token_seconds and gen_ai_server_request_duration_seconds, after
 * OpenTelemetry's conventions for generative AI.
 *
 * Why requests are slow: the report breaks down the time of all requests, and of the slow ones:
 *
 *     queued      waiting for the batch, until first scheduled
 *     preempted   out of the batch again
 *     prefill     from schedule to the first token, the share of its own prompt
 *     crowded     from schedule to the first token, the share of others' prompts: by the tokens
 *                 that pk_request_prefill reported meanwhile
 *     decode      from the first token to the end
 *     behind      of decode, the extra time of intervals in which the batch processed others'
 *                 prompts: beyond this request's mean interval without any (all of it, if there is
 *                 no such interval)
 *
 * Slow requests are those that finished and missed the limits (pk_request_set_limits) or, without
 * limits, the slowest tenth. Each of the slowest is listed with the steps (pk/step.h) that it took
 * part in.
 *
 * Threads: every call from any thread, one at a time for one request.
 * Cost:    off: a load and a branch. On: some 20 ns for each call, about what a span's mark costs;
 *          the end 70 ns.
 */
#ifndef PK_REQUEST_H
#define PK_REQUEST_H

#include <pk/span.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A plain value, perfkit's but for span.id; all zero: none. */
typedef struct pk_request {
    pk_span span;
    /* ticks, at which... */
    uint64_t waiting;   /* ...it began to wait; 0: it is in the batch */
    uint64_t scheduled; /* ...first */
    uint64_t first, last;
    /* ticks, so many */
    uint64_t queued, preempted, reading, crowded, clear, behind;
    uint64_t tokens;
    uint64_t prefilled;    /* of its prompt, up to the last look */
    uint64_t seen;         /* of all prompts in this process, at the last look */
    uint32_t clear_events; /* intervals in which others' prompts were not read */
    uint32_t behind_events;
    uint32_t first_step;
    uint32_t preemptions;
    uint64_t spare[3]; /* 0; for later versions */
} pk_request;

typedef enum pk_request_outcome {
    PK_REQUEST_FINISHED = 0,
    PK_REQUEST_CANCELLED = 1, /* by the client */
    PK_REQUEST_FAILED = 2
} pk_request_outcome;

/* A request has arrived. region: the type of request, or the model; id: the program's number. */
PK_API PK_INLINE pk_request pk_request_begin(pk_region *region, uint64_t id);

/* It joins the batch: for the first time, or again. */
PK_API PK_INLINE void pk_request_schedule(pk_request *request);

/* So many tokens of its prompt were processed in the step that is ending: all, or a chunk. Call it
 * before pk_request_tokens of that step, and also when a prompt is processed again after a
 * preemption. */
PK_API PK_INLINE void pk_request_prefill(pk_request *request, uint64_t tokens);

/* So many tokens were generated at this moment: one, or more with speculative decoding. 0 does
 * nothing. */
PK_API PK_INLINE void pk_request_tokens(pk_request *request, uint64_t count);

/* It had to leave the batch, and waits again. */
PK_API PK_INLINE void pk_request_preempt(pk_request *request);

/* It is over. */
PK_API PK_INLINE void pk_request_end(pk_request *request, pk_request_outcome outcome);

/* Latency limits, in seconds: a finished request is good if neither its TTFT nor its TPOT exceeds
 * its limit. 0 or less: no such limit. The report gives the share of good ones among all that have
 * ended (goodput). The limits apply to requests that end from now on. Any thread, any time, also
 * before pk_start. */
PK_API void pk_request_set_limits(double ttft_seconds, double tpot_seconds);

/* Requests that have ended in the session. */
typedef struct pk_request_counts {
    uint32_t size; /* sizeof(pk_request_counts); pk_get_request_counts(...) sets it */
    uint32_t reserved;
    uint64_t finished, cancelled, failed;
    uint64_t good;        /* of the finished: within the limits */
    uint64_t tokens;      /* generated */
    uint64_t preemptions; /* of all of them */
    uint64_t dropped;     /* ended, but missing from these figures: ring full */
} pk_request_counts;

/* During a session and after it. PK_EOFF if there was none. PK_EINVAL if size is 0 or too large. A
 * smaller size is filled in as far as it goes. */
PK_API pk_status pk_get_request_counts(pk_request_counts *counts);

/* ---- below: how it is done ---- */

#define pk_get_request_counts(counts) (pk_get_request_counts)(pk_request_counts_sized_(counts))

static inline pk_request_counts *pk_request_counts_sized_(pk_request_counts *counts)
{
    if (counts)
        counts->size = sizeof *counts;
    return counts;
}

#ifndef PK_DISABLE

PK_API pk_request pk_request_begin_on_(pk_region *region, uint64_t id);
PK_API void pk_request_schedule_on_(pk_request *request);
PK_API void pk_request_prefill_on_(pk_request *request, uint64_t tokens);
PK_API void pk_request_tokens_on_(pk_request *request, uint64_t count);
PK_API void pk_request_preempt_on_(pk_request *request);
PK_API void pk_request_end_on_(pk_request *request, pk_request_outcome outcome);

PK_INLINE pk_request pk_request_begin(pk_region *region, uint64_t id)
{
    pk_request none;
    if (PK_ON_)
        return pk_request_begin_on_(region, id);
    __builtin_memset(&none, 0, sizeof none);
    return none;
}

PK_INLINE void pk_request_schedule(pk_request *request)
{
    if (PK_ON_)
        pk_request_schedule_on_(request);
}

PK_INLINE void pk_request_prefill(pk_request *request, uint64_t tokens)
{
    if (PK_ON_)
        pk_request_prefill_on_(request, tokens);
}

PK_INLINE void pk_request_tokens(pk_request *request, uint64_t count)
{
    if (PK_ON_)
        pk_request_tokens_on_(request, count);
}

PK_INLINE void pk_request_preempt(pk_request *request)
{
    if (PK_ON_)
        pk_request_preempt_on_(request);
}

PK_INLINE void pk_request_end(pk_request *request, pk_request_outcome outcome)
{
    if (PK_ON_)
        pk_request_end_on_(request, outcome);
}

#endif /* PK_DISABLE */

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_REQUEST_
#include <pk/disable.h>
#endif
#endif
