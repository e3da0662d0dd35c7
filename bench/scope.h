/* bench/scope.h - C++'s scopes, for the tables in C. */
#ifndef BENCH_SCOPE_H
#define BENCH_SCOPE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void bench_cpp_scope_run(uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
