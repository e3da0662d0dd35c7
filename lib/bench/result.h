/* lib/bench/result.h - from a case's samples to figures. */
#pragma once

#include "bench/case.h"

/* Fills all of it and moves the samples over: the result's owner frees them. False without memory.
 */
bool pki_bench_result_fill(pk_bench_result *result, pki_bench_case *c);

/* What programs were compiled against when the first perfkit was released. */
#define PKI_BENCH_RESULT_OLDEST offsetof(pk_bench_result, launch)

/* Moves a whole one to a caller's, as much of it as that has room for by its size. */
void pki_bench_result_copy_out(pk_bench_result *given, pk_bench_result *whole);
