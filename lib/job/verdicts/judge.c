#include "job/verdicts/verdicts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "bench/stats/evidence.h"

/* ---- is one of several units (ranks, or hosts) later than the others, and surely? ---- */

/* ---- how late each is in each block ---- */

/* The median of the lower half, to which the median of an odd number belongs. */
static double lower_hinge(double *values, size_t count)
{
    if (!count)
        return NAN;
    pki_samples_select_median(values, count); /* none of the lower half is behind it then */
    return pki_samples_select_median(values, (count + 1) / 2);
}

/* Of two the lower one: half of the difference would be each one's lateness otherwise. */
static double middle(double *values, size_t count)
{
    if (count == 2)
        return PKI_MIN(values[0], values[1]);
    return count ? pki_samples_select_median(values, count) : NAN;
}

static double location(pki_job_look look, double *values, size_t count)
{
    return look == PKI_JOB_IN_BETTER_STEPS ? lower_hinge(values, count) : middle(values, count);
}

static double reference(const pki_job_field *f, pki_job_look look, size_t block, uint32_t role)
{
    size_t count = 0;
    for (size_t u = 0; u < f->units; u++) {
        double v = f->values[block * f->units + u];
        if (f->roles[u] == role && !isnan(v))
            f->room[count++] = v;
    }
    return location(look, f->room, count);
}

static void look_at(pki_job_field *f, pki_job_look look, size_t block, double *references)
{
    for (uint32_t k = 0; k < f->role_count; k++)
        references[k] = reference(f, look, block, k);
    for (size_t u = 0; u < f->units; u++) {
        double v = f->low[block * f->units + u];
        if (!isnan(v))
            f->late[look][u * f->blocks + f->counts[u]] = v - references[f->roles[u]];
    }
}

double pki_job_field_quick(const pki_job_field *f, pki_job_look look, size_t unit)
{
    size_t count = f->counts[unit];
    if (!count)
        return NAN;
    memcpy(f->room, f->late[look] + unit * f->blocks, count * sizeof *f->room);
    return look == PKI_JOB_IN_BETTER_STEPS ? lower_hinge(f->room, count)
                                           : pki_samples_select_median(f->room, count);
}

/* What machines differ in harmlessly is in the lower quartile of few units, too: the one in their
 * middle is nobody that is late. (Below 0 it is where `low` is.) */
static bool centre(pki_job_field *f, pki_job_look look)
{
    double *quick = pki_array_zeroed(f->units, sizeof *quick);
    double *some = pki_array_zeroed(f->units, sizeof *some);
    bool done = quick && some;
    for (size_t u = 0; done && u < f->units; u++)
        quick[u] = pki_job_field_quick(f, look, u);
    for (uint32_t k = 0; done && k < f->role_count; k++) {
        size_t count = 0;
        for (size_t u = 0; u < f->units; u++)
            if (f->roles[u] == k && f->counts[u])
                some[count++] = quick[u];
        double by = middle(some, count);
        by = PKI_MAX(by, 0);
        for (size_t u = 0; u < f->units; u++)
            for (size_t i = 0; f->roles[u] == k && i < f->counts[u]; i++)
                f->late[look][u * f->blocks + i] -= by;
    }
    free(some);
    free(quick);
    return done;
}

/* Of one unit: ranks whose steps lie apart have far fewer each than there are. */
static size_t most_blocks(const pki_job_field *f)
{
    size_t most = 0;
    for (size_t u = 0; u < f->units; u++) {
        size_t count = 0;
        for (size_t b = 0; b < f->blocks; b++)
            count += isnan(f->low[b * f->units + u]) ? 0 : 1;
        most = PKI_MAX(most, count);
    }
    return most;
}

static bool make_room(pki_job_field *f)
{
    size_t most = PKI_MAX(f->units, pki_walsh_count(most_blocks(f)));
    f->counts = pki_array_zeroed(f->units, sizeof *f->counts);
    f->room = pki_array_zeroed(most, sizeof *f->room);
    bool done = f->counts && f->room;
    for (int look = 0; look < PKI_JOB_LOOKS; look++) {
        f->late[look] = pki_array_zeroed(f->units * f->blocks, sizeof **f->late);
        done = done && f->late[look];
    }
    return done;
}

