/* lib/stats/quantile.h - which sample is a quantile, and in which bucket it lies. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Which of n samples in order, counted from 1, is the q-quantile: the first whose share, rank / n
 * as a double, is q or more. (q * n rounded up is too much for 0.9 of 10 in long double, 0.07 of
 * 100 in double.) */
uint64_t pki_rank(double q, uint64_t n);

/* The bucket that holds the sample of that rank, of n whose counts lie `stride` bytes apart; the
 * last if they hold fewer. */
size_t pki_rank_bucket(const uint64_t *counts, size_t n, size_t stride, uint64_t rank);
