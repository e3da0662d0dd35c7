/* lib/measure/device/regions.h - how long each region took on the streams of devices: its
 * distribution there, beside the one of its calls on the CPU. */
#pragma once

#include "measure/fold/fold.h"

/* A span of the region with this name id, of so many ns. Under the fold lock. */
void pki_device_region_add(pki_fold *fold, uint32_t region, uint64_t ns);

/* False if it has no span. In ns; finish with pki_stats_finish and a unit of 1. Under the lock. */
