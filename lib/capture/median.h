/* lib/capture/median.h - the median of the last like steps. */
#pragma once

#include <stdint.h>

#define PKI_LIKE_STEPS 65 /* the median is of so many of them at most */
#define PKI_LIKE_LEAST 8  /* fewer are no ground for a judgement */
#define PKI_LIKE_KINDS 16 /* kinds beyond share the last one */

typedef struct pki_like_steps {
    uint32_t kind;
    uint32_t count;                 /* of those in the window */
    uint32_t oldest;                /* place of the oldest in `turns` */
    uint64_t turns[PKI_LIKE_STEPS]; /* in the order in which they came */
    uint64_t sorted[PKI_LIKE_STEPS];
} pki_like_steps;

typedef struct pki_medians_by_kind {
    uint32_t kinds;
    pki_like_steps of[PKI_LIKE_KINDS];
} pki_medians_by_kind;

/* The steps that are like it; all zero is none. */
pki_like_steps *pki_like_of(pki_medians_by_kind *all, uint32_t kind);

/* 0: too few are known. */
uint64_t pki_like_median(const pki_like_steps *like);

void pki_like_add(pki_like_steps *like, uint64_t ns);
