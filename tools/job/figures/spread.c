#include "job/job.h"

#include <stdlib.h>

#include "memory.h"

job_spread job_spread_of(const job *j, const double *values)
{
    job_spread s = {.max_rank = JOB_NO_RANK};
    double sum = 0;
    for (size_t r = 0; r < j->rank_count; r++) {
        double v = values[r];
        if (v < 0)
            continue;
        s.min = s.have && s.min < v ? s.min : v;
        if (!s.have || v > s.max) {
            s.max = v;
            s.max_rank = j->ranks[r].rank;
        }
        s.have++;
        sum += v;
    }
    s.mean = s.have ? sum / (double)s.have : 0;
    s.mean_all = j->rank_count ? sum / (double)j->rank_count : 0;
    s.imbalance = s.mean_all > 0 ? s.max / s.mean_all - 1 : 0;
    return s;
}

static double per_step(const job_loop *loop, const double *row, size_t rank)
{
    double time = 0;
    for (size_t b = 0; b < loop->block_count; b++)
        time += row[b];
    return time > 0 ? time / loop->made[rank] : -1;
}

double job_stage_of_rank(const job_loop *loop, size_t stage, size_t rank)
{
    const double *row = job_selves_row(loop, stage, rank);
    return row ? per_step(loop, row, rank) : -1;
}

job_spread job_spread_of_stage(const job *j, const job_loop *loop, size_t stage)
{
    double *values = memory_zeroed(j->rank_count, sizeof *values);
    const job_selves *of = &loop->selves[stage];
    for (size_t r = 0; r < j->rank_count; r++)
        values[r] = -1;
    for (size_t i = 0; i < of->count; i++)
        values[of->ranks[i]] = per_step(loop, of->rows + i * loop->block_count, of->ranks[i]);
    job_spread s = job_spread_of(j, values);
    free(values);
    return s;
}
