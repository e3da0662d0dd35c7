#include "job/verdicts/crowd.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "measure/overhead.h"
#include "memory.h"

double job_crowd_share(const pki_processor *p)
{
    return p->observed >= PKI_PROCESSOR_LEAST_NS ? (double)p->ready / (double)p->observed : 0;
}

bool job_has_run_delay(const job_rank *rank)
{
    const pki_stage_summary *s = &rank->stages;
    for (size_t i = 0; i < s->loop_count; i++)
        if (!*s->loops[i].name)
            return s->loops[i].no_processor_count > 0;
    return false;
}

bool job_is_crowded(const job *j, size_t rank)
{
    return job_crowd_share(&j->ranks[rank].processor) >= JOB_CROWDED_FROM;
}

static double share_of(const job *j, size_t rank)
{
    const job_loop *loop = job_usual(j);
    double ready = 0, own = 0;
    for (size_t b = 0; loop && b < loop->block_count; b++) {
        ready += loop->ready[job_cell(j, b, rank)];
        own += loop->own[job_cell(j, b, rank)];
    }
    return job_has_run_delay(&j->ranks[rank]) ? (own > 0 ? ready / own : 0)
                                              : job_crowd_share(&j->ranks[rank].processor);
}

double job_crowd_most(const job *j)
{
    double most = 0;
    for (size_t r = 0; r < j->rank_count; r++)
        most = PKI_MAX(most, share_of(j, r));
    return most;
}

static void add_rank(job_crowd *c, const job *j, size_t rank)
{
    double share = share_of(j, rank);
    c->least = c->ranks ? PKI_MIN(c->least, share) : share;
    if (!c->ranks || share > c->most) {
        c->most = share;
        c->most_rank = rank;
    }
    c->host = j->ranks[rank].host;
    c->ranks++;
}

job_crowd *job_find_crowds(const job *j, size_t *count)
{
    job_crowd *crowds = memory_zeroed(j->hosts.count + 1, sizeof *crowds);
    for (size_t r = 0; r < j->rank_count; r++)
        add_rank(&crowds[j->ranks[r].host], j, r);
    *count = 0;
    for (size_t h = 0; h < j->hosts.count; h++)
        if (crowds[h].most >= JOB_CROWDED_FROM)
            crowds[(*count)++] = crowds[h];
    return crowds;
}
