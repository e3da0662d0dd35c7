#include "job/verdicts/late.h"

#include <math.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "bench/stats/samples.h"
#include "job/verdicts/costs.h"
#include "job/verdicts/crowd.h"
#include "job/verdicts/link_ends.h"
#include "job/read/roles.h"
#include "job/verdicts/stands.h"
#include "job/verdicts/worth.h"
#include "memory.h"

/* ---- values ---- */

static bool all_have_items(const job *j, const job_loop *loop)
{
    for (size_t i = 0; i < loop->block_count * j->rank_count; i++)
        if (loop->steps[i] > 0 && loop->items[i] <= 0)
            return false;
    return true;
}

static double value_of(const job_loop *loop, size_t cell, bool by_work, const double *without)
{
    double work = by_work ? loop->items[cell] : loop->steps[cell];
    double own = loop->own[cell] - without[cell];
    return work > 0 && own > 0 ? log(own / work) : NAN;
}

static double *values_of(const job *j, const job_loop *loop, bool by_work, const double *without)
{
    size_t cells = loop->block_count * j->rank_count;
    double *values = memory_zeroed(cells, sizeof *values);
    for (size_t i = 0; i < cells; i++)
        values[i] = value_of(loop, i, by_work, without);
    return values;
}

/* ---- verdicts ---- */

