#include "job/frontier.h"

#include <stdlib.h>

#include "memory.h"

typedef struct walk {
    const job *of;
    const job_loop *loop;
    double *upto; /* by rank: time of its stages so far */
    double *led;  /* [stage * ranks + rank]: increments that it has made */
} walk;

/* The rank with the largest, the lowest of equal ones; how large it is. */
static double largest(const double *values, size_t count, size_t *at)
{
    *at = 0;
    for (size_t r = 1; r < count; r++)
        *at = values[r] > values[*at] ? r : *at;
    return values[*at];
}

static void add_block(walk *w, size_t block, job_frontier *f)
{
    size_t ranks = w->of->rank_count, leader;
    double before = 0, steps = 0;
    for (size_t r = 0; r < ranks; r++) {
        double of_rank = w->loop->steps[job_cell(w->of, block, r)];
        w->upto[r] = 0;
        steps = of_rank > steps ? of_rank : steps;
    }
    for (size_t k = 0; k < w->of->stage_count; k++) {
        for (size_t r = 0; r < ranks; r++)
            w->upto[r] += w->loop->selves[k][job_cell(w->of, block, r)];
        double now = largest(w->upto, ranks, &leader);
        f->stages[k].time += now - before;
        w->led[k * ranks + leader] += now - before;
        before = now;
    }
    f->exposed += before;
    f->steps += steps;
}

job_frontier job_find_frontier(const job *j, const job_loop *loop)
{
    job_frontier f = {0};
    if (!loop)
        return f;
    walk w = {.of = j, .loop = loop};
    w.upto = memory_zeroed(j->rank_count, sizeof *w.upto);
    w.led = memory_zeroed(j->rank_count * j->stage_count, sizeof *w.led);
    f.stages = memory_zeroed(j->stage_count, sizeof *f.stages);
    for (size_t b = 0; b < loop->block_count; b++)
        add_block(&w, b, &f);
    for (size_t k = 0; k < j->stage_count; k++)
        f.stages[k].of_rank = largest(w.led + k * j->rank_count, j->rank_count, &f.stages[k].rank);
    free(w.upto);
    free(w.led);
    return f;
}

void job_frontier_finish(job_frontier *f)
{
    free(f->stages);
    *f = (job_frontier){0};
}
