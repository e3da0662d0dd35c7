// bench/scope.cpp - C++'s scopes, for the tables in C (harness.h).
#include <pk/pk.hpp>

static pk_region region = PK_REGION("scope");

extern "C" void bench_cpp_scope_run(uint64_t n);

void bench_cpp_scope_run(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        pk::scope s(region);
}
