#include "job/late.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "bench/stats/evidence.h"
#include "bench/stats/sample_stats.h"
#include "job/costs.h"
#include "job/roles.h"
#include "memory.h"

/* Units that are compared with each other (ranks, or hosts): a value for each in each block. */
typedef struct field {
    size_t units, blocks;
    double *values; /* [block * units + unit], at most; NAN: not there */
    double *low;    /* the same, at least */
    const uint32_t *roles;
    size_t role_count;
    double *late;   /* [unit * blocks + block], as many as there are... */
    size_t *counts; /* ...by unit */
} field;

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

/* Of two the lower one: half of the difference would be each one's lateness otherwise. */
static double middle(double *values, size_t count)
{
    if (count == 2)
        return PKI_MIN(values[0], values[1]);
    return count ? pki_samples_select_median(values, count) : NAN;
}

static double median_of_role(const field *f, size_t block, uint32_t role, double *scratch)
{
    size_t count = 0;
    for (size_t u = 0; u < f->units; u++) {
        double v = f->values[block * f->units + u];
        if (f->roles[u] == role && !isnan(v))
            scratch[count++] = v;
    }
    return middle(scratch, count);
}

/* What each unit is late in each block that it is in, at least. */
static void find_lateness(field *f)
{
    double *scratch = memory_zeroed(f->units, sizeof *scratch);
    double *medians = memory_zeroed(f->role_count, sizeof *medians);
    f->late = memory_zeroed(f->units * f->blocks, sizeof *f->late);
    f->counts = memory_zeroed(f->units, sizeof *f->counts);
    for (size_t b = 0; b < f->blocks; b++) {
        for (uint32_t k = 0; k < f->role_count; k++)
            medians[k] = median_of_role(f, b, k, scratch);
        for (size_t u = 0; u < f->units; u++) {
            double v = f->low[b * f->units + u];
            if (!isnan(v))
                f->late[u * f->blocks + f->counts[u]++] = v - medians[f->roles[u]];
        }
    }
    free(scratch);
    free(medians);
}

static void finish_field(field *f)
{
    free(f->values);
    free(f->low);
    free(f->late);
    free(f->counts);
}

/* ---- judging ---- */

/* The median of a healthy rank is all that is asked of it. */
static double quick_median(const field *f, size_t unit, double *scratch)
{
    memcpy(scratch, f->late + unit * f->blocks, f->counts[unit] * sizeof *scratch);
    return f->counts[unit] ? pki_samples_select_median(scratch, f->counts[unit]) : NAN;
}

typedef struct judgement {
    double median; /* the pseudo-median: of all means of two blocks */
    pki_interval interval;
    bool late;
} judgement;

/* Room for what judge() sorts. */
static double *judge_room(const field *f)
{
    return memory_zeroed(pki_walsh_count(f->blocks), sizeof(double));
}

static judgement judge(const field *f, size_t unit, double *scratch)
{
    size_t count = f->counts[unit];
    const double *late = f->late + unit * f->blocks;
    judgement out = {NAN, {-INFINITY, INFINITY}, false};
    if (!count)
        return out;
    double dependence = pki_samples_dependence(late, count, quick_median(f, unit, scratch));
    pki_walsh_averages(late, count, scratch);
    out.median = pki_samples_median(scratch, pki_walsh_count(count));
    out.interval =
        pki_walsh_interval(scratch, count, dependence, 2 * JOB_LATE_LEVEL / (double)f->units);
    out.late = out.median > log1p(JOB_LATE_LEAST) && out.interval.low > log1p(JOB_LATE_SURELY);
    return out;
}

static job_late *add_late(job_lateness *l, const judgement *of)
{
    l->late = memory_resized(l->late, (l->count + 1) * sizeof *l->late);
    l->late[l->count] = (job_late){
        .by = expm1(of->median), .low = expm1(of->interval.low), .high = expm1(of->interval.high)};
    return &l->late[l->count++];
}

/* ---- hosts ---- */

