#include "job/figures/pop.h"

#include <stdlib.h>

#include "memory.h"

/* What the rank that waits least waits, in a block. */
static double least_wait(const job *j, const job_loop *loop, size_t block)
{
    double least = -1;
    for (size_t r = 0; r < j->rank_count; r++) {
        size_t cell = job_cell(j, block, r);
        double wait = loop->time[cell] - loop->own[cell];
        if (loop->steps[cell] > 0 && (least < 0 || wait < least))
            least = wait;
    }
    return least > 0 ? least : 0;
}

static double sum_over_blocks(const job *j, const job_loop *loop, const double *cells, size_t rank)
{
    double sum = 0;
    for (size_t b = 0; b < loop->block_count; b++)
        sum += cells[job_cell(j, b, rank)];
    return sum;
}

static void find_transfer(const job *j, const job_loop *loop, job_pop *p)
{
    for (size_t b = 0; b < loop->block_count; b++)
        p->transfer += least_wait(j, loop, b);
    double ideal = p->runtime - p->transfer;
    p->why_no_transfer = j->rank_count < 2  ? "there is one rank only"
                         : j->outside_waits ? "no stage of the steps is of the kind comm or wait"
                         : ideal <= 0       ? "the steps are nothing but waiting"
                                            : NULL;
    if (p->why_no_transfer)
        return;
    p->serialisation = p->useful_max / ideal;
    p->transfer_efficiency = ideal / p->runtime;
}

job_pop job_find_pop(const job *j, const job_loop *loop)
{
    job_pop p = {0};
    if (!loop)
        return p;
    double *useful = memory_zeroed(j->rank_count, sizeof *useful);
    for (size_t r = 0; r < j->rank_count; r++) {
        double time = sum_over_blocks(j, loop, loop->time, r);
        useful[r] = time > 0 ? sum_over_blocks(j, loop, loop->own, r) : -1;
        p.runtime = time > p.runtime ? time : p.runtime;
    }
    job_spread s = job_spread_of(j, useful);
    free(useful);
    p.known = s.have && s.max > 0 && p.runtime > 0;
    if (!p.known)
        return p;
    p.useful_mean = s.mean;
    p.useful_max = s.max;
    p.useful_max_rank = s.max_rank;
    p.load_balance = s.mean / s.max;
    p.communication = s.max / p.runtime;
    p.parallel = p.load_balance * p.communication;
    find_transfer(j, loop, &p);
    return p;
}
