#include "backend/cupti/queries.h"

#include "base/atomic.h"

#define PLACES 8192u /* a power of two */

static uint32_t noted[PLACES]; /* correlations, which CUPTI counts from 1 */

void pki_cupti_query_note(uint32_t correlation)
{
    pki_store(&noted[correlation % PLACES], correlation);
}

bool pki_cupti_is_query(uint32_t correlation)
{
    return correlation && pki_load(&noted[correlation % PLACES]) == correlation;
}
