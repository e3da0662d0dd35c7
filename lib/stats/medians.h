/* lib/stats/medians.h - the median of a growing number of steps, in little room.
 *
 * Of up to 8 steps it is exact. Twice as many are 8 again: of both halves' 16 in order every other
 * one stays, either the first or the second of each two, as a hash of them says. Each doubling puts
 * the median's rank off by at most 1/16 of the steps, and as a rule by much less, since errors are
 * of either sign.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

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
