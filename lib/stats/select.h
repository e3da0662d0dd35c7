/* lib/stats/select.h - the k-th smallest of many, without putting all of them in order. */
#pragma once

#include <stddef.h>

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
