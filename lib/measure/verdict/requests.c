/* lib/measure/verdict/requests.c - of a server: requests that miss their limits, or wait. */
#include "measure/verdict/rules.h"
#include "measure/verdict/verdict.h"

/* What most of their time went to, in words, and what helps. */
typedef struct cause {
    uint64_t ns;
    const char *what, *advice;
} cause;

static cause largest_cause(const pki_request_parts *p)
{
    const cause all[] = {
        {p->queued, "the queue", "Let more into the batch at once, or have more servers."},
        {p->preempted, "being out of the batch again",
         "Let fewer in at once, or give the cache more memory."},
        {p->prefill, "reading their own prompts", "Keep what prompts have in common."},
        {p->crowded, "others' prompts before the first token",
         "Read prompts in smaller chunks, or on servers of their own."},
        {p->decode, "generating", "What a step of the batch takes decides."},
        {p->behind, "others' prompts between tokens",
         "Read prompts in smaller chunks, or on servers of their own."}};
    const cause *found = all;
    for (size_t i = 1; i < PKI_COUNT_OF(all); i++)
        found = all[i].ns > found->ns ? &all[i] : found;
    return *found;
}

static double share_of(uint64_t part, uint64_t all)
{
    return all ? (double)part / (double)all : 0;
}

static void add_limits(pki_sentence *words, const pki_request_summary *r)
{
    if (r->ttft_limit)
        pki_sentence_add(words, " first token %s", TIME((double)r->ttft_limit));
    if (r->tpot_limit)
        pki_sentence_add(words, "%s %s a token", r->ttft_limit ? "," : "",
                         TIME((double)r->tpot_limit));
}

bool pki_verdict_requests_late(pki_summary *s, pki_sentence *words)
{
    const pki_request_summary *r = &s->requests;
    double share = share_of(r->slow.count, r->finished);
    if (r->slow_from || r->finished < PKI_REQUESTS_LEAST || !(share > PKI_LATE_SHARE))
        return true;
    cause most = largest_cause(&r->slow);
    pki_sentence_add(
        words, "%s of the finished requests missed the limits (threshold 5 %%):", PERCENT(share));
    add_limits(words, r);
    pki_sentence_add(words, ". Of their time %s went to %s. %s",
                     PERCENT(share_of(most.ns, r->slow.total)), most.what, most.advice);
    return pki_verdict_add_sentence(words, s, "requests-late", PKI_WARN, share, PKI_LATE_SHARE);
}

/* Nobody has said what is late. */
bool pki_verdict_requests_queued(pki_summary *s, pki_sentence *words)
{
    const pki_request_summary *r = &s->requests;
    double share = share_of(r->all.queued, r->all.total);
    if (!r->slow_from || r->count < PKI_REQUESTS_LEAST || !(share > PKI_QUEUED_SHARE))
        return true;
    cause most = largest_cause(&r->slow);
    pki_sentence_add(words,
                     "Requests spend %s of their time in the queue (threshold 50 %%), %s each.",
                     PERCENT(share), TIME((double)r->all.queued / (double)r->all.count));
    pki_sentence_add(words, " Of the slowest, %s and more, %s went to %s. %s",
                     TIME((double)r->slow_from), PERCENT(share_of(most.ns, r->slow.total)),
                     most.what, most.advice);
    return pki_verdict_add_sentence(words, s, "requests-queued", PKI_WARN, share, PKI_QUEUED_SHARE);
}
