#include "backend/cupti/callers.h"

#include "base/atomic.h"

#define PLACES 16384u /* a power of two */

static uint64_t noted[PLACES]; /* correlation, which CUPTI counts from 1, and region */

void pki_cupti_caller_note(uint32_t correlation, uint32_t region)
{
    pki_store(&noted[correlation % PLACES], (uint64_t)correlation << 32 | region);
}

bool pki_cupti_caller_of(uint32_t correlation, uint32_t *region)
{
    uint64_t found = pki_load(&noted[correlation % PLACES]);
    bool known = correlation && found >> 32 == correlation;
    *region = known ? (uint32_t)found : 0;
    return known;
}
