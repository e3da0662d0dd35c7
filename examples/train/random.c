#include "random.h"

#include <math.h>

uint64_t random_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t random_bits(random_source *source)
{
    source->state += 0x9e3779b97f4a7c15u;
    return random_mix(source->state);
}

/* In (0, 1): never 0, whose logarithm would be infinite. */
static double unit(random_source *source)
{
    return ((double)(random_bits(source) >> 11) + 0.5) * 0x1p-53;
}

double random_normal(random_source *source)
{
    double radius = sqrt(-2 * log(unit(source)));
    return radius * cos(6.283185307179586 * unit(source));
}

/* A Feistel network permutes the numbers of 2 * half bits, whatever its round function is. */
static uint64_t permute(uint64_t key, uint64_t x, unsigned half)
{
    uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < 4; round++) {
        uint64_t next = left ^ (random_mix(key ^ random_mix(right + (round << 56))) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

uint64_t random_order(uint64_t key, uint64_t place, uint64_t count)
{
    unsigned half = 1;
    while (half < 31 && (uint64_t)1 << (2 * half) < count)
        half++;
    /* The network's domain is at most four times too large: walk its cycle until back inside. */
    do
        place = permute(key, place, half);
    while (place >= count);
    return place;
}
