/* lib/stats/trend.h - does a series rise throughout, noise and single jumps aside?
 *
 * The slope is Theil and Sen's: the median of the slopes between all pairs of rows. Whether there
 * is one at all, Mann and Kendall's test says, which only asks which of two rows is higher; its
 * variance is enlarged for rows that depend on their neighbours (Hamed and Rao, J. Hydrology 204,
 * 1998), by the autocorrelation of the ranks of what is left without the slope. A series that has
 * risen once, at its start or by a jump, rises as well; so the slopes of its thirds are given, too;
 * and what wanders about may come to rise for a while, so how far it falls.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PKI_TREND_MOST 256

typedef struct pki_trend {
    double slope; /* per row */
    double z;     /* in standard deviations; corrected */
    double least; /* slope of the third that rises least */
    double fall;  /* the furthest that it falls, single rows aside */
} pki_trend;

/* Of 12 .. PKI_TREND_MOST values. False: there is no rise whose z, uncorrected, reaches least_z
 * (the other figures are not made then), or no memory. */
bool pki_trend_rises(const double *values, size_t count, double least_z, pki_trend *trend);
