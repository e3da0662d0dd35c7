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

static void count_share(share *usual, const job_half_sent *s, const job_half_received *r)
{
    usual->whole += s->scale * longer_than_doubt(s, s->waits);
    usual->beyond += s->scale * longer_than_doubt(s, PKI_MAX(s->waits, r->until));
}

static void add_sent(job_waiting *to, const job_half_sent *s, const job_half_received *r,
                     const share *usual)
{
    int64_t from = r ? PKI_MAX(s->waits, r->until) : s->waits;
    double beyond = usual->whole > 0 ? usual->beyond / usual->whole : 0;
    job_waiting_add(to, &(job_waited){.rank = s->rank,
                                      .other = s->other,
                                      .sort = JOB_LATE_RECEIVER,
                                      .waits = s->waits,
                                      .ends = s->ends,
                                      .from = from,
                                      .until = longer_than_doubt(s, from) > 0 ? s->until : from,
                                      .scale = s->scale,
                                      .share = r ? 1 : beyond,
                                      .doubt = s->doubt});
}

void job_exchanges_end(job_exchanges *e, job_waiting *to, size_t ranks)
{
    share *usual = memory_zeroed(ranks + 1, sizeof *usual);
    if (e->received_count)
        qsort(e->received, e->received_count, sizeof *e->received, by_start);
    for (size_t i = 0; i < e->sent_count; i++) {
        const job_half_received *r = half_of(e, &e->sent[i]);
        if (r)
            count_share(&usual[e->sent[i].rank], &e->sent[i], r);
    }
    for (size_t i = 0; i < e->sent_count; i++)
        add_sent(to, &e->sent[i], half_of(e, &e->sent[i]), &usual[e->sent[i].rank]);
    free(usual);
    free(e->received);
    free(e->sent);
    *e = (job_exchanges){0};
}
