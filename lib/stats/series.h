/* lib/stats/series.h - many numbers in little room: histograms, medians, series, trends */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/tally.h"

/* ---- the shape of a distribution, in few buckets ---- */

/* Distributions are kept in 64 buckets per octave (stats/buckets.h). A report has neighbours added
 * up, two, four, eight ... at a time, until there are PKI_HISTOGRAM_MOST at most. Their bounds are
 * those of the buckets that were kept, so nothing is counted where it was not; rounded to
 * nanoseconds from 1 us on, else to picoseconds.
 *
 * False without memory; the histogram is empty then. */

#define PKI_HISTOGRAM_MOST 64

/* How many values were at least `from` and less than `to`. */
typedef struct pki_histogram_bucket {
    double from, to;
    uint64_t count;
} pki_histogram_bucket;

/* Buckets that hold anything, in order. */
typedef struct pki_histogram {
    size_t count;
    pki_histogram_bucket *buckets;
} pki_histogram;

void pki_histogram_finish(pki_histogram *histogram);

/* Of a tally of doubles, and of one of whole nanoseconds, whose keys are pki_bucket's. */
bool pki_histogram_of_tally(const pki_tally *tally, pki_histogram *out);
bool pki_histogram_of_times(const pki_tally *times, pki_histogram *out);

/* ---- the k-th smallest of many, without putting all of them in order ---- */

/* Puts the sample of that rank, from 0, in its place: none before it is larger, none behind it
 * smaller. In time that grows with n, which is at least 1; no NaN among them. */
void pki_select(double *samples, size_t n, size_t wanted);

/* What is said, and how much it counts. */
typedef struct pki_weighted {
    double value, weight;
} pki_weighted;

/* The weighted median: the smallest value up to which there is half of all weight, or the mean of
 * it and the next one where that is exactly half (within 1e-9 of it). Changes their order. Time
 * grows with n; NAN if n is 0. No NaN among them, and weights above 0. */
double pki_select_weighted_median(pki_weighted *all, size_t n);

/* ---- the median of a growing number of steps, in little room ---- */

/* Of up to 8 steps it is exact. Twice as many are 8 again: of both halves' 16 in order every other
 * one stays, either the first or the second of each two, as a hash of them says. Each doubling puts
 * the median's rank off by at most 1/16 of the steps, and as a rule by much less, since errors are
 * of either sign. */

#define PKI_SOME 8
#define PKI_SOME_LEVELS 40

/* Up to 8 values in order, each of which stands for as many as the others. */
typedef struct pki_some {
    uint64_t of[PKI_SOME];
} pki_some;

/* Values that come one by one: the last ones, and eights of 8, 16, 32 ... before them. All zero is
 * none. */
typedef struct pki_medians {
    size_t loose_count;
    uint64_t loose[PKI_SOME];
    uint64_t full; /* a bit for each level that holds any */
    pki_some levels[PKI_SOME_LEVELS];
} pki_medians;

void pki_medians_add(pki_medians *m, uint64_t value);

/* Those of `steps` values, a power of two, that are all there have been. */
pki_some pki_medians_some(const pki_medians *m, uint64_t steps);
uint64_t pki_medians_median(const pki_medians *m);

/* Of two that stand for `steps` values each. */
pki_some pki_some_join(const pki_some *a, const pki_some *b, uint64_t steps);
uint64_t pki_some_median(const pki_some *some, uint64_t steps);

/* ---- how something went over the run, in bounded room: it grows, then halves ---- */

/* Positions (steps counted from 0, nanoseconds) are cut into rows of equal length. When a position
 * lies behind the last row that there may be, each two rows become one of twice the length, as
 * often as it takes. What a row holds, and how two become one, the user says.
 *
 * Not for two threads at once. */

/* A row of zeros is an empty one. */
typedef struct pki_series_kind {
    size_t row_bytes;
    size_t first_room, most; /* rows; powers of two */
    uint64_t first_stride;   /* positions of a row, at first */
    void (*join)(void *row,
                 const void *next); /* adds next to row; of pki_series_at, either may be empty */
} pki_series_kind;

typedef struct pki_series {
    uint64_t stride; /* positions of a row */
    uint64_t count;  /* of pki_series_next */
    size_t used;     /* rows up to the last one that was asked for */
    size_t room;
    void *rows;
} pki_series;

/* All zero is an empty series, too. */
void pki_series_finish(pki_series *series);

/* Room for all rows that there may be, so that none is asked for later. False without memory. */
bool pki_series_reserve(pki_series *series, const pki_series_kind *kind);

/* The row of that position. NULL without memory for any row; with too little, rows are long. */
void *pki_series_at(pki_series *series, const pki_series_kind *kind, uint64_t position);

/* The row of the position that follows the one of the last call. */
void *pki_series_next(pki_series *series, const pki_series_kind *kind);

/* ---- does a series rise throughout, noise and single jumps aside? ---- */

/* The slope is Theil and Sen's: the median of the slopes between all pairs of rows. Whether there
 * is one at all, Mann and Kendall's test says, which only asks which of two rows is higher; its
 * variance is enlarged for rows that depend on their neighbours (Hamed and Rao, J. Hydrology 204,
 * 1998), by the autocorrelation of the ranks of what is left without the slope. A series that has
 * risen once, at its start or by a jump, rises as well; so the slopes of its thirds are given, too;
 * and what wanders about may come to rise for a while, so how far it falls. */

typedef struct pki_trend {
    double slope; /* per unit of `at` */
    double z;     /* in standard deviations; corrected */
    double least; /* slope of the third that rises least */
    double fall;  /* the furthest that it falls, single rows aside */
} pki_trend;

/* Of 12 .. PKI_TREND_MOST values, and where they are: looks come as they can, and a straight line
 * seen at uneven places is still one. at: increasing. False: there is no rise whose z, uncorrected,
 * reaches least_z (the other figures are not made then), or no memory. */
bool pki_trend_rises(const double *at, const double *values, size_t count, double least_z,
                     pki_trend *trend);
