#include "bench/stats/decision.h"

#include <math.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "bench/stats/evidence.h"

/* ---- Several decisions at once, and how many replications they take: evidence.h ---- */

/* ---- Holm ---- */

bool pki_holm(const double *p, size_t count, double alpha, bool *rejected, double *levels)
{
    pki_ranked *sorted = count ? malloc(count * sizeof *sorted) : NULL;
    if (count && !sorted)
        return false;
    pki_samples_rank(p, count, sorted);
    double level = 0;
    bool going = true;
    for (size_t i = 0; i < count; i++) {
        if (going)
            level = alpha / (double)(count - i);
        going = going && sorted[i].value <= level;
        rejected[sorted[i].place] = going;
        levels[sorted[i].place] = level;
    }
    free(sorted);
    return true;
}

/* ---- how many ---- */

#define POWER 0.9

static bool enough(size_t n, double spread, double distance, double alpha)
{
    double quantiles = -pki_t_quantile(alpha / 2, (double)n - 1) + pki_t_quantile(POWER, INFINITY);
    return quantiles * spread / sqrt((double)n) <= distance;
}

size_t pki_replications_needed(double spread, double distance, double alpha)
{
    size_t low = 2, high = 4;
    if (!(distance > 0) || !isfinite(spread))
        return PKI_TOO_MANY;
    while (high < PKI_TOO_MANY && !enough(high, spread, distance, alpha))
        high *= 2;
    if (high >= PKI_TOO_MANY)
        return PKI_TOO_MANY;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (enough(middle, spread, distance, alpha))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

double pki_evidence_spread(const pki_evidence *e, double alpha)
{
    if (e->method == PKI_BY_MOMENTS)
        return e->runs.spread;
    if (e->count < 2)
        return NAN;
    pki_interval range = pki_evidence_interval(e, alpha);
    if (!isfinite(range.high - range.low))
        return pki_samples_stddev(e->values, e->count);
    double quantile = -pki_t_quantile(alpha / 2, (double)e->count - 1);
    return (range.high - range.low) / 2 * sqrt((double)e->count) / quantile;
}

/* ---- slower, faster, same, or cannot tell: for all benchmarks of a file at once ---- */

const char *pki_change_name(pki_change change)
{
    static const char *const names[] = {"cannot tell", "same", "faster", "slower"};
    return names[change];
}

static double p_of(const pki_evidence *e, double bound)
{
    double one_sided = PKI_MIN(pki_evidence_p_above(e, bound), pki_evidence_p_below(e, -bound));
    return PKI_MIN(2 * one_sided, 1);
}

/* From where the estimate is, to the next bound: beyond that it is one thing or the other. */
static size_t more_of(const pki_evidence *e, double bound, double alpha)
{
    double spread = pki_evidence_spread(e, alpha);
    double distance = fabs(fabs(pki_evidence_estimate(e)) - bound);
    if (isnan(spread) || isnan(distance))
        return 0;
    /* Moments: so many runs of each build. */
    if (e->method == PKI_BY_MOMENTS)
        spread *= M_SQRT2;
    size_t needed = pki_replications_needed(spread, distance, alpha);
    if (needed == PKI_TOO_MANY)
        return PKI_TOO_MANY;
    return needed > e->count ? needed - e->count : 1;
}

static void decide(const pki_evidence *e, double bound, bool rejected, pki_decision *d)
{
    double estimate = pki_evidence_estimate(e);
    pki_interval logs = pki_evidence_interval(e, d->level);
    d->ratio = exp(estimate);
    d->interval = (pki_interval){exp(logs.low), exp(logs.high)};
    if (rejected)
        d->change = estimate > 0 ? PKI_SLOWER : PKI_FASTER;
    else if (logs.low >= -bound && logs.high <= bound)
        d->change = PKI_SAME;
    else
        d->more = more_of(e, bound, d->level);
}

bool pki_decide(const pki_evidence *evidence, size_t count, double margin, double alpha,
                pki_decision *decisions)
{
    double bound = log1p(margin);
    double *p = calloc(PKI_MAX(2 * count, 1), sizeof *p), *levels = p + count;
    bool *rejected = calloc(PKI_MAX(count, 1), sizeof *rejected);
    for (size_t i = 0; p && i < count; i++)
        p[i] = p_of(&evidence[i], bound);
    bool fits = p && rejected && pki_holm(p, count, alpha, rejected, levels);
    for (size_t i = 0; fits && i < count; i++) {
        decisions[i] = (pki_decision){.p = p[i], .level = levels[i]};
        decide(&evidence[i], bound, rejected[i], &decisions[i]);
    }
    free(p);
    free(rejected);
    return fits;
}