static job_late *add_late(job_lateness *l, const job_judgement *of)
{
    l->late = memory_resized(l->late, (l->count + 1) * sizeof *l->late);
    l->late[l->count] = (job_late){.by = expm1(of->by),
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

static double *values_of_hosts(const job *j, const double *values, size_t blocks)
{
    size_t hosts = j->hosts.count, *begins = memory_zeroed(hosts + 1, sizeof *begins);
    size_t *order = job_ranks_by_host(j, begins);
    double *scratch = memory_zeroed(j->rank_count, sizeof *scratch);
    double *out = memory_zeroed(hosts * blocks, sizeof *out);
    for (size_t b = 0; b < blocks; b++)
        for (size_t h = 0; h < hosts; h++)
            out[b * hosts + h] = value_of_some(values + job_cell(j, b, 0), order + begins[h],
                                               begins[h + 1] - begins[h], scratch);
    free(scratch);
    free(order);
    free(begins);
    return out;
}

/* Its ranks are compared with the others as if it were not late. */
static void subtract_host(const job *j, double *values, size_t blocks, uint32_t host, double by)
{
    for (size_t b = 0; b < blocks; b++)
        for (size_t r = 0; r < j->rank_count; r++)
            if (j->ranks[r].host == host)
                values[job_cell(j, b, r)] -= by;
}

static void judge_hosts(const job *j, const job_field *f, job_field *ranks, job_lateness *l)
{
    for (uint32_t h = 0; h < f->units; h++) {
        job_judgement of = job_field_judge(f, JOB_IN_THE_MIDDLE, h);
        if (!of.late)
            continue;
        job_late *late = add_late(l, &of);
        late->host = true;
        late->host_at = h;
        subtract_host(j, ranks->values, f->blocks, h, of.by);
        subtract_host(j, ranks->low, f->blocks, h, of.by);
    }
}

/* Where a host has few ranks, or each its own role, there is nothing to be said of hosts. */
static bool compares_hosts(const job *j, size_t roles)
{
    size_t hosts = j->hosts.count;
    return hosts >= 2 && j->rank_count >= 2 * hosts && roles <= 1;
}

static void find_hosts(const job *j, job_field *ranks, job_lateness *l)
{
    size_t hosts = j->hosts.count;
    if (!compares_hosts(j, l->roles))
        return;
    uint32_t *one = memory_zeroed(hosts, sizeof *one);
    job_field f = {.units = hosts,
                   .blocks = ranks->blocks,
                   .roles = one,
                   .role_count = 1,
                   .level = ranks->level};
    f.values = values_of_hosts(j, ranks->values, f.blocks);
    f.low = values_of_hosts(j, ranks->low, f.blocks);
    job_field_begin(&f);
    judge_hosts(j, &f, ranks, l);
    job_field_end(&f);
    free(f.values);
    free(f.low);
    free(one);
}

/* ---- ranks ---- */

/* What each look sees of the ranks, and who stands out by that: [rank], of a look. */
typedef struct seen {
    double *quick[JOB_LOOKS];
    bool *stands[JOB_LOOKS];
    bool *may_be; /* late, by either */
} seen;

static seen see(const job *j, const job_field *f, const job_lateness *l)
{
    seen s = {.may_be = memory_zeroed(f->units, sizeof *s.may_be)};
    for (int look = 0; look < JOB_LOOKS; look++) {
        s.quick[look] = memory_zeroed(f->units, sizeof **s.quick);
        for (size_t r = 0; r < f->units; r++) {
            s.quick[look][r] = job_field_quick(f, (job_look)look, r);
            s.may_be[r] |= s.quick[look][r] > log1p(JOB_LATE_LEAST);
        }
        s.stands[look] =
            job_stand_out(j, f->roles, l->processors.determined, s.quick[look], f->level);
    }
    return s;
}

static void unsee(seen *s)
{
    for (int look = 0; look < JOB_LOOKS; look++) {
        free(s->quick[look]);
        free(s->stands[look]);
    }
    free(s->may_be);
}

void job_note_undecided(job_undecided *to, size_t rank, double by)
{
    if (!to->ranks || by > to->by)
        *to = (job_undecided){.ranks = to->ranks, .rank = rank, .by = by};
    to->ranks++;
}

/* Why a rank is not called late. */
typedef enum why {
    NOT_BEYOND, /* the limit; or something else is said of it */
    NOT_SURE,
    NOT_WORTH,
    NOT_ALONE
} why;

/* By the first look that finds it so. */
static job_judgement judge_rank(const job_worth *w, const job_field *f, const seen *s, size_t rank,
                                why * not )
{
    job_judgement first = {NAN, {-INFINITY, INFINITY}, false};
    *not = NOT_BEYOND;
    for (int look = 0; look < JOB_LOOKS; look++) {
        if (!(s->quick[look][rank] > log1p(JOB_LATE_LEAST)))
            continue;
        job_judgement of = job_field_judge(f, (job_look)look, rank);
        bool worth = of.late && job_is_worth_while(w, rank, &of);
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

static void judge_ranks(const job *j, const job_field *f, undecided *left, job_lateness *l)
{
    seen s = see(j, f, l);
    job_worth w = job_worth_begin(j, f->values, l->by_work, s.may_be);
    for (size_t r = 0; r < f->units; r++) {
        job_judgement of = judge_rank(&w, f, &s, r, &left[r].not );
        left[r].low = expm1(of.interval.low);
        l->by[r] = expm1(isnan(of.by) ? s.quick[JOB_IN_THE_MIDDLE][r] : of.by);
        if (of.late) {
            job_late *late = add_late(l, &of);
            late->rank = r;
            late->host_at = j->ranks[r].host;
            late->processor = l->processors.alone[r];
            left[r].not = NOT_BEYOND;
        }
    }
    unsee(&s);
    job_worth_end(&w);
}

static void note_left(const undecided *left, size_t ranks, job_lateness *l)
{
    job_undecided *const to[] = {NULL, &l->unsure, &l->not_worth, &l->not_alone};
    for (size_t r = 0; r < ranks; r++) {
        if (!left[r].not || (left[r].not != NOT_ALONE && l->by[r] <= JOB_LATE_LEAST))
            continue;
        job_note_undecided(to[left[r].not ], r, l->by[r]);
        if (to[left[r].not ]->rank == r)
            to[left[r].not ]->low = left[r].low;
    }
}

static bool is_accused(const job_lateness *l, size_t rank)
{
    for (size_t i = 0; i < l->count; i++)
        if (!l->late[i].host && l->late[i].rank == rank)
            return true;
    return false;
}

/* Who would be late if none of the time without a processor that nobody tells step by step had been
 * its own. */
static void find_not_known(const job *j, const job_field *ranks, undecided *left, job_lateness *l)
{
    size_t unknown = 0;
    for (size_t r = 0; r < j->rank_count; r++)
        unknown += !job_has_run_delay(&j->ranks[r]) && job_crowd_share(&j->ranks[r].processor) > 0;
    if (!unknown)
        return;
    job_field f = *ranks;
    f.low = f.values;
    job_field_begin(&f);
    seen s = see(j, &f, l);
    job_worth w = job_worth_begin(j, f.values, l->by_work, s.may_be);
    for (size_t r = 0; r < f.units; r++) {
        why not ;
        job_judgement of = judge_rank(&w, &f, &s, r, &not );
        if (of.late && !is_accused(l, r)) {
            job_note_undecided(&l->not_known, r, expm1(of.by));
            left[r].not = NOT_BEYOND;
        }
    }
    unsee(&s);
    job_worth_end(&w);
    job_field_end(&f);
}

static int latest_first(const void *x, const void *y)
{
    const job_late *a = x, *b = y;
    if (a->by != b->by)
        return a->by < b->by ? 1 : -1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static const char *why_not(const job *j, const job_loop *loop, double level)
{
    if (!loop)
        return "there are no steps that ranks could be compared by";
    if (j->rank_count < 2)
        return "there is one rank only";
    if (!pki_samples_sign_supported(loop->block_count, 1, 1 - 2 * level))
        return "there are too few steps to tell a slow rank from chance";
    return NULL;
}

static double level_of(const job *j, size_t roles)
{
    size_t hosts = compares_hosts(j, roles) ? j->hosts.count : 0;
    return JOB_LATE_LEVEL / (double)(JOB_LOOKS * j->rank_count + hosts);
}

static void find_late(const job *j, const job_loop *loop, const uint32_t *roles, double level,
                      job_lateness *l)
{
    l->blocks = loop->block_count;
    l->by_work = all_have_items(j, loop);
    job_field f = {.units = j->rank_count,
                   .blocks = l->blocks,
                   .values = values_of(j, loop, l->by_work, loop->ready),
                   .low = values_of(j, loop, l->by_work, loop->maybe),
                   .roles = roles,
                   .role_count = l->roles,
                   .level = level};
    l->processors = job_find_processors(j, roles, l->roles, f.values, f.low);
    find_hosts(j, &f, l);
    undecided *left = memory_zeroed(j->rank_count, sizeof *left);
    job_field_begin(&f);
    judge_ranks(j, &f, left, l);
    job_field_end(&f);
    find_not_known(j, &f, left, l);
    note_left(left, j->rank_count, l);
    free(left);
    free(f.values);
    free(f.low);
}

job_lateness job_find_late(const job *j, const job_waits *waits)
{
    const job_loop *loop = job_usual(j);
    job_lateness l = {.by = memory_zeroed(j->rank_count, sizeof *l.by)};
    for (size_t r = 0; r < j->rank_count; r++)
        l.by[r] = NAN;
    uint32_t *roles = job_roles(j, &l.roles);
    double level = level_of(j, l.roles);
    l.why_not = why_not(j, loop, level);
    if (!l.why_not) {
        find_late(j, loop, roles, level, &l);
        if (waits)
            job_excuse_link_ends(j, waits, &l);
        if (l.count)
            qsort(l.late, l.count, sizeof *l.late, latest_first);
        job_find_costs(j, roles, &l);
    }
    free(roles);
    return l;
}

void job_lateness_finish(job_lateness *l)
{
    free(l->by);
    free(l->late);
    job_processors_finish(&l->processors);
    *l = (job_lateness){0};
}
