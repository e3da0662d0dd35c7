/* tests/unit/draw.h - numbers that look random and are the same in every run: Marsaglia's
 * xorshift64.
 */
#ifndef TESTS_DRAW_H
#define TESTS_DRAW_H

#include <stdint.h>

static uint64_t random_state = 88172645463325252u;

static inline uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static inline uint64_t draw_below(uint64_t limit)
{
    return draw() % limit;
}

#endif
