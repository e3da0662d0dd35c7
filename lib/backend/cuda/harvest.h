/* lib/backend/cuda/harvest.h - the collector's part: asks about the oldest event of each lane and
 * takes what the device has passed. Never waits. All under the drain lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* All lanes of the session, once. True if something is left that may yet come. */
bool pki_cuda_harvest(void);

/* No driver is in use: until then (ns of the session) no device has done anything. */
void pki_cuda_harvest_nothing(uint64_t until);

/* Nothing more of this session will be read: what is left is lost. */
void pki_cuda_harvest_discard(void);
