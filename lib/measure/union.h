/* lib/measure/union.h - the length of what a stream of intervals covers, each moment once.
 *
 * Intervals come roughly in the order of their ends. The last PKI_UNION_OPEN pieces are kept to be
 * joined with what comes; older ones are added up, and what comes later counts from their end on:
 * so the length never exceeds the time from the first start to the last end, and is exact unless an
 * interval reaches back over more than that many separate pieces.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PKI_UNION_OPEN 32

/* All zero is an empty one. */
typedef struct pki_union {
    uint64_t closed, closed_until; /* length of what has been added up, and where it ends */
    size_t count;
    struct {
        uint64_t start, end;
    } pieces[PKI_UNION_OPEN]; /* by start, apart from each other */
} pki_union;

void pki_union_add(pki_union *u, uint64_t start, uint64_t end);
uint64_t pki_union_length(const pki_union *u);
