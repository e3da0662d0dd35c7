#include "job/figures/waits_exchanges.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "memory.h"

void job_exchanges_received(job_exchanges *e, const job_half_received *half)
{
    memory_fit(&e->received, &e->received_room, e->received_count + 1, sizeof *half);
    e->received[e->received_count++] = *half;
}

void job_exchanges_sent(job_exchanges *e, const job_half_sent *half)
{
    memory_fit(&e->sent, &e->sent_room, e->sent_count + 1, sizeof *half);
    e->sent[e->sent_count++] = *half;
}

static int by_start(const void *x, const void *y)
{
    const job_half_received *a = x, *b = y;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->start > b->start) - (a->start < b->start);
}

/* The last one that had begun when the send did: it begins and ends a little before the call. */
static const job_half_received *half_of(const job_exchanges *e, const job_half_sent *s)
{
    size_t low = 0, high = e->received_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const job_half_received *r = &e->received[middle];
        if (r->rank < s->rank || (r->rank == s->rank && r->start <= s->start))
            low = middle + 1;
        else
            high = middle;
    }
    const job_half_received *r = low ? &e->received[low - 1] : NULL;
    return r && r->rank == s->rank && r->end > s->start ? r : NULL;
}

static double longer_than_doubt(const job_half_sent *s, int64_t from)
{
    int64_t wait = s->until - from;
    return wait > s->doubt ? (double)wait : 0;
}

typedef struct share {
    double whole, beyond; /* ns, of calls of which both halves are known */
} share;

static double beyond_of(const job_half_sent *s, const job_half_received *r, const share *usual)
{
    double whole = longer_than_doubt(s, s->waits);
    if (r)
        return longer_than_doubt(s, PKI_MAX(s->waits, r->until));
    return usual->whole > 0 ? whole * usual->beyond / usual->whole : 0;
}

void job_exchanges_end(job_exchanges *e, job_waits *to, size_t ranks)
{
    share *usual = memory_zeroed(ranks + 1, sizeof *usual);
    if (e->received_count)
        qsort(e->received, e->received_count, sizeof *e->received, by_start);
    for (size_t i = 0; i < e->sent_count; i++) {
        const job_half_sent *s = &e->sent[i];
        const job_half_received *r = half_of(e, s);
        usual[s->rank].whole += r ? s->scale * longer_than_doubt(s, s->waits) : 0;
        usual[s->rank].beyond += r ? s->scale * beyond_of(s, r, NULL) : 0;
    }
    for (size_t i = 0; i < e->sent_count; i++) {
        const job_half_sent *s = &e->sent[i];
        double wait = s->scale * beyond_of(s, half_of(e, s), &usual[s->rank]);
        to->by[JOB_LATE_RECEIVER][s->rank] += wait;
        to->caused[s->other] += wait;
        to->doubt = wait > 0 ? PKI_MAX(to->doubt, s->doubt) : to->doubt;
    }
    free(usual);
    free(e->received);
    free(e->sent);
    *e = (job_exchanges){0};
}
