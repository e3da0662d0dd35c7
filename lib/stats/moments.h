/* lib/stats/moments.h - count, sum, extremes and spread of doubles: the same ones, in whatever
 * order and parts they come, to the last digit but for a rounding.
 *
 * What is summed is how far each value lies from the first one, and the squares of that, in pairs
 * of doubles (106 bits). The first value is one of those whose spread is asked for, so n * variance
 * >= (first - mean)^2: of the n * variance + n * (first - mean)^2 that are summed, the difference
 * cancels a factor of n + 1 at most, however large the values and small their spread. With 2^32
 * values that leaves 70 bits of the 106. (Values that have been taken away again cancel more.)
 *
 * Distances beyond 2^500 have no squares: the deviation is infinite then. Distances below 2^-500
 * count as none.
 */
#pragma once

#include <stdint.h>

/* high + low, which is at most half a unit in high's last place. */
typedef struct pki_pair {
    double high, low;
} pki_pair;

/* All zero: no values. */
typedef struct pki_moments {
    double first, min, max;
    pki_pair apart;   /* sum of value - first */
    pki_pair squares; /* sum of (value - first)^2 */
    uint64_t count;   /* last: see stats/tally.c */
} pki_moments;

/* A finite value, so many times. */
void pki_moments_add(pki_moments *moments, double value, uint64_t times);

/* Takes away a value that has been added. min and max stay. */
void pki_moments_remove(pki_moments *moments, double value);

void pki_moments_merge(pki_moments *into, const pki_moments *from);

/* Those of `now` that were not yet there `before`, but for min and max, which are now's. */
pki_moments pki_moments_difference(const pki_moments *now, const pki_moments *before);

double pki_moments_sum(const pki_moments *moments);
double pki_moments_mean(const pki_moments *moments); /* 0 if empty */

/* sqrt(sum of (x - mean)^2 / (count - less)): less 0 for a population, 1 for a sample. 0 for no
 * more than `less` values. */
double pki_moments_deviation(const pki_moments *moments, uint64_t less);
