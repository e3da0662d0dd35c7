#include "stats/buckets.h"

/* ---- which sample is a quantile, and in which bucket it lies ---- */

uint64_t pki_rank(double q, uint64_t n)
{
    if (!(q > 0))
        return 1;
    if (q >= 1)
        return n;
    uint64_t below = (uint64_t)(q * (double)n), rank = below > 1 ? below - 1 : 1;
    while (rank < n && (double)rank / (double)n < q)
        rank++;
    return rank;
}

size_t pki_rank_bucket(const uint64_t *counts, size_t n, size_t stride, uint64_t rank)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < n; i++) {
        seen += *(const uint64_t *)((const char *)counts + i * stride);
        if (seen >= rank)
            return i;
    }
    return n - 1;
}
