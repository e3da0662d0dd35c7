/* lib/measure/steps/portions.h - the usual steps in portions of so many, for who compares ranks
 * while they run (PK_MPI_STRAGGLERS).
 *
 * Steps belong to one portion if their numbers, divided by its length, are the same: so the ranks'
 * portions are alike, whenever each of them has begun. Stages keep their places: the first ones
 * that are seen have one each, what comes later is added up in two more, one for what is a rank's
 * own and one for what waits for others.
 *
 * Not for two threads at once. What nobody takes in time goes, the oldest first.
 */
#pragma once

#include "measure/steps/stages.h"

#define PKI_PORTION_STAGES 16
#define PKI_PORTION_OWN (PKI_PORTION_STAGES - 2)
#define PKI_PORTION_WAITS (PKI_PORTION_STAGES - 1)
#define PKI_PORTIONS_KEPT 16

typedef struct pki_portion {
    uint64_t number; /* of its steps, divided by how many it is of */
    uint64_t steps, time, items, no_processor, told; /* as in pki_stage_block */
    pki_seats seats;
    uint64_t selves[PKI_PORTION_STAGES];
} pki_portion;

/* All zero: none are made. */
typedef struct pki_portions {
    uint64_t every;
    size_t stage_count; /* with a place of their own */
    uint32_t ids[PKI_PORTION_OWN], kinds[PKI_PORTION_OWN];
    bool open; /* `now` has steps, or may have */
    pki_portion now;
    size_t count;
    pki_portion whole[PKI_PORTIONS_KEPT]; /* the oldest first */
} pki_portions;

/* From here on, of so many steps; 0: no more. What there is stays if that is what it was. */
void pki_portions_expect(pki_portions *portions, uint64_t every);

/* A step of this number has come, of whatever kind. If it is one that counts, what it was in
 * follows, and then the step. */
void pki_portions_reach(pki_portions *portions, uint64_t index);
void pki_portions_add_self(pki_portions *portions, uint32_t id, uint32_t kind, uint64_t self);
void pki_portions_add(pki_portions *portions, const pki_stage_block *step);

/* The oldest one that is over. False: there is none. */
bool pki_portions_pop(pki_portions *portions, pki_portion *out);
