#include "module.h"

#include <pk/pk.hpp>

static pk_region region = PK_REGION("C++");

void ffi_pairs(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        pk::scope s(region);
}