bool pki_job_field_begin(pki_job_field *f)
{
    double *references = pki_array_zeroed(f->role_count, sizeof *references);
    bool done = make_room(f) && references;
    for (size_t b = 0; done && b < f->blocks; b++) {
        for (int look = 0; look < PKI_JOB_LOOKS; look++)
            look_at(f, (pki_job_look)look, b, references);
        for (size_t u = 0; u < f->units; u++)
            f->counts[u] += isnan(f->low[b * f->units + u]) ? 0 : 1;
    }
    free(references);
    return done && centre(f, PKI_JOB_IN_BETTER_STEPS);
}

void pki_job_field_end(pki_job_field *f)
{
    for (int look = 0; look < PKI_JOB_LOOKS; look++)
        free(f->late[look]);
    free(f->counts);
    free(f->room);
}

/* ---- intervals ---- */

/* Student's, of as many as there are independent ones of. */
static pki_interval by_moments(const double *late, size_t count, double dependence, double by,
                               double level)
{
    double independent = (double)count / dependence;
    if (independent < 2)
        return (pki_interval){-INFINITY, INFINITY};
    double error = pki_samples_stddev(late, count) / sqrt(independent);
    double half = -pki_t_quantile(level, independent - 1) * error;
    return (pki_interval){by - half, by + half};
}

/* By how much being above a quartile or the median is not independent of the neighbour's being so:
 * as pki_samples_dependence, with more lags and a lower threshold where there are few. */
static double dependence_at(const double *late, size_t count, double location, double *above)
{
    double chance = (count < 16 ? 1.5 : 2) / sqrt((double)count), sum = 0;
    for (size_t i = 0; i < count; i++)
        above[i] = late[i] > location;
    for (size_t lag = 1; lag < PKI_MAX(count / 4, 4); lag++) {
        double r = pki_samples_autocorrelation(above, count, lag);
        if (!(r > chance))
            break;
        sum += r;
    }
    return 1 + 2 * sum;
}

static pki_job_judgement judge_middle(const pki_job_field *f, const double *late, size_t count,
                                      double median)
{
    pki_job_judgement out;
    double dependence = dependence_at(late, count, median, f->room);
    pki_walsh_averages(late, count, f->room);
    out.by = pki_samples_median(f->room, pki_walsh_count(count));
    out.interval = pki_walsh_interval(f->room, count, dependence, 2 * f->level);
    if (isinf(out.interval.low) && dependence > 1)
        out.interval = by_moments(late, count, dependence, out.by, f->level);
    return out;
}

/* The largest k with P(Binomial(n, 1/4) <= k) at most `most`; -1 if not even 0 is. */
static ptrdiff_t trimmed_below(size_t n, double most)
{
    double logarithm = (double)n * log(0.75), sum = 0;
    for (size_t k = 0; k < n; k++) {
        sum += exp(logarithm); /* 0 where it is too small to count */
        if (sum > most)
            return (ptrdiff_t)k - 1;
        logarithm += log((double)(n - k) / (double)(k + 1) / 3);
    }
    return (ptrdiff_t)n - 1; /* one is left */
    return (ptrdiff_t)n;
}

/* The same share is left out as of so many independent ones. */
static pki_interval quartile_interval(const double *sorted, size_t n, size_t independent,
                                      double level)
{
    pki_interval out = {-INFINITY, INFINITY};
    ptrdiff_t low = trimmed_below(independent, level),
              high = trimmed_below(independent, 1 - level) + 1;
    double scale = (double)n / (double)PKI_MAX(independent, 1);
    if (low >= 0)
        out.low = sorted[(size_t)((double)low * scale)];
    if (high < (ptrdiff_t)independent)
        out.high = sorted[PKI_MIN((size_t)((double)(high + 1) * scale), n) - 1];
    return out;
}

static pki_job_judgement judge_better(const pki_job_field *f, const double *late, size_t count,
                                      double quartile)
{
    double dependence = dependence_at(late, count, quartile, f->room);
    size_t independent = (size_t)((double)count / dependence);
    memcpy(f->room, late, count * sizeof *late);
    pki_samples_sort(f->room, count);
    return (pki_job_judgement){quartile, quartile_interval(f->room, count, independent, f->level),
                               false};
}

