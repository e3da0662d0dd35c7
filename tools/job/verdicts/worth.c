#include "job/verdicts/worth.h"

#include <math.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "job/verdicts/crowd.h"
#include "memory.h"

job_worth job_worth_begin(const job *j, const double *values, bool by_work, const bool *may_be)
{
    const job_loop *loop = job_usual(j);
    job_worth w = {.of = j, .by_work = by_work, .values = values};
    w.longest = memory_zeroed(loop->block_count, sizeof *w.longest);
    for (size_t b = 0; b < loop->block_count; b++) {
        double time = 0;
        for (size_t r = 0; r < j->rank_count; r++) {
            size_t cell = job_cell(j, b, r);
            time = PKI_MAX(time, loop->time[cell]);
            if (!may_be[r] && !isnan(values[cell]))
                w.longest[b] = PKI_MAX(w.longest[b], exp(values[cell]));
        }
        w.time += time;
    }
    return w;
}

void job_worth_end(job_worth *w)
{
    free(w->longest);
    *w = (job_worth){0};
}

static double cost_of(const job_worth *w, size_t rank)
{
    const job_loop *loop = job_usual(w->of);
    double cost = 0;
    for (size_t b = 0; b < loop->block_count; b++) {
        size_t cell = job_cell(w->of, b, rank);
        double work = w->by_work ? loop->items[cell] : loop->steps[cell];
        double own = isnan(w->values[cell]) ? 0 : exp(w->values[cell]);
        cost += work * PKI_MAX(own - w->longest[b], 0);
    }
    return cost;
}

/* Of what takes so much longer, as a logarithm, the share that does. */
static double part(double by)
{
    return -expm1(-by);
}

bool job_is_worth_while(const job_worth *w, size_t rank, const job_judgement *of)
{
    const job_loop *loop = job_usual(w->of);
    double own = 0, time = 0, low = part(of->interval.low);
    for (size_t b = 0; b < loop->block_count; b++) {
        size_t cell = job_cell(w->of, b, rank);
        own += loop->own[cell] - loop->ready[cell];
        time += loop->time[cell];
    }
    if (!job_is_crowded(w->of, rank))
        return own * low >= JOB_LATE_WORTH * time;
    return cost_of(w, rank) * low / part(of->by) >= JOB_LATE_COST * w->time;
}
