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
#define STANDS_SPREAD 0.015    /* what ranks differ by then... */
#define STANDS_RANKS 4         /* ...as if so many more than there are had been seen */
#define STANDS_SEVERAL 6       /* from so many ranks on several may be late */

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
static bool is_outlier(const standing *standings, size_t count, double level, bool determined)
{
    double sum = 0, squares = 0, others = (double)(count - 1);
    double known = determined ? STANDS_RANKS : 0, freedom = known + others - 1;
    for (size_t i = 1; i < count; i++)
        sum += standings[i].late;
    for (size_t i = 1; i < count; i++)
        squares += (standings[i].late - sum / others) * (standings[i].late - sum / others);
    squares += known * STANDS_SPREAD * STANDS_SPREAD;
    double error = sqrt(squares / freedom * (1 + 1 / others));
    double distance = standings[0].late - sum / others;
    return distance > -pki_t_quantile(level, freedom) * error;
}

/* Several that are late hide each other: those stand out that are in front of the last outlier
 * among who is behind it (Rosner's generalised test), which is looked for in the first third. */
static void judge_group(const standing *standings, size_t count, double level, bool determined,
                        bool *stands)
{
    size_t out = 0, hidden = determined && count >= STANDS_SEVERAL ? count / 3 - 1 : 0;
    double each = level / (!determined              ? 1
                           : count < STANDS_SEVERAL ? 2
                                                    : PKI_MAX((double)hidden, 1));
    for (size_t i = 0; i + 3 <= count && i <= PKI_MAX(out, hidden); i++)
        if (standings[i].late >= log(STANDS_OUT) ||
            is_outlier(&standings[i], count - i, each, determined))
            out = i + 1;
    for (size_t i = 0; i < out; i++)
        stands[standings[i].rank] = true;
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

static bool all_determined(const standing *standings, size_t count, const bool *determined)
{
    for (size_t i = 0; i < count; i++)
        if (!determined[standings[i].rank])
            return false;
    return true;
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
        bool known = all_determined(standings + i, n, determined);
        judge_group(standings + i, n, known ? PKI_MAX(level, STANDS_DETERMINED) : level, known,
                    stands);
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
                                       .end = l->blocks,
                                       .ready = -1,
                                       .off = -1,
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
                       .level = ranks->level,
                       .least = ranks->least,
                       .shared = ranks->shared};
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

/* Who stands out by what each look sees of the ranks: [rank], of a look. */
typedef struct seen {
    bool *stands[PKI_JOB_LOOKS];
    bool *may_be; /* late, by either */
} seen;

/* To be given to unsee in any case. */
static bool see(seen *s, const pki_job *j, const pki_job_field *f, const pki_job_lateness *l)
{
    *s = (seen){.may_be = pki_array_zeroed(f->units, sizeof *s->may_be)};
    if (!s->may_be)
        return false;
    for (int look = 0; look < PKI_JOB_LOOKS; look++) {
        for (size_t r = 0; r < f->units; r++)
            s->may_be[r] |= f->quick[look][r] > log1p(f->least);
        s->stands[look] =
            pki_job_stand_out(j, f->roles, l->processors.determined, f->quick[look], f->level);
        if (!s->stands[look])
            return false;
    }
    return true;
}

static void unsee(seen *s)
{
    for (int look = 0; look < PKI_JOB_LOOKS; look++)
        free(s->stands[look]);
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
        if (!(f->quick[look][rank] > log1p(f->least)))
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
    double low, high;
} undecided;

static bool judge_each(const pki_job_worth *w, const pki_job_field *f, const seen *s,
                       undecided *left, pki_job_lateness *l)
{
    for (size_t r = 0; r < f->units; r++) {
        pki_job_judgement of = judge_rank(w, f, s, r, &left[r].not );
        left[r].low = expm1(of.interval.low);
        left[r].high = expm1(of.interval.high);
        l->by[r] = expm1(isnan(of.by) ? f->quick[PKI_JOB_IN_THE_MIDDLE][r] : of.by);
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
        if (!left[r].not || (left[r].not != NOT_ALONE && l->by[r] <= l->least))
            continue;
        pki_job_undecided *of = to[left[r].not ];
        note_undecided(of, r, l->by[r]);
        if (of->rank == r) {
            of->low = left[r].low;
            of->high = left[r].high;
        }
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

/* ---- in a part of the run ---- */

static pki_job_late *late_of(pki_job_lateness *l, size_t rank)
{
    for (size_t i = 0; i < l->count; i++)
        if (!l->late[i].host && l->late[i].rank == rank)
            return &l->late[i];
    return NULL;
}

static void set_part(const pki_job *j, pki_job_late *late, const pki_job_spell *of)
{
    late->when = of->when;
    late->rank = of->rank;
    late->host_at = j->ranks[of->rank].host;
    late->begin = of->begin;
    late->end = of->end;
    late->by = expm1(of->by);
    late->low = expm1(of->low);
    late->high = expm1(of->high);
    late->rest = expm1(of->rest);
    late->share = of->share;
    late->worst = expm1(of->worst);
    late->every = of->every;
}

static bool add_stop(const pki_job *j, const pki_job_spell *of, pki_job_lateness *l)
{
    if (!pki_array_fit(&l->stops, &l->stop_room, l->stop_count + 1, sizeof *l->stops))
        return false;
    pki_job_late *late = &l->stops[l->stop_count++];
    *late = (pki_job_late){.ready = -1, .off = -1, .processor = l->processors.alone[of->rank]};
    set_part(j, late, of);
    return true;
}

/* Of ranks that share processors it may be the processor's part, unless that is off or less. */
static bool is_doubtful(const pki_job *j, const pki_job_spell *of, const pki_job_lateness *l)
{
    bool crowded = false;
    for (size_t r = 0; r < j->rank_count; r++)
        crowded |= j->ranks[r].host == j->ranks[of->rank].host && pki_job_is_crowded(j, r);
    return crowded && !l->processors.determined[of->rank] &&
           PKI_MAX(of->high, of->worst) < log(STANDS_OUT);
}

/* Who is late all along is so now and then, too; but what is so from a step on is not all along. */
static bool add_spell(const pki_job *j, const pki_job_spell *of, undecided *left,
                      pki_job_lateness *l)
{
    pki_job_late *late = late_of(l, of->rank);
    if (of->when == PKI_JOB_ONCE)
        return add_stop(j, of, l);
    if ((late && of->when == PKI_JOB_NOW_AND_THEN) || (!late && is_doubtful(j, of, l)))
        return true;
    if (!late && !(late = add_late(l, &(pki_job_judgement){.by = of->by})))
        return false;
    set_part(j, late, of);
    late->processor = l->processors.alone[of->rank];
    l->by[of->rank] = PKI_MAX(l->by[of->rank], late->by);
    left[of->rank].not = NOT_BEYOND;
    return true;
}

static bool find_spells(const pki_job *j, const pki_job_field *f, undecided *left,
                        pki_job_lateness *l)
{
    pki_job_spells spells;
    bool ok = pki_job_find_spells(&spells, j, f);
    for (size_t i = 0; ok && i < spells.count; i++)
        ok = add_spell(j, &spells.all[i], left, l);
    free(spells.all);
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
        ok = pki_job_field_begin(f) && judge_ranks(j, f, left, l, judge_each) &&
             find_spells(j, f, left, l);
        pki_job_field_end(f);
    }
    ok = ok && find_not_known(j, f, left, l);
    if (ok)
        note_left(left, j->rank_count, l);
    free(left);
    return ok;
}

static bool shares_processors(const pki_job *j)
{
    for (size_t r = 0; r < j->rank_count; r++)
        if (pki_job_is_crowded(j, r))
            return true;
    return false;
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
                       .level = level,
                       .least = l->least,
                       .shared = shares_processors(j)};
    bool ok = f.values && f.low && judge_all(j, &f, l);
    free(f.values);
    free(f.low);
    return ok;
}

/* Without what it waits for others. */
static double own_of_step(const pki_job *j, const pki_step_row *step)
{
    uint64_t waits = step->kinds[PK_COMM] + step->kinds[PK_WAIT];
    waits += j->outside_waits ? step->kinds[PKI_UNTRACKED] : 0;
    return (double)step->duration - (double)waits;
}

/* The step of a stop's block that took most of it, if the rank's file has it. */
static void place_stop(const pki_job *j, pki_job_late *stop)
{
    const pki_job_rank *rank = &j->ranks[stop->rank];
    double cell = pki_job_usual(j)->own[pki_job_cell(j, stop->begin, stop->rank)];
    double most = cell * stop->by / (1 + stop->by) / 2;
    for (size_t i = 0; i < rank->slowest_count; i++) {
        const pki_step_row *step = &rank->slowest[i];
        double own = own_of_step(j, step);
        if (step->index < stop->first || step->index > stop->last || own < most)
            continue;
        stop->first = stop->last = step->index;
        if (step->processor.told) {
            stop->ready = (double)step->processor.ready;
            stop->off = (double)step->processor.off;
        }
        return;
    }
}

/* Its blocks' first and last step. */
static void find_steps(const pki_job *j, pki_job_late *late, size_t count)
{
    const pki_job_loop *loop = pki_job_usual(j);
    for (size_t i = 0; i < count; i++) {
        late[i].first = loop->first[late[i].begin];
        late[i].last = pki_job_last_step(j, late[i].end - 1);
        if (late[i].when == PKI_JOB_ONCE)
            place_stop(j, &late[i]);
    }
}

static int dearest_first(const void *x, const void *y)
{
    const pki_job_late *a = x, *b = y;
    if (a->extra != b->extra)
        return a->extra < b->extra ? 1 : -1;
    return (a->rank > b->rank) - (a->rank < b->rank);
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
    find_steps(j, l->late, l->count);
    find_steps(j, l->stops, l->stop_count);
    bool ok = pki_job_find_costs(j, roles, l);
    if (l->stop_count)
        qsort(l->stops, l->stop_count, sizeof *l->stops, dearest_first);
    return ok;
}

bool pki_job_find_late(pki_job_lateness *l, const pki_job *j, const pki_job_waits *waits)
{
    *l = (pki_job_lateness){.by = pki_array_zeroed(j->rank_count, sizeof *l->by),
                            .least = j->late_least > 0 ? j->late_least : PKI_JOB_LATE_LEAST};
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
    free(l->stops);
    pki_job_processors_finish(&l->processors);
    *l = (pki_job_lateness){0};
}

/* ---- in words ---- */

#define SHARE(x) (pki_figure_percent(x).text)
#define TIME(ns) (pki_figure_time(ns).text)

const char *pki_job_when_name(pki_job_when when)
{
    static const char *const names[] = {"all along", "stretch", "more and more", "now and then",
                                        "once"};
    return names[when];
}

/* When in the run: behind "takes 12 % longer". */
static void describe_when(const pki_job *j, const pki_job_late *late, char text[160])
{
    unsigned long long first = late->first, last = late->last, steps = last - first + 1;
    const pki_job_loop *loop = pki_job_usual(j);
    bool to_end = loop && late->end == loop->block_count;
    text[0] = '\0';
    if (late->when == PKI_JOB_STRETCH && to_end)
        snprintf(text, 160, " from step %llu on (%llu steps)", first, steps);
    else if (late->when == PKI_JOB_STRETCH)
        snprintf(text, 160, " in steps %llu to %llu", first, last);
    else if (late->when == PKI_JOB_MORE_AND_MORE)
        snprintf(text, 160, " in the end, more and more from about step %llu on", first);
    else if (late->when == PKI_JOB_NOW_AND_THEN && late->every)
        snprintf(text, 160, " in the mean: a block about each %zu steps takes %s longer",
                 late->every, SHARE(late->worst));
    else if (late->when == PKI_JOB_NOW_AND_THEN)
        snprintf(text, 160, " in the mean: now and then, in %s of the blocks, by %s",
                 SHARE(late->share), SHARE(late->worst));
}

/* What is known of why a rank took long once. */
static const char *why_once(const pki_job_late *late)
{
    double off = late->off - late->ready;
    if (late->off < 0)
        return "why is not known: nobody tells when it had a processor, as libpk_mpi does";
    return 2 * off > late->extra ? "not on a processor: it was stopped, or waited in its own code"
                                 : "on a processor: it computed, or what it ran on was slow";
}

static void describe_once(const char *who, const char *where, const pki_job_late *late, char *text,
                          size_t size)
{
    char step[60];
    snprintf(step, sizeof step, "step %llu", (unsigned long long)late->first);
    if (late->last != late->first)
        snprintf(step, sizeof step, "one of steps %llu to %llu", (unsigned long long)late->first,
                 (unsigned long long)late->last);
    snprintf(text, size, "%s, %s: %s longer than usual, %s; %s. The job takes %s longer for it.",
             who, step, TIME(late->extra), where, why_once(late), TIME(late->lost));
}

void pki_job_describe_late(const pki_job *j, const pki_job_late *late, char *text, size_t size)
{
    char who[300], where[300], when[160], lost[60] = "", interval[90] = "", or_it[60] = "";
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
    if (late->when == PKI_JOB_ONCE) {
        describe_once(who, where, late, text, size);
        return;
    }
    describe_when(j, late, when);
    if (late->when != PKI_JOB_NOW_AND_THEN)
        snprintf(interval, sizeof interval, " (%s to %s)", SHARE(late->low), SHARE(late->high));
    if (late->when != PKI_JOB_ALL_ALONG)
        snprintf(lost, sizeof lost, ", %s in all", TIME(late->lost));
    snprintf(text, size,
             "%s takes %s longer than the others for the same work%s%s, %s: %s per step,"
             " which makes the job's steps %s longer%s.",
             who, SHARE(late->by), interval, when, where, TIME(late->excess), TIME(late->cost),
             lost);
}
