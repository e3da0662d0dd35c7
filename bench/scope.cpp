#include "scope.h"

#include <pk/pk.hpp>

static pk_region region = PK_REGION("scope");

void bench_cpp_scope_run(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        pk::scope s(region);
}