/* Ranks by host: those of host h stand from begins[h] to before begins[h + 1]. */
static size_t *ranks_by_host(const job *j, size_t *begins)
{
    size_t *order = memory_zeroed(j->rank_count, sizeof *order), hosts = j->hosts.count;
    for (size_t r = 0; r < j->rank_count; r++)
        begins[j->ranks[r].host + 1]++;
    for (size_t h = 0; h < hosts; h++)
        begins[h + 1] += begins[h];
    for (size_t r = j->rank_count; r-- > 0;)
        order[--begins[j->ranks[r].host + 1]] = r;
    for (size_t h = 0; h < hosts; h++)
        begins[h] = begins[h + 1];
    begins[hosts] = j->rank_count;
    return order;
}

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
    size_t *order = ranks_by_host(j, begins);
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
static void take_off(const job *j, double *values, size_t blocks, uint32_t host, double by)
{
    for (size_t b = 0; b < blocks; b++)
        for (size_t r = 0; r < j->rank_count; r++)
            if (j->ranks[r].host == host)
                values[job_cell(j, b, r)] -= by;
}

static void judge_hosts(const job *j, field *f, field *ranks, job_lateness *l)
{
    double *scratch = judge_room(f);
    for (uint32_t h = 0; h < f->units; h++) {
        judgement of = judge(f, h, scratch);
        if (!of.late)
            continue;
        job_late *late = add_late(l, &of);
        late->host = true;
        late->host_at = h;
        take_off(j, ranks->values, f->blocks, h, of.median);
        take_off(j, ranks->low, f->blocks, h, of.median);
    }
    free(scratch);
}

/* Where a host has few ranks, or each its own role, there is nothing to be said of hosts. */
static void find_hosts(const job *j, field *ranks, job_lateness *l)
{
    size_t hosts = j->hosts.count;
    if (hosts < 2 || j->rank_count < 2 * hosts || l->roles > 1)
        return;
    uint32_t *one = memory_zeroed(hosts, sizeof *one);
    field f = {.units = hosts, .blocks = ranks->blocks, .roles = one, .role_count = 1};
    f.values = values_of_hosts(j, ranks->values, f.blocks);
    f.low = values_of_hosts(j, ranks->low, f.blocks);
    find_lateness(&f);
    judge_hosts(j, &f, ranks, l);
    finish_field(&f);
    free(one);
}

/* ---- ranks ---- */

static void judge_ranks(const job *j, field *f, job_lateness *l)
{
    double *scratch = judge_room(f);
    for (size_t r = 0; r < f->units; r++) {
        double median = quick_median(f, r, scratch);
        l->by[r] = expm1(median);
        if (!(median > log1p(JOB_LATE_LEAST)))
            continue;
        judgement of = judge(f, r, scratch);
        l->by[r] = expm1(of.median);
        if (!of.late)
            continue;
        job_late *late = add_late(l, &of);
        late->rank = r;
        late->host_at = j->ranks[r].host;
    }
    free(scratch);
}

static int latest_first(const void *x, const void *y)
{
    const job_late *a = x, *b = y;
    if (a->by != b->by)
        return a->by < b->by ? 1 : -1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static const char *why_not(const job *j, const job_loop *loop)
{
    if (!loop)
        return "there are no steps that ranks could be compared by";
    if (j->rank_count < 2)
        return "there is one rank only";
    if (!pki_samples_sign_supported(loop->block_count, 1,
                                    1 - 2 * JOB_LATE_LEVEL / (double)j->rank_count))
        return "there are too few steps to tell a slow rank from chance";
    return NULL;
}

job_lateness job_find_late(const job *j)
{
    const job_loop *loop = job_usual(j);
    job_lateness l = {.why_not = why_not(j, loop)};
    l.by = memory_zeroed(j->rank_count, sizeof *l.by);
    for (size_t r = 0; r < j->rank_count; r++)
        l.by[r] = NAN;
    if (l.why_not)
        return l;
    uint32_t *roles = job_roles(j, &l.roles);
    l.blocks = loop->block_count;
    l.by_work = all_have_items(j, loop);
    field f = {.units = j->rank_count,
               .blocks = l.blocks,
               .values = values_of(j, loop, l.by_work, loop->ready),
               .low = values_of(j, loop, l.by_work, loop->maybe),
               .roles = roles,
               .role_count = l.roles};
    find_hosts(j, &f, &l);
    find_lateness(&f);
    judge_ranks(j, &f, &l);
    if (l.count)
        qsort(l.late, l.count, sizeof *l.late, latest_first);
    job_find_costs(j, roles, &l);
    finish_field(&f);
    free(roles);
    return l;
}

void job_lateness_finish(job_lateness *l)
{
    free(l->by);
    free(l->late);
    *l = (job_lateness){0};
}
