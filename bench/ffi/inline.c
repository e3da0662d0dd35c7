/* C as it is meant: the gate is in the caller. */
#include "module.h"

#include <pk/pk.h>

static pk_region region = PK_REGION("C, inline");

void ffi_pairs(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_begin(&region);
        pk_region_end(&region);
    }
}
