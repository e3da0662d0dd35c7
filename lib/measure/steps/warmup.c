#include "measure/steps/warmup.h"

#include "base/compiler.h"

#include <math.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts; nearest rank. */
static double quantile_of(double *values, size_t count, double q)
{
    qsort(values, count, sizeof *values, by_size);
    size_t rank = (size_t)ceil(q * (double)count);
    return values[rank ? rank - 1 : 0];
}

static double deviation_of(double *values, size_t count, double median)
{
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - median);
    /* 1.4826: from the median absolute deviation to the standard deviation of a normal
     * distribution. */
    return 1.4826 * quantile_of(values, count, 0.5);
}

static double threshold_of(const uint64_t *durations, size_t count)
{
    double values[PKI_WARMUP_KNOWN];
    for (size_t i = 0; i < count; i++)
        values[i] = (double)durations[i];
    double median = quantile_of(values, count, 0.5);
    double high = quantile_of(values, count, 0.9);
    double spread = deviation_of(values, count, median);
    return PKI_MAX(PKI_MAX(1.25 * median, median + 5 * spread), 1.05 * high);
}

uint64_t pki_warmup_find(const uint64_t *durations, size_t known, uint64_t count)
{
    known = PKI_MIN(known, PKI_WARMUP_KNOWN);
    if (count < 2 || known < 2)
        return 0;
    uint64_t most = PKI_MIN(count / 10, PKI_WARMUP_MOST);
    if (most < 2 || known <= most)
        return 1;
    double threshold = threshold_of(durations + most, known - most);
    uint64_t found = 1;
    while (found < most && (double)durations[found] > threshold)
        found++;
    return found;
}
