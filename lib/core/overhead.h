/* lib/core/overhead.h - what recording costs here and now. */
#ifndef PKI_CORE_OVERHEAD_H
#define PKI_CORE_OVERHEAD_H

#include <stdint.h>

/* Nanoseconds of one pk_region_begin and pk_region_end, recorded: the least of several batches. 0
 * without memory. */
double pki_measure_region_ns(uint32_t monotonic);

#endif
