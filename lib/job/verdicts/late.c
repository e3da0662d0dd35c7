/* lib/job/verdicts/late.c - ranks and hosts that are late: which, where, and what it costs */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "bench/stats/evidence.h"
#include "bench/stats/samples.h"
#include "job/verdicts/verdicts.h"
#include "measure/figure.h"
#include "stats/series.h"

/* ---- is it worth while to say of a rank that it is late? ---- */

static bool pki_job_worth_begin(pki_job_worth *w, const pki_job *j, const double *values,
                                bool by_work, const bool *may_be)
{
    const pki_job_loop *loop = pki_job_usual(j);
    *w = (pki_job_worth){.of = j, .by_work = by_work, .values = values};
    w->longest = pki_array_zeroed(loop->block_count, sizeof *w->longest);
    for (size_t b = 0; w->longest && b < loop->block_count; b++) {
        double time = 0;
        for (size_t r = 0; r < j->rank_count; r++) {
            size_t cell = pki_job_cell(j, b, r);
            time = PKI_MAX(time, loop->time[cell]);
            if (!may_be[r] && !isnan(values[cell]))
                w->longest[b] = PKI_MAX(w->longest[b], exp(values[cell]));
        }
        w->time += time;
    }
    return w->longest != NULL;
}

/* values: lateness', which stay the caller's. may_be: by rank, whether it may be late. */
static void pki_job_worth_end(pki_job_worth *w)
{
    free(w->longest);
    *w = (pki_job_worth){0};
}

static double cost_of_rank(const pki_job_worth *w, size_t rank)
{
    const pki_job_loop *loop = pki_job_usual(w->of);
    double cost = 0;
    for (size_t b = 0; b < loop->block_count; b++) {
        size_t cell = pki_job_cell(w->of, b, rank);
        double work = w->by_work ? loop->items[cell] : loop->steps[cell];
        double own = isnan(w->values[cell]) ? 0 : exp(w->values[cell]);
        cost += work * PKI_MAX(own - w->longest[b], 0);
    }
    return cost;
}

/* Of what takes so much longer, as a logarithm, the share that does. */
static double cost_part(double by)
{
    return -expm1(-by);
}

static bool pki_job_is_worth_while(const pki_job_worth *w, size_t rank, const pki_job_judgement *of)
{
    const pki_job_loop *loop = pki_job_usual(w->of);
    double own = 0, time = 0, low = cost_part(of->interval.low);
    for (size_t b = 0; b < loop->block_count; b++) {
        size_t cell = pki_job_cell(w->of, b, rank);
        own += loop->own[cell] - loop->ready[cell];
        time += loop->time[cell];
    }
    if (!pki_job_is_crowded(w->of, rank))
        return own * low >= PKI_JOB_LATE_WORTH * time;
    return cost_of_rank(w, rank) * low / cost_part(of->by) >= PKI_JOB_LATE_COST * w->time;
}

/* ---- does a rank stand out from the others of its host, where these share processors? ---- */

#define STANDS_OUT 2.0         /* times as long as others: always */
#define STANDS_DETERMINED 0.02 /* the level, where the processors' part is off */

typedef struct standing {
    uint32_t host, role;
    double late;
    size_t rank;
} standing;

