#include "harness.h"

#include <pk/region.h>

#define FOUR(n)                                                                                    \
    PK_REGION("r" #n "a"), PK_REGION("r" #n "b"), PK_REGION("r" #n "c"), PK_REGION("r" #n "d")
#define SIXTEEN(n) FOUR(n##a), FOUR(n##b), FOUR(n##c), FOUR(n##d)
#define SIXTY_FOUR(n) SIXTEEN(n##a), SIXTEEN(n##b), SIXTEEN(n##c), SIXTEEN(n##d)

static pk_region many[256] = {SIXTY_FOUR(a), SIXTY_FOUR(b), SIXTY_FOUR(c), SIXTY_FOUR(d)};

#define PAIR(i) (pk_region_begin(&many[i]), pk_region_end(&many[i]))
#define PAIRS_4(i) (PAIR(i), PAIR((i) + 1), PAIR((i) + 2), PAIR((i) + 3))
#define PAIRS_16(i) (PAIRS_4(i), PAIRS_4((i) + 4), PAIRS_4((i) + 8), PAIRS_4((i) + 12))

void bench_64_run(uint64_t n)
{
    for (uint64_t i = 0; i < n; i += 64) {
        PAIRS_16(0);
        PAIRS_16(16);
        PAIRS_16(32);
        PAIRS_16(48);
    }
}

void bench_many_pairs(unsigned regions)
{
    for (unsigned i = 0; i < regions; i++)
        PAIR(i);
}
