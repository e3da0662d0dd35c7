/* lib/bench/result.h - from a case's samples to figures. */
#ifndef PKI_BENCH_RESULT_H
#define PKI_BENCH_RESULT_H

#include "bench/case.h"

/* Fills all of it but size and moves the samples over: the result's owner frees them. False
 * without memory. */
bool pki_bench_result_fill(pk_bench_result *result, pki_bench_case *c);

#endif