pki_job_judgement pki_job_field_judge(const pki_job_field *f, pki_job_look look, size_t unit)
{
    size_t count = f->counts[unit];
    const double *late = f->late[look] + unit * f->blocks;
    double quick = pki_job_field_quick(f, look, unit);
    if (!count)
        return (pki_job_judgement){NAN, {-INFINITY, INFINITY}, false};
    pki_job_judgement out = look == PKI_JOB_IN_BETTER_STEPS ? judge_better(f, late, count, quick)
                                                            : judge_middle(f, late, count, quick);
    out.late = out.by > log1p(PKI_JOB_LATE_LEAST) && out.interval.low > log1p(PKI_JOB_LATE_SURELY);
    return out;
}

/* ---- is it worth while to say of a rank that it is late? ---- */

bool pki_job_worth_begin(pki_job_worth *w, const pki_job *j, const double *values, bool by_work,
                         const bool *may_be)
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

void pki_job_worth_end(pki_job_worth *w)
{
    free(w->longest);
    *w = (pki_job_worth){0};
}

static double cost_of(const pki_job_worth *w, size_t rank)
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
static double part(double by)
{
    return -expm1(-by);
}

bool pki_job_is_worth_while(const pki_job_worth *w, size_t rank, const pki_job_judgement *of)
{
    const pki_job_loop *loop = pki_job_usual(w->of);
    double own = 0, time = 0, low = part(of->interval.low);
    for (size_t b = 0; b < loop->block_count; b++) {
        size_t cell = pki_job_cell(w->of, b, rank);
        own += loop->own[cell] - loop->ready[cell];
        time += loop->time[cell];
    }
    if (!pki_job_is_crowded(w->of, rank))
        return own * low >= PKI_JOB_LATE_WORTH * time;
    return cost_of(w, rank) * low / part(of->by) >= PKI_JOB_LATE_COST * w->time;
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

static double level_of(const standing *standings, size_t count, const bool *determined,
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
        judge_group(standings + i, n, level_of(standings + i, n, determined, level), stands);
    }
}

bool *pki_job_stand_out(const pki_job *j, const uint32_t *roles, const bool *determined,
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

/* ---- hosts whose ranks want more processors than there are ---- */

static double share_of(const pki_job *j, size_t rank)
{
    const pki_job_loop *loop = pki_job_usual(j);
    double ready = 0, own = 0;
    for (size_t b = 0; loop && b < loop->block_count; b++) {
        ready += loop->ready[pki_job_cell(j, b, rank)];
        own += loop->own[pki_job_cell(j, b, rank)];
    }
    return pki_job_has_run_delay(&j->ranks[rank]) ? (own > 0 ? ready / own : 0)
                                                  : pki_job_crowd_share(&j->ranks[rank].processor);
}

double pki_job_crowd_most(const pki_job *j)
{
    double most = 0;
    for (size_t r = 0; r < j->rank_count; r++)
        most = PKI_MAX(most, share_of(j, r));
    return most;
}

static void add_rank(pki_job_crowd *c, const pki_job *j, size_t rank)
{
    double share = share_of(j, rank);
    c->least = c->ranks ? PKI_MIN(c->least, share) : share;
    if (!c->ranks || share > c->most) {
        c->most = share;
        c->most_rank = rank;
    }
    c->host = j->ranks[rank].host;
    c->ranks++;
}

pki_job_crowd *pki_job_find_crowds(const pki_job *j, size_t *count)
{
    pki_job_crowd *crowds = pki_array_zeroed(j->hosts.count, sizeof *crowds);
    *count = 0;
    for (size_t r = 0; crowds && r < j->rank_count; r++)
        add_rank(&crowds[j->ranks[r].host], j, r);
    for (size_t h = 0; crowds && h < j->hosts.count; h++)
        if (crowds[h].most >= PKI_JOB_CROWDED_FROM)
            crowds[(*count)++] = crowds[h];
    return crowds;
}
