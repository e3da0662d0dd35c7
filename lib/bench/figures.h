/* lib/bench/figures.h - what a benchmark counts itself (pk_bench_add_counter), over its samples.
 */
#pragma once

#include "bench/case.h"

/* Takes the figures of the sample that c->runs hold. What finds no room is counted. */
void pki_bench_figures_record(pki_bench_case *c, const pki_bench_sample *sample);

/* The median over the samples, which are rearranged. */
double pki_bench_series_median(pki_bench_series *series);
