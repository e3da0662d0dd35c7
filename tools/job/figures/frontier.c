#include "job/figures/frontier.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "memory.h"

#define AT_ONCE 8 /* blocks: a line of the processor's cache */

typedef struct walk {
    const job *of;
    const job_loop *loop;
    double (*upto)[AT_ONCE]; /* by rank: time of its stages so far */
    double before[AT_ONCE];  /* the largest of them */
    double **led;            /* by stage, then by row of its selves: increments that it has made */
} walk;

/* Only who has the stage goes on in it, so the largest is who was it before, or one of these; of
 * equal ones the lowest rank, which comes first. */
static void add_stage(walk *w, size_t stage, size_t block, size_t blocks, job_frontier *f)
{
    const job_selves *of = &w->loop->selves[stage];
    double now[AT_ONCE];
    size_t leader[AT_ONCE] = {0};
    memcpy(now, w->before, sizeof now);
    for (size_t i = 0; i < of->count; i++) {
        const double *row = of->rows + i * w->loop->block_count + block;
        double *upto = w->upto[of->ranks[i]];
        for (size_t b = 0; b < blocks; b++) {
            upto[b] += row[b];
            leader[b] = upto[b] > now[b] ? i : leader[b];
            now[b] = PKI_MAX(upto[b], now[b]);
        }
    }
    for (size_t b = 0; b < blocks; b++) {
        f->stages[stage].time += now[b] - w->before[b];
        if (now[b] > w->before[b])
            w->led[stage][leader[b]] += now[b] - w->before[b];
    }
    memcpy(w->before, now, sizeof now);
}

static void add_blocks(walk *w, size_t block, size_t blocks, job_frontier *f)
{
    memset(w->upto, 0, w->of->rank_count * sizeof *w->upto);
    memset(w->before, 0, sizeof w->before);
    for (size_t k = 0; k < w->of->stage_count; k++)
        add_stage(w, k, block, blocks, f);
    for (size_t b = 0; b < blocks; b++) {
        double steps = 0;
        for (size_t r = 0; r < w->of->rank_count; r++)
            steps = PKI_MAX(steps, w->loop->steps[job_cell(w->of, block + b, r)]);
        f->exposed += w->before[b];
        f->steps += steps;
    }
}

/* Who has made most of the stage's, the lowest of equal ones. */
static void find_rank(const walk *w, size_t stage, job_increment *of)
{
    const job_selves *selves = &w->loop->selves[stage];
    for (size_t i = 0; i < selves->count; i++)
        if (w->led[stage][i] > of->of_rank) {
            of->of_rank = w->led[stage][i];
            of->rank = selves->ranks[i];
        }
}

job_frontier job_find_frontier(const job *j, const job_loop *loop)
{
    job_frontier f = {0};
    if (!loop)
        return f;
    walk w = {.of = j, .loop = loop};
    w.upto = memory_zeroed(j->rank_count, sizeof *w.upto);
    w.led = memory_zeroed(j->stage_count, sizeof *w.led);
    for (size_t k = 0; k < j->stage_count; k++)
        w.led[k] = memory_zeroed(loop->selves[k].count, sizeof **w.led);
    f.stages = memory_zeroed(j->stage_count, sizeof *f.stages);
    for (size_t b = 0; b < loop->block_count; b += AT_ONCE)
        add_blocks(&w, b, PKI_MIN(loop->block_count - b, AT_ONCE), &f);
    for (size_t k = 0; k < j->stage_count; k++) {
        find_rank(&w, k, &f.stages[k]);
        free(w.led[k]);
    }
    free(w.led);
    free(w.upto);
    return f;
}

void job_frontier_finish(job_frontier *f)
{
    free(f->stages);
    *f = (job_frontier){0};
}