/* Those that are compared stand together, the latest first. */
static int by_group(const void *x, const void *y)
{
    const standing *a = x, *b = y;
    if (a->host != b->host)
        return a->host < b->host ? -1 : 1;
    if (a->role != b->role)
        return a->role < b->role ? -1 : 1;
    if (a->late != b->late)
        return a->late > b->late ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* The first of them among the others: Grubbs' test. */
static bool is_outlier(const standing *standings, size_t count, double level)
{
    double sum = 0, squares = 0, others = (double)(count - 1);
    for (size_t i = 1; i < count; i++)
        sum += standings[i].late;
    for (size_t i = 1; i < count; i++)
        squares += (standings[i].late - sum / others) * (standings[i].late - sum / others);
    double error = sqrt(squares / (others - 1) * (1 + 1 / others));
    double distance = standings[0].late - sum / others;
    return distance > -pki_t_quantile(level, others - 1) * error;
}

static void judge_group(const standing *standings, size_t count, double level, bool *stands)
{
    for (size_t i = 0; i + 3 <= count; i++) {
        const standing *s = &standings[i];
        if (!(s->late >= log(STANDS_OUT)) && !is_outlier(s, count - i, level))
            break;
        stands[s->rank] = true;
    }
}

static size_t crowded_standings(const pki_job *j, const uint32_t *roles, const double *late,
                                bool *crowded, standing *standings)
{
    size_t count = 0;
    for (size_t r = 0; r < j->rank_count; r++)
        crowded[j->ranks[r].host] |= pki_job_is_crowded(j, r);
    for (size_t r = 0; r < j->rank_count; r++)
        if (crowded[j->ranks[r].host] && !isnan(late[r]))
            standings[count++] = (standing){j->ranks[r].host, roles[r], late[r], r};
    return count;
}

static double level_among(const standing *standings, size_t count, const bool *determined,
                          double level)
{
    for (size_t i = 0; i < count; i++)
        if (!determined[standings[i].rank])
            return level;
    return PKI_MAX(level, STANDS_DETERMINED);
}

static void judge_groups(standing *standings, size_t count, const bool *determined, double level,
                         bool *stands)
{
    if (count)
        qsort(standings, count, sizeof *standings, by_group);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && standings[i + n].host == standings[i].host &&
                    standings[i + n].role == standings[i].role;)
            n++;
        for (size_t k = 0; n >= 3 && k < n; k++)
            stands[standings[i + k].rank] = false;
        judge_group(standings + i, n, level_among(standings + i, n, determined, level), stands);
    }
}

/* By place of a rank; determined: of pki_job_processors; late: logarithms, by rank; level: of each
 * comparison. All true on hosts that are not crowded, or have fewer than three ranks to compare. To
 * be freed; NULL without memory. */
static bool *pki_job_stand_out(const pki_job *j, const uint32_t *roles, const bool *determined,
                               const double *late, double level)
{
    bool *stands = pki_array_zeroed(j->rank_count, sizeof *stands);
    bool *crowded = pki_array_zeroed(j->hosts.count, sizeof *crowded);
    standing *standings = pki_array_zeroed(j->rank_count, sizeof *standings);
    for (size_t r = 0; stands && r < j->rank_count; r++)
        stands[r] = true;
    bool done = stands && crowded && standings;
    if (done)
        judge_groups(standings, crowded_standings(j, roles, late, crowded, standings), determined,
                     level, stands);
    else
        free(stands);
    free(crowded);
    free(standings);
    return done ? stands : NULL;
}

/* ---- ranks that are late ---- */

/* One more. */
static void note_undecided(pki_job_undecided *to, size_t rank, double by)
{
    if (!to->ranks || by > to->by)
        *to = (pki_job_undecided){.ranks = to->ranks, .rank = rank, .by = by};
    to->ranks++;
}

/* ---- a rank at the end of a slow link is not late for that ---- */

#define LINK_PART 0.1

static double excess_of(const pki_job *j, const pki_job_late *late)
{
    const pki_job_loop *loop = pki_job_usual(j);
    double own = 0;
    for (size_t b = 0; b < loop->block_count; b++) {
        size_t cell = pki_job_cell(j, b, late->rank);
        own += loop->own[cell] - loop->ready[cell];
    }
    return own * late->by / (1 + late->by);
}

/* ns of the run that slow links of a rank take longer than others would. */
static double links_of(const pki_job_waits *waits, size_t rank)
{
    double cost = 0;
    for (size_t i = 0; i < waits->link_count && waits->links[i].slow; i++) {
        const pki_job_link *link = &waits->links[i];
        if (link->from == rank || link->to == rank)
            cost += (link->transfer - link->usual) * link->messages;
    }
    return cost;
}

/* Takes them off l->late, and notes them in l->at_link. */
static void excuse_link_ends(const pki_job *j, const pki_job_waits *waits, pki_job_lateness *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++) {
        const pki_job_late *late = &l->late[i];
        bool part = !late->host && excess_of(j, late) < LINK_PART * links_of(waits, late->rank);
        if (part)
            note_undecided(&l->at_link, late->rank, late->by);
        else
            l->late[kept++] = *late;
    }
    l->count = kept;
}

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

/* ns over all blocks that the stage takes more than it does in others; a rank without it has none.
 */
