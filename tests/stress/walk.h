/* walk.h - one thread's random walk through all calls that record, and what perfkit has to make of
 * it.
 *
 * The walk keeps a stack of its own and counts as the headers promise: so every sum that perfkit
 * gives in the end is known beforehand, whatever was dropped.
 */
#ifndef TESTS_STRESS_WALK_H
#define TESTS_STRESS_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include <pk/pk.h>

#define WALK_REGIONS 12
#define WALK_DEEPEST 72 /* perfkit keeps 64 */

typedef struct walk_sums {
    uint64_t begun, too_deep, unbalanced, points, steps;
    uint64_t calls[WALK_REGIONS]; /* those that have to enter a distribution */
    uint64_t bytes[WALK_REGIONS];
} walk_sums;

/* At least so many regions begun and all of them ended; adds to sums. Only one thread may make
 * steps. */
void walk(walk_sums *sums, uint64_t seed, unsigned regions, bool steps);

void walk_add(walk_sums *to, const walk_sums *from);

pk_region *walk_region(unsigned i);

#endif
