/* lib/job/verdicts/costs.c - of those that are late: in which stage, and what it costs the job */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "job/verdicts/verdicts.h"
#include "stats/series.h"

/* ---- of those that are late: in which stage, and what it costs the job ---- */

/* Of the ranks of a role in a block and a stage: how many there are, and those in the middle, which
 * any one of them can be left out of. */
typedef struct middle {
    size_t count; /* 0: not looked at */
    double values[3];
} middle;

/* Of a block: the longest own time, whose it is, the longest of the others, and the most steps. */
typedef struct longest {
    double first, second, steps;
    size_t rank;
} longest;

typedef struct costs {
    const pki_job *of;
    const pki_job_loop *loop;
    const uint32_t *roles;
    const pki_job_lateness *l;
    double *scratch;
    middle *middles; /* by stage, then by block */
    uint32_t role;   /* theirs, and whose members these are */
    size_t *members, member_count;
    size_t *there; /* by block: those of them that made steps */
    longest *blocks;
    bool *late; /* by rank */
} costs;

static bool is_in(const costs *c, const pki_job_late *late, size_t rank)
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

/* How many of the role made steps in a block, without those of `late` (NULL: all). */
static size_t there_without(const costs *c, const pki_job_late *late, size_t block)
{
    size_t count = 0;
    for (size_t i = 0; i < c->member_count; i++) {
        size_t r = c->members[i];
        count += !(late && is_in(c, late, r)) && work_of(c, pki_job_cell(c->of, block, r)) > 0;
    }
    return count;
}

static void enter_role(costs *c, uint32_t role)
{
    if (c->role == role)
        return;
    c->role = role;
    c->member_count = 0;
    memset(c->middles, 0, c->of->stage_count * c->loop->block_count * sizeof *c->middles);
    for (size_t r = 0; r < c->of->rank_count; r++)
        if (c->roles[r] == role)
            c->members[c->member_count++] = r;
    for (size_t b = 0; b < c->loop->block_count; b++)
        c->there[b] = there_without(c, NULL, b);
}

/* Times of a stage per work, in scratch, of those that have it: of as many more it is 0. */
typedef struct times {
    double *values;
    size_t count, zeros;
} times;

/* Of those of the role that are not in it, NULL: of all. */
static times collect_times(const costs *c, const pki_job_late *late, size_t stage, size_t block)
{
    const pki_job_selves *of = &c->loop->selves[stage];
    times t = {.values = c->scratch};
    for (size_t i = 0; i < of->count; i++) {
        size_t r = of->ranks[i], cell = pki_job_cell(c->of, block, r);
        if (c->roles[r] == c->role && !(late && is_in(c, late, r)) && work_of(c, cell) > 0)
            t.values[t.count++] = of->rows[i * c->loop->block_count + block] / work_of(c, cell);
    }
    t.zeros = (late ? there_without(c, late, block) : c->there[block]) - t.count;
    return t;
}

/* None is below 0. */
static double nth(const times *t, size_t n)
{
    if (n < t->zeros)
        return 0;
    pki_select(t->values, t->count, n - t->zeros);
    return t->values[n - t->zeros];
}

static double median(const times *t)
{
    size_t n = t->count + t->zeros;
    if (n == 0)
        return 0;
    return n % 2 ? nth(t, n / 2) : (nth(t, n / 2 - 1) + nth(t, n / 2)) / 2;
}

static const middle *middle_of(const costs *c, size_t stage, size_t block)
{
    middle *m = &c->middles[stage * c->loop->block_count + block];
    if (m->count)
        return m;
    times t = collect_times(c, NULL, stage, block);
    m->count = t.count + t.zeros;
    for (size_t i = 0, first = m->count / 2 - (m->count > 1); i < 3 && first + i < m->count; i++)
        m->values[i] = nth(&t, first + i);
    return m;
}

/* With one of them, in order, left out, the one at a place from the first that is kept on. */
static double without(const middle *m, double one, size_t place)
{
    return m->values[place + (m->values[place] >= one)];
}

/* A stage's time per work in a block, of those in it: the median of the others that do the same.
 * own: that of its rank. */
static double usual(const costs *c, const pki_job_late *late, size_t stage, size_t block,
                    double own)
{
    if (late->host) {
        times t = collect_times(c, late, stage, block);
        return median(&t);
    }
    const middle *m = middle_of(c, stage, block);
    if (m->count < 2)
        return 0;
    if (m->count % 2 == 0) /* an odd number of others */
        return without(m, own, 0);
    return (without(m, own, 0) + without(m, own, 1)) / 2;
}

/* The first of its ranks speaks for a host. */
static size_t first_rank(const costs *c, const pki_job_late *late)
{
    size_t r = 0;
    while (r < c->of->rank_count && !is_in(c, late, r))
        r++;
    return r;
}

/* ns over its blocks that the stage takes more than it does in others; a rank without it has none.
 */
static double costs_excess_of(const costs *c, const pki_job_late *late, size_t rank, size_t stage)
{
    const double *row = pki_job_selves_row(c->loop, stage, rank);
    double excess = 0;
    for (size_t b = late->begin; row && b < late->end; b++) {
        double work = work_of(c, pki_job_cell(c->of, b, rank));
        if (work > 0)
            excess += row[b] - work * usual(c, late, stage, b, row[b] / work);
    }
    return excess;
}

