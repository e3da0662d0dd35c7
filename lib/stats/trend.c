#include "stats/trend.h"

#include <math.h>
#include <stdlib.h>

#include "base/compare.h"
#include "base/compiler.h"
#include "stats/select.h"

/* What ties take off the variance. */
static double tied(const double *values, size_t n)
{
    double sorted[PKI_TREND_MOST], off = 0;
    for (size_t i = 0; i < n; i++)
        sorted[i] = values[i];
    qsort(sorted, n, sizeof *sorted, pki_compare_double);
    for (size_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && !(sorted[next] > sorted[i]); next++)
            ;
        double t = (double)(next - i);
        off += t * (t - 1) * (2 * t + 5);
    }
    return off;
}

static double kendall_z(const double *values, size_t n)
{
    double s = 0, count = (double)n;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            s += (values[j] > values[i]) - (values[j] < values[i]);
    double variance = (count * (count - 1) * (2 * count + 5) - tied(values, n)) / 18;
    return s > 0 && variance > 0 ? (s - 1) / sqrt(variance) : 0;
}

static double slope_of(const double *values, size_t n, double *slopes)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            slopes[count++] = (values[j] - values[i]) / (double)(j - i);
    pki_select(slopes, count, count / 2);
    return slopes[count / 2];
}

/* Ranks around 0, of what is left without the slope; equal values have a rank in common. */
static void rank_rest(const double *values, size_t n, double slope, double *ranks)
{
    for (size_t i = 0; i < n; i++) {
        double rank = 0, rest = values[i] - slope * (double)i;
        for (size_t j = 0; j < n; j++) {
            double other = values[j] - slope * (double)j;
            rank += (rest > other) - (rest < other);
        }
        ranks[i] = rank;
    }
}

static double product(const double *ranks, size_t n, size_t lag)
{
    double sum = 0;
    for (size_t i = 0; i + lag < n; i++)
        sum += ranks[i] * ranks[i + lag];
    return sum;
}

/* How much larger the variance is for the dependence of neighbours; not smaller. */
static double enlarged(const double *values, size_t n, double slope)
{
    double ranks[PKI_TREND_MOST], count = (double)n, sum = 0;
    rank_rest(values, n, slope, ranks);
    double all = product(ranks, n, 0);
    for (size_t lag = 1; lag + 2 < n && all > 0; lag++) {
        double r = product(ranks, n, lag) / all, left = (double)(n - lag);
        if (fabs(r) > 1.96 / sqrt(count))
            sum += left * (left - 1) * (left - 2) * r;
    }
    double factor = 1 + 2 * sum / (count * (count - 1) * (count - 2));
    return factor > 1 ? factor : 1;
}

/* Of floors of three: a single value that is high is no height to fall from. */
static double fall_of(const double *values, size_t n)
{
    double highest = values[0], fall = 0;
    for (size_t i = 0; i + 2 < n; i++) {
        double floor = PKI_MIN(values[i], PKI_MIN(values[i + 1], values[i + 2]));
        highest = i ? PKI_MAX(highest, floor) : floor;
        fall = PKI_MAX(fall, highest - floor);
    }
    return fall;
}

bool pki_trend_rises(const double *values, size_t count, double least_z, pki_trend *trend)
{
    *trend = (pki_trend){0};
    if (count < 12 || count > PKI_TREND_MOST)
        return false;
    double z = kendall_z(values, count);
    double *slopes = z >= least_z ? malloc(count * (count - 1) / 2 * sizeof *slopes) : NULL;
    if (!slopes)
        return false;
    size_t third = count / 3;
    trend->slope = slope_of(values, count, slopes);
    trend->z = z / sqrt(enlarged(values, count, trend->slope));
    trend->least = slope_of(values, third, slopes);
    trend->least = PKI_MIN(trend->least, slope_of(values + third, third, slopes));
    trend->least = PKI_MIN(trend->least, slope_of(values + count - third, third, slopes));
    trend->fall = fall_of(values, count);
    free(slopes);
    return true;
}
