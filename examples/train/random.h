/* random.h - random numbers that are the same on every machine for a seed. */
#ifndef TRAIN_RANDOM_H
#define TRAIN_RANDOM_H

#include <stdint.h>

/* A bijection of 64-bit numbers whose output looks unrelated to its input (splitmix64's finaliser).
 */
uint64_t random_mix(uint64_t x);

typedef struct random_source {
    uint64_t state;
} random_source;

uint64_t random_bits(random_source *source);

/* Of the normal distribution, mean 0 and standard deviation 1. */
double random_normal(random_source *source);

/* Which of `count` things comes at `place` (0 .. count - 1) in the shuffle named `key`. A function
 * of its arguments alone, so a resumed run finds its place in the data without replaying it. */
uint64_t random_order(uint64_t key, uint64_t place, uint64_t count);

#endif