static void find_stage(costs *c, pki_job_late *late)
{
    size_t rank = first_rank(c, late);
    enter_role(c, c->roles[rank]);
    double all = 0, most = 0;
    for (size_t k = 0; k < c->of->stage_count; k++) {
        double excess = c->of->stages[k].waits ? 0 : costs_excess_of(c, late, rank, k);
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

static void find_excess(const costs *c, pki_job_late *late)
{
    double own = 0, steps = 0;
    for (size_t r = 0; r < c->of->rank_count; r++) {
        if (!is_in(c, late, r))
            continue;
        late->ranks++;
        for (size_t b = late->begin; b < late->end; b++) {
            own += own_of(c, pki_job_cell(c->of, b, r));
            steps += c->loop->steps[pki_job_cell(c->of, b, r)];
        }
    }
    late->extra = own * late->by / (1 + late->by);
    late->excess = steps > 0 ? late->extra / steps : 0;
}

static void find_longest(costs *c)
{
    for (size_t b = 0; b < c->loop->block_count; b++) {
        longest *to = &c->blocks[b];
        for (size_t r = 0; r < c->of->rank_count; r++) {
            double own = own_of(c, pki_job_cell(c->of, b, r));
            to->steps = PKI_MAX(to->steps, c->loop->steps[pki_job_cell(c->of, b, r)]);
            if (own > to->first) {
                to->second = to->first;
                to->first = own;
                to->rank = r;
            } else {
                to->second = PKI_MAX(to->second, own);
            }
        }
    }
}

/* The longest own time of those in a block that are not in it; late NULL: that are not late. */
static double longest_without(const costs *c, const pki_job_late *late, size_t block)
{
    const longest *of = &c->blocks[block];
    double most = 0;
    if (late && !late->host)
        return of->rank == late->rank ? of->second : of->first;
    for (size_t r = 0; r < c->of->rank_count; r++) {
        double own = own_of(c, pki_job_cell(c->of, block, r));
        bool out = late ? is_in(c, late, r) : c->late[r];
        most = !out && own > most ? own : most;
    }
    return most;
}

/* ns of the job; late NULL: of all of them. */
static double lost_by(const costs *c, const pki_job_late *late)
{
    double cost = 0;
    for (size_t b = late ? late->begin : 0; b < (late ? late->end : c->loop->block_count); b++) {
        double others = longest_without(c, late, b);
        cost += others > 0 ? c->blocks[b].first - others : 0;
    }
    return cost;
}

typedef struct turn {
    uint32_t role;
    size_t late;
} turn;

static int by_role(const void *x, const void *y)
{
    const turn *a = x, *b = y;
    return (a->role > b->role) - (a->role < b->role);
}

/* Those of a role one after the other: what is known of it is forgotten with the next one. */
static bool find_stages(costs *c, pki_job_late *late, size_t count)
{
    turn *turns = pki_array_zeroed(count, sizeof *turns);
    if (!turns)
        return false;
    for (size_t i = 0; i < count; i++)
        turns[i] = (turn){c->roles[first_rank(c, &late[i])], i};
    if (count)
        qsort(turns, count, sizeof *turns, by_role);
    for (size_t i = 0; i < count; i++)
        find_stage(c, &late[turns[i].late]);
    free(turns);
    return true;
}

static bool costs_begin(costs *c)
{
    size_t ranks = c->of->rank_count, blocks = c->loop->block_count;
    c->scratch = pki_array_zeroed(ranks, sizeof *c->scratch);
    c->middles = pki_array_zeroed(c->of->stage_count * blocks, sizeof *c->middles);
    c->blocks = pki_array_zeroed(blocks, sizeof *c->blocks);
    c->late = pki_array_zeroed(ranks, sizeof *c->late);
    c->members = pki_array_zeroed(ranks, sizeof *c->members);
    c->there = pki_array_zeroed(blocks, sizeof *c->there);
    return c->scratch && c->middles && c->blocks && c->late && c->members && c->there;
}

static void costs_end(costs *c)
{
    free(c->scratch);
    free(c->middles);
    free(c->blocks);
    free(c->late);
    free(c->members);
    free(c->there);
}

static bool cost_each(costs *c, pki_job_late *late, size_t count, double steps)
{
    if (!find_stages(c, late, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        find_excess(c, &late[i]);
        late[i].lost = lost_by(c, &late[i]);
        late[i].cost = steps > 0 ? late[i].lost / steps : 0;
    }
    return true;
}

static bool cost_all(costs *c, pki_job_lateness *l)
{
    double steps = 0;
    find_longest(c);
    for (size_t b = 0; b < c->loop->block_count; b++) {
        double time = 0;
        for (size_t r = 0; r < c->of->rank_count; r++)
            time = PKI_MAX(time, c->loop->time[pki_job_cell(c->of, b, r)]);
        l->time += time;
        steps += c->blocks[b].steps;
    }
    for (size_t r = 0; r < c->of->rank_count; r++)
        c->late[r] = is_late(c, r);
    if (!cost_each(c, l->late, l->count, steps) || !cost_each(c, l->stops, l->stop_count, steps))
        return false;
    l->cost = steps > 0 ? lost_by(c, NULL) / steps : 0;
    return true;
}

bool pki_job_find_costs(const pki_job *j, const uint32_t *roles, pki_job_lateness *l)
{
    if (!l->count && !l->stop_count)
        return true;
    costs c = {.of = j, .loop = pki_job_usual(j), .roles = roles, .l = l, .role = UINT32_MAX};
    bool ok = costs_begin(&c) && cost_all(&c, l);
    costs_end(&c);
    return ok;
}
