/* lib/backend/cuda/harvest.h - the collector's part: asks about the oldest event of each lane and
 * takes what the device has passed. Never waits. All under the drain lock. */
#pragma once

#include <stdbool.h>

/* All lanes of the session, once. True if something is left that may yet come. */
bool pki_cuda_harvest(void);

/* Nothing more of this session will be read: what is left is lost. */
void pki_cuda_harvest_discard(void);
