/* lib/backend/cupti/pools.h - how much of a device's memory pools is in use, as a counter.
 *
 * Threads: one at a time (the drain lock).
 */
#pragma once

#include "backend/cupti/records.h"

void pki_cupti_pool_sample(const pki_cupti_record *record);

void pki_cupti_pools_forget(void);
