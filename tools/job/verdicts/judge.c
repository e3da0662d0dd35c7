#include "job/verdicts/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "bench/stats/evidence.h"
#include "memory.h"

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

static double location(job_look look, double *values, size_t count)
{
    return look == JOB_IN_BETTER_STEPS ? lower_hinge(values, count) : middle(values, count);
}

static double reference(const job_field *f, job_look look, size_t block, uint32_t role)
{
    size_t count = 0;
    for (size_t u = 0; u < f->units; u++) {
        double v = f->values[block * f->units + u];
        if (f->roles[u] == role && !isnan(v))
            f->room[count++] = v;
    }
    return location(look, f->room, count);
}

static void look_at(job_field *f, job_look look, size_t block, double *references)
{
    for (uint32_t k = 0; k < f->role_count; k++)
        references[k] = reference(f, look, block, k);
    for (size_t u = 0; u < f->units; u++) {
        double v = f->low[block * f->units + u];
        if (!isnan(v))
            f->late[look][u * f->blocks + f->counts[u]] = v - references[f->roles[u]];
    }
}

double job_field_quick(const job_field *f, job_look look, size_t unit)
{
    size_t count = f->counts[unit];
    if (!count)
        return NAN;
    memcpy(f->room, f->late[look] + unit * f->blocks, count * sizeof *f->room);
    return look == JOB_IN_BETTER_STEPS ? lower_hinge(f->room, count)
                                       : pki_samples_select_median(f->room, count);
}

/* What machines differ in harmlessly is in the lower quartile of few units, too: the one in their
 * middle is nobody that is late. (Below 0 it is where `low` is.) */
static void centre(job_field *f, job_look look)
{
    double *quick = memory_zeroed(f->units, sizeof *quick);
    double *some = memory_zeroed(f->units, sizeof *some);
    for (size_t u = 0; u < f->units; u++)
        quick[u] = job_field_quick(f, look, u);
    for (uint32_t k = 0; k < f->role_count; k++) {
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
}

/* Of one unit: ranks whose steps lie apart have far fewer each than there are. */
static size_t most_blocks(const job_field *f)
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

void job_field_begin(job_field *f)
{
    double *references = memory_zeroed(f->role_count, sizeof *references);
    f->counts = memory_zeroed(f->units, sizeof *f->counts);
    f->room = memory_zeroed(PKI_MAX(f->units, pki_walsh_count(most_blocks(f))), sizeof *f->room);
    for (int look = 0; look < JOB_LOOKS; look++)
        f->late[look] = memory_zeroed(f->units * f->blocks, sizeof **f->late);
    for (size_t b = 0; b < f->blocks; b++) {
        for (int look = 0; look < JOB_LOOKS; look++)
            look_at(f, (job_look)look, b, references);
        for (size_t u = 0; u < f->units; u++)
            f->counts[u] += isnan(f->low[b * f->units + u]) ? 0 : 1;
    }
    centre(f, JOB_IN_BETTER_STEPS);
    free(references);
}

void job_field_end(job_field *f)
{
    for (int look = 0; look < JOB_LOOKS; look++)
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

static job_judgement judge_middle(const job_field *f, const double *late, size_t count,
                                  double median)
{
    job_judgement out;
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

static job_judgement judge_better(const job_field *f, const double *late, size_t count,
                                  double quartile)
{
    double dependence = dependence_at(late, count, quartile, f->room);
    size_t independent = (size_t)((double)count / dependence);
    memcpy(f->room, late, count * sizeof *late);
    pki_samples_sort(f->room, count);
    return (job_judgement){quartile, quartile_interval(f->room, count, independent, f->level),
                           false};
}

job_judgement job_field_judge(const job_field *f, job_look look, size_t unit)
{
    size_t count = f->counts[unit];
    const double *late = f->late[look] + unit * f->blocks;
    double quick = job_field_quick(f, look, unit);
    if (!count)
        return (job_judgement){NAN, {-INFINITY, INFINITY}, false};
    job_judgement out = look == JOB_IN_BETTER_STEPS ? judge_better(f, late, count, quick)
                                                    : judge_middle(f, late, count, quick);
    out.late = out.by > log1p(JOB_LATE_LEAST) && out.interval.low > log1p(JOB_LATE_SURELY);
    return out;
}