static double costs_excess_of(const costs *c, const pki_job_late *late, size_t rank, size_t stage)
{
    const double *row = pki_job_selves_row(c->loop, stage, rank);
    double excess = 0;
    for (size_t b = 0; row && b < c->loop->block_count; b++) {
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
        for (size_t b = 0; b < c->loop->block_count; b++) {
            own += own_of(c, pki_job_cell(c->of, b, r));
            steps += c->loop->steps[pki_job_cell(c->of, b, r)];
        }
    }
    late->excess = steps > 0 ? own / steps * late->by / (1 + late->by) : 0;
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

static double cost_of(const costs *c, const pki_job_late *late)
{
    double cost = 0, steps = 0;
    for (size_t b = 0; b < c->loop->block_count; b++) {
        double others = longest_without(c, late, b);
        cost += others > 0 ? c->blocks[b].first - others : 0;
        steps += c->blocks[b].steps;
    }
    return steps > 0 ? cost / steps : 0;
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
static bool find_stages(costs *c, pki_job_lateness *l)
{
    turn *turns = pki_array_zeroed(l->count, sizeof *turns);
    if (!turns)
        return false;
    for (size_t i = 0; i < l->count; i++)
        turns[i] = (turn){c->roles[first_rank(c, &l->late[i])], i};
    qsort(turns, l->count, sizeof *turns, by_role);
    for (size_t i = 0; i < l->count; i++)
        find_stage(c, &l->late[turns[i].late]);
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

static bool cost_all(costs *c, pki_job_lateness *l)
{
    find_longest(c);
    for (size_t r = 0; r < c->of->rank_count; r++)
        c->late[r] = is_late(c, r);
    if (!find_stages(c, l))
        return false;
    for (size_t i = 0; i < l->count; i++) {
        find_excess(c, &l->late[i]);
        l->late[i].cost = cost_of(c, &l->late[i]);
    }
    l->cost = cost_of(c, NULL);
    return true;
}

static bool find_costs(const pki_job *j, const uint32_t *roles, pki_job_lateness *l)
{
    if (!l->count)
        return true;
    costs c = {.of = j, .loop = pki_job_usual(j), .roles = roles, .l = l, .role = UINT32_MAX};
    bool ok = costs_begin(&c) && cost_all(&c, l);
    costs_end(&c);
    return ok;
}

/* ---- who is late, by how much, where, and what it costs ---- */

#define LATE_LEVEL 0.05 /* probability of a false verdict, over all of them, at most */

/* ---- values ---- */

static bool all_have_items(const pki_job *j, const pki_job_loop *loop)
{
    for (size_t i = 0; i < loop->block_count * j->rank_count; i++)
        if (loop->steps[i] > 0 && loop->items[i] <= 0)
            return false;
    return true;
}

static double value_of(const pki_job_loop *loop, size_t cell, bool by_work, const double *without)
{
    double work = by_work ? loop->items[cell] : loop->steps[cell];
    double own = loop->own[cell] - without[cell];
    return work > 0 && own > 0 ? log(own / work) : NAN;
}

static double *values_of(const pki_job *j, const pki_job_loop *loop, bool by_work,
                         const double *without)
{
    size_t cells = loop->block_count * j->rank_count;
    double *values = pki_array_zeroed(cells, sizeof *values);
    for (size_t i = 0; values && i < cells; i++)
        values[i] = value_of(loop, i, by_work, without);
    return values;
}

/* ---- verdicts ---- */

/* NULL without memory. */
static pki_job_late *add_late(pki_job_lateness *l, const pki_job_judgement *of)
{
    if (!pki_array_fit(&l->late, &l->room, l->count + 1, sizeof *l->late))
        return NULL;
    l->late[l->count] = (pki_job_late){.by = expm1(of->by),
                                       .low = expm1(of->interval.low),
                                       .high = expm1(of->interval.high),
                                       .processor = PKI_SEAT_UNKNOWN};
    return &l->late[l->count++];
}

/* ---- hosts ---- */

/* The median of some ranks; NAN unless two of them are there. */
static double value_of_some(const double *values, const size_t *ranks, size_t count,
                            double *scratch)
{
    size_t there = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[ranks[i]]))
            scratch[there++] = values[ranks[i]];
    return there < 2 ? NAN : pki_samples_select_median(scratch, there);
}

static double *values_of_hosts(const pki_job *j, const double *values, size_t blocks)
{
    size_t hosts = j->hosts.count;
    pki_job_hosts by;
    double *scratch = pki_array_zeroed(j->rank_count, sizeof *scratch);
    double *out = pki_array_zeroed(hosts * blocks, sizeof *out);
    if (pki_job_by_host(&by, j) && scratch && out) {
        for (size_t b = 0; b < blocks; b++)
            for (size_t h = 0; h < hosts; h++)
                out[b * hosts + h] =
                    value_of_some(values + pki_job_cell(j, b, 0), by.ranks + by.begins[h],
                                  by.begins[h + 1] - by.begins[h], scratch);
    } else {
        free(out);
        out = NULL;
    }
    free(scratch);
    pki_job_hosts_finish(&by);
    return out;
}

/* Its ranks are compared with the others as if it were not late. */
static void subtract_host(const pki_job *j, double *values, size_t blocks, uint32_t host, double by)
{
    for (size_t b = 0; b < blocks; b++)
        for (size_t r = 0; r < j->rank_count; r++)
            if (j->ranks[r].host == host)
                values[pki_job_cell(j, b, r)] -= by;
}

static bool judge_hosts(const pki_job *j, const pki_job_field *f, pki_job_field *ranks,
                        pki_job_lateness *l)
{
    for (uint32_t h = 0; h < f->units; h++) {
        pki_job_judgement of = pki_job_field_judge(f, PKI_JOB_IN_THE_MIDDLE, h);
        if (!of.late)
            continue;
        pki_job_late *late = add_late(l, &of);
        if (!late)
            return false;
        late->host = true;
        late->host_at = h;
        subtract_host(j, ranks->values, f->blocks, h, of.by);
        subtract_host(j, ranks->low, f->blocks, h, of.by);
    }
    return true;
}

/* Where a host has few ranks, or each its own role, there is nothing to be said of hosts. */
static bool compares_hosts(const pki_job *j, size_t roles)
{
    size_t hosts = j->hosts.count;
    return hosts >= 2 && j->rank_count >= 2 * hosts && roles <= 1;
}

static bool find_hosts(const pki_job *j, pki_job_field *ranks, pki_job_lateness *l)
{
    size_t hosts = j->hosts.count;
    if (!compares_hosts(j, l->roles))
        return true;
    uint32_t *one = pki_array_zeroed(hosts, sizeof *one);
    pki_job_field f = {.units = hosts,
                       .blocks = ranks->blocks,
                       .roles = one,
                       .role_count = 1,
                       .level = ranks->level};
    f.values = values_of_hosts(j, ranks->values, f.blocks);
    f.low = values_of_hosts(j, ranks->low, f.blocks);
    bool ok = one && f.values && f.low;
    if (ok) {
        ok = pki_job_field_begin(&f) && judge_hosts(j, &f, ranks, l);
        pki_job_field_end(&f);
    }
    free(f.values);
    free(f.low);
    free(one);
    return ok;
}

/* ---- ranks ---- */

/* What each look sees of the ranks, and who stands out by that: [rank], of a look. */
typedef struct seen {
    double *quick[PKI_JOB_LOOKS];
    bool *stands[PKI_JOB_LOOKS];
    bool *may_be; /* late, by either */
} seen;

/* To be given to unsee in any case. */
static bool see(seen *s, const pki_job *j, const pki_job_field *f, const pki_job_lateness *l)
{
    *s = (seen){.may_be = pki_array_zeroed(f->units, sizeof *s->may_be)};
    for (int look = 0; look < PKI_JOB_LOOKS; look++) {
        s->quick[look] = pki_array_zeroed(f->units, sizeof **s->quick);
        if (!s->may_be || !s->quick[look])
            return false;
        for (size_t r = 0; r < f->units; r++) {
            s->quick[look][r] = pki_job_field_quick(f, (pki_job_look)look, r);
            s->may_be[r] |= s->quick[look][r] > log1p(PKI_JOB_LATE_LEAST);
        }
        s->stands[look] =
            pki_job_stand_out(j, f->roles, l->processors.determined, s->quick[look], f->level);
        if (!s->stands[look])
            return false;
    }
    return true;
}

static void unsee(seen *s)
{
    for (int look = 0; look < PKI_JOB_LOOKS; look++) {
        free(s->quick[look]);
        free(s->stands[look]);
    }
    free(s->may_be);
}

/* Why a rank is not called late. */
typedef enum why {
    NOT_BEYOND, /* the limit; or something else is said of it */
    NOT_SURE,
    NOT_WORTH,
    NOT_ALONE
} why;

/* By the first look that finds it so. */
static pki_job_judgement judge_rank(const pki_job_worth *w, const pki_job_field *f, const seen *s,
                                    size_t rank, why * not )
{
    pki_job_judgement first = {NAN, {-INFINITY, INFINITY}, false};
    *not = NOT_BEYOND;
    for (int look = 0; look < PKI_JOB_LOOKS; look++) {
        if (!(s->quick[look][rank] > log1p(PKI_JOB_LATE_LEAST)))
            continue;
        pki_job_judgement of = pki_job_field_judge(f, (pki_job_look)look, rank);
        bool worth = of.late && pki_job_is_worth_while(w, rank, &of);
        if (worth && s->stands[look][rank])
            return of;
        *not = PKI_MAX(*not, worth ? NOT_ALONE : of.late ? NOT_WORTH : NOT_SURE);
        first = isnan(first.by) ? of : first;
    }
    first.late = false;
    return first;
}

/* What is said of a rank that stands beyond the limit in every table, and is not called late. */
typedef struct undecided {
    why not ;
    double low;
} undecided;

static bool judge_each(const pki_job_worth *w, const pki_job_field *f, const seen *s,
                       undecided *left, pki_job_lateness *l)
{
    for (size_t r = 0; r < f->units; r++) {
        pki_job_judgement of = judge_rank(w, f, s, r, &left[r].not );
        left[r].low = expm1(of.interval.low);
        l->by[r] = expm1(isnan(of.by) ? s->quick[PKI_JOB_IN_THE_MIDDLE][r] : of.by);
        if (!of.late)
            continue;
        pki_job_late *late = add_late(l, &of);
        if (!late)
            return false;
        late->rank = r;
        late->host_at = w->of->ranks[r].host;
        late->processor = l->processors.alone[r];
        left[r].not = NOT_BEYOND;
    }
    return true;
}

/* What is done with what is seen of the ranks. */
typedef bool judge(const pki_job_worth *w, const pki_job_field *f, const seen *s, undecided *left,
                   pki_job_lateness *l);

static bool judge_ranks(const pki_job *j, const pki_job_field *f, undecided *left,
                        pki_job_lateness *l, judge *each)
{
    seen s;
    bool ok = see(&s, j, f, l);
    if (ok) {
        pki_job_worth w;
        ok =
            pki_job_worth_begin(&w, j, f->values, l->by_work, s.may_be) && each(&w, f, &s, left, l);
        pki_job_worth_end(&w);
    }
    unsee(&s);
    return ok;
}

static void note_left(const undecided *left, size_t ranks, pki_job_lateness *l)
{
    pki_job_undecided *const to[] = {NULL, &l->unsure, &l->not_worth, &l->not_alone};
    for (size_t r = 0; r < ranks; r++) {
        if (!left[r].not || (left[r].not != NOT_ALONE && l->by[r] <= PKI_JOB_LATE_LEAST))
            continue;
        note_undecided(to[left[r].not ], r, l->by[r]);
        if (to[left[r].not ]->rank == r)
            to[left[r].not ]->low = left[r].low;
    }
}

static bool is_accused(const pki_job_lateness *l, size_t rank)
{
    for (size_t i = 0; i < l->count; i++)
        if (!l->late[i].host && l->late[i].rank == rank)
            return true;
    return false;
}

static bool is_any_unknown(const pki_job *j)
{
    for (size_t r = 0; r < j->rank_count; r++)
        if (!pki_job_has_run_delay(&j->ranks[r]) && pki_job_crowd_share(&j->ranks[r].processor) > 0)
            return true;
    return false;
}

static bool note_not_known(const pki_job_worth *w, const pki_job_field *f, const seen *s,
                           undecided *left, pki_job_lateness *l)
{
    for (size_t r = 0; r < f->units; r++) {
        why not ;
        pki_job_judgement of = judge_rank(w, f, s, r, &not );
        if (of.late && !is_accused(l, r)) {
            note_undecided(&l->not_known, r, expm1(of.by));
            left[r].not = NOT_BEYOND;
        }
    }
    return true;
}

/* Who would be late if none of the time without a processor that nobody tells step by step had been
 * its own. */
static bool find_not_known(const pki_job *j, const pki_job_field *ranks, undecided *left,
                           pki_job_lateness *l)
{
    if (!is_any_unknown(j))
        return true;
    pki_job_field f = *ranks;
    f.low = f.values;
    bool ok = pki_job_field_begin(&f) && judge_ranks(j, &f, left, l, note_not_known);
    pki_job_field_end(&f);
    return ok;
}

static int latest_first(const void *x, const void *y)
{
    const pki_job_late *a = x, *b = y;
    if (a->by != b->by)
        return a->by < b->by ? 1 : -1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static const char *why_not(const pki_job *j, const pki_job_loop *loop, double level)
{
    if (!loop)
        return "there are no steps that ranks could be compared by";
    if (j->rank_count < 2)
        return "there is one rank only";
    if (!pki_samples_sign_supported(loop->block_count, 1, 1 - 2 * level))
        return "there are too few steps to tell a slow rank from chance";
    return NULL;
}

static double level_of(const pki_job *j, size_t roles)
{
    size_t hosts = compares_hosts(j, roles) ? j->hosts.count : 0;
    return LATE_LEVEL / (double)(PKI_JOB_LOOKS * j->rank_count + hosts);
}

static bool judge_all(const pki_job *j, pki_job_field *f, pki_job_lateness *l)
{
    undecided *left = pki_array_zeroed(j->rank_count, sizeof *left);
    bool ok = left &&
              pki_job_find_processors(&l->processors, j, f->roles, l->roles, f->values, f->low) &&
              find_hosts(j, f, l);
    if (ok) {
        ok = pki_job_field_begin(f) && judge_ranks(j, f, left, l, judge_each);
        pki_job_field_end(f);
    }
    ok = ok && find_not_known(j, f, left, l);
    if (ok)
        note_left(left, j->rank_count, l);
    free(left);
    return ok;
}

static bool find_late(const pki_job *j, const pki_job_loop *loop, const uint32_t *roles,
                      double level, pki_job_lateness *l)
{
    l->blocks = loop->block_count;
    l->by_work = all_have_items(j, loop);
    pki_job_field f = {.units = j->rank_count,
                       .blocks = l->blocks,
                       .values = values_of(j, loop, l->by_work, loop->ready),
                       .low = values_of(j, loop, l->by_work, loop->maybe),
                       .roles = roles,
                       .role_count = l->roles,
                       .level = level};
    bool ok = f.values && f.low && judge_all(j, &f, l);
    free(f.values);
    free(f.low);
    return ok;
}

static bool find_all(const pki_job *j, const uint32_t *roles, const pki_job_waits *waits,
                     pki_job_lateness *l)
{
    const pki_job_loop *loop = pki_job_usual(j);
    double level = level_of(j, l->roles);
    l->why_not = why_not(j, loop, level);
    if (l->why_not)
        return true;
    if (!find_late(j, loop, roles, level, l))
        return false;
    if (waits)
        excuse_link_ends(j, waits, l);
    if (l->count)
        qsort(l->late, l->count, sizeof *l->late, latest_first);
    return find_costs(j, roles, l);
}

bool pki_job_find_late(pki_job_lateness *l, const pki_job *j, const pki_job_waits *waits)
{
    *l = (pki_job_lateness){.by = pki_array_zeroed(j->rank_count, sizeof *l->by)};
    for (size_t r = 0; l->by && r < j->rank_count; r++)
        l->by[r] = NAN;
    uint32_t *roles = pki_job_roles(j, &l->roles);
    bool ok = l->by && roles && find_all(j, roles, waits, l);
    free(roles);
    return ok;
}

void pki_job_lateness_finish(pki_job_lateness *l)
{
    free(l->by);
    free(l->late);
    pki_job_processors_finish(&l->processors);
    *l = (pki_job_lateness){0};
}

/* ---- in words ---- */

#define SHARE(x) (pki_figure_percent(x).text)
#define TIME(ns) (pki_figure_time(ns).text)

void pki_job_describe_late(const pki_job *j, const pki_job_late *late, char *text, size_t size)
{
    char who[300], where[300], or_it[60] = "";
    if (!late->host && late->processor != PKI_SEAT_UNKNOWN)
        snprintf(or_it, sizeof or_it, ", or processor %u that it alone has", late->processor);
    if (late->host)
        snprintf(who, sizeof who, "Host %.64s (all %zu ranks of it)", j->hosts.texts[late->host_at],
                 late->ranks);
    else
        snprintf(who, sizeof who, "Rank %d%s (host %.64s)%s", j->ranks[late->rank].rank, or_it,
                 j->hosts.texts[late->host_at], *or_it ? "," : "");
    snprintf(where, sizeof where, "where is not known");
    if (late->stage_share > 0) /* else all stages are hidden by time without a processor */
        snprintf(where, sizeof where, "%s of it in %.100s", SHARE(late->stage_share),
                 j->stages[late->stage].name);
    snprintf(text, size,
             "%s takes %s longer than the others for the same work (%s to %s), %s: %s per step,"
             " which makes the job's steps %s longer.",
             who, SHARE(late->by), SHARE(late->low), SHARE(late->high), where, TIME(late->excess),
             TIME(late->cost));
}
