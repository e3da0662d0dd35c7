#include "job/costs.h"

#include <math.h>
#include <stdlib.h>

#include "bench/stats/sample_stats.h"
#include "memory.h"

typedef struct costs {
    const job *of;
    const job_loop *loop;
    const uint32_t *roles;
    const job_lateness *l;
    double *scratch;
} costs;

static bool is_in(const costs *c, const job_late *late, size_t rank)
{
    return late->host ? c->of->ranks[rank].host == late->host_at : rank == late->rank;
}

static bool is_late(const costs *c, size_t rank)
{
    for (size_t i = 0; i < c->l->count; i++)
        if (is_in(c, &c->l->late[i], rank))
            return true;
    return false;
}

static double work_of(const costs *c, size_t cell)
{
    return c->l->by_work ? c->loop->items[cell] : c->loop->steps[cell];
}

/* A stage's time per work in a block, of those in it: the median of the others that do the same. */
static double usual(const costs *c, const job_late *late, uint32_t role, size_t stage, size_t block)
{
    size_t count = 0;
    for (size_t r = 0; r < c->of->rank_count; r++) {
        size_t cell = job_cell(c->of, block, r);
        if (c->roles[r] == role && !is_in(c, late, r) && work_of(c, cell) > 0)
            c->scratch[count++] = c->loop->selves[stage][cell] / work_of(c, cell);
    }
    return count ? pki_samples_select_median(c->scratch, count) : 0;
}

/* The first of its ranks speaks for a host. */
static size_t first_rank(const costs *c, const job_late *late)
{
    size_t r = 0;
    while (r < c->of->rank_count && !is_in(c, late, r))
        r++;
    return r;
}

/* ns over all blocks that the stage takes more than it does in others. */
static double excess_of(const costs *c, const job_late *late, size_t rank, size_t stage)
{
    double excess = 0;
    for (size_t b = 0; b < c->loop->block_count; b++) {
        size_t cell = job_cell(c->of, b, rank);
        double work = work_of(c, cell);
        if (work > 0)
            excess +=
                c->loop->selves[stage][cell] - work * usual(c, late, c->roles[rank], stage, b);
    }
    return excess;
}

static void find_stage(const costs *c, job_late *late)
{
    size_t rank = first_rank(c, late);
    double all = 0, most = 0;
    for (size_t k = 0; k < c->of->stage_count; k++) {
        double excess = c->of->stages[k].waits ? 0 : excess_of(c, late, rank, k);
        all += excess > 0 ? excess : 0;
        if (excess > most) {
            most = excess;
            late->stage = k;
        }
    }
    late->stage_share = all > 0 ? most / all : 0;
}

/* As lateness has it: what it lacked a processor for is not its own. */
static double own_of(const costs *c, size_t cell)
{
    return c->loop->own[cell] - c->loop->ready[cell];
}

static void find_excess(const costs *c, job_late *late)
{
    double own = 0, steps = 0;
    for (size_t r = 0; r < c->of->rank_count; r++) {
        if (!is_in(c, late, r))
            continue;
        late->ranks++;
        for (size_t b = 0; b < c->loop->block_count; b++) {
            own += own_of(c, job_cell(c->of, b, r));
            steps += c->loop->steps[job_cell(c->of, b, r)];
        }
    }
    late->excess = steps > 0 ? own / steps * late->by / (1 + late->by) : 0;
}

/* The longest own time of all in a block, and of all but those: late NULL: but all that are late.
 */
static double cost_in(const costs *c, const job_late *late, size_t block)
{
    double all = 0, without = 0;
    for (size_t r = 0; r < c->of->rank_count; r++) {
        double own = own_of(c, job_cell(c->of, block, r));
        bool out = late ? is_in(c, late, r) : is_late(c, r);
        all = own > all ? own : all;
        without = !out && own > without ? own : without;
    }
    return without > 0 ? all - without : 0;
}

static double steps_in(const costs *c, size_t block)
{
    double most = 0;
    for (size_t r = 0; r < c->of->rank_count; r++) {
        double steps = c->loop->steps[job_cell(c->of, block, r)];
        most = steps > most ? steps : most;
    }
    return most;
}

static double cost_of(const costs *c, const job_late *late)
{
    double cost = 0, steps = 0;
    for (size_t b = 0; b < c->loop->block_count; b++) {
        cost += cost_in(c, late, b);
        steps += steps_in(c, b);
    }
    return steps > 0 ? cost / steps : 0;
}

void job_find_costs(const job *j, const uint32_t *roles, job_lateness *l)
{
    costs c = {j, job_usual(j), roles, l, memory_zeroed(j->rank_count, sizeof *c.scratch)};
    for (size_t i = 0; i < l->count; i++) {
        find_stage(&c, &l->late[i]);
        find_excess(&c, &l->late[i]);
        l->late[i].cost = cost_of(&c, &l->late[i]);
    }
    l->cost = l->count ? cost_of(&c, NULL) : 0;
    free(c.scratch);
}
