/* lib/stats/buckets.h - which values share a bucket, and what is said of a distribution */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- which values share a bucket: 64 of them to an octave ---- */

/* A bucket is 1/64 of its octave's start wide; taking the middle for each of its values, a quantile
 * is within 1/128 = 0.8 %. There are two numberings, by what is counted: times in ticks or
 * nanoseconds, where values below 128 have buckets of their own, and doubles of either sign. */

#define PKI_OCTAVE_BUCKETS 64

/* ---- times ---- */

static inline uint32_t pki_bucket(uint64_t value)
{
    int shift = 57 - __builtin_clzll(value | 64);
    return ((uint32_t)shift << 6) + (uint32_t)(value >> shift);
}

/* The middle of a bucket, in the unit of the values. */
static inline double pki_bucket_middle(uint32_t bucket)
{
    if (bucket < 128)
        return bucket;
    uint32_t shift = (bucket >> 6) - 1;
    uint64_t first = (uint64_t)(64 + (bucket & 63)) << shift;
    return (double)first + ((double)((uint64_t)1 << shift) - 1) / 2;
}

/* The smallest value of a bucket; that of the one behind the last is its end. */
static inline double pki_bucket_begin(uint32_t bucket)
{
    if (bucket < 128)
        return bucket;
    return (double)(64 + (bucket & 63)) * (double)((uint64_t)1 << ((bucket >> 6) - 1));
}

/* ---- doubles: a key grows with the value ---- */

/* Sign, exponent and the first six bits of the mantissa: what is left of a double's 64 bits. The
 * negative ones in reverse. */
#define PKI_KEY_SHIFT 46
#define PKI_KEY_SIGN (1u << 17)
#define PKI_KEY_MASK (2 * PKI_KEY_SIGN - 1)

static inline uint32_t pki_key(double value)
{
    uint64_t bits;
    value += 0.0; /* -0 is 0 */
    memcpy(&bits, &value, sizeof bits);
    uint32_t key = (uint32_t)(bits >> PKI_KEY_SHIFT);
    return key & PKI_KEY_SIGN ? ~key & PKI_KEY_MASK : key | PKI_KEY_SIGN;
}

/* The double of these bits, with that sign. */
static inline double pki_key_double(uint64_t bits, bool negative)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return negative ? -value : value;
}

/* What lies in the middle of a key's values. */
static inline double pki_key_middle(uint32_t key)
{
    bool negative = !(key & PKI_KEY_SIGN);
    uint64_t magnitude = (negative ? ~key : key) & (PKI_KEY_SIGN - 1);
    if (magnitude == 0)
        return 0;
    /* Half a bucket up: one more bit of the mantissa. */
    uint64_t half = UINT64_C(1) << (PKI_KEY_SHIFT - 1);
    return pki_key_double(magnitude << PKI_KEY_SHIFT | half, negative);
}

/* The smallest of a key's values. */
static inline double pki_key_begin(uint32_t key)
{
    bool negative = !(key & PKI_KEY_SIGN);
    uint64_t magnitude = key & (PKI_KEY_SIGN - 1);
    if (negative)
        magnitude = PKI_KEY_SIGN - magnitude;
    return pki_key_double(magnitude << PKI_KEY_SHIFT, negative);
}

/* ---- what is said of a distribution ---- */

/* Quantiles within 1 %, the rest exact. Zero when count is 0. */
typedef struct pki_dist {
    uint64_t count;
    double sum, min, max, mean, stddev;
    double p50, p90, p95, p99;
} pki_dist;

/* ---- which sample is a quantile, and in which bucket it lies ---- */

/* Which of n samples in order, counted from 1, is the q-quantile: the first whose share, rank / n
 * as a double, is q or more. (q * n rounded up is too much for 0.9 of 10 in long double, 0.07 of
 * 100 in double.) */
uint64_t pki_rank(double q, uint64_t n);

/* The bucket that holds the sample of that rank, of n whose counts lie `stride` bytes apart; the
 * last if they hold fewer. */
size_t pki_rank_bucket(const uint64_t *counts, size_t n, size_t stride, uint64_t rank);
