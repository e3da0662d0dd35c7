/* Several decisions at once, and how many replications they take: evidence.h. */
#include "bench/stats/evidence.h"

#include <math.h>
#include <stdlib.h>

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
