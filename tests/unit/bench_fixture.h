/* tests/unit/bench_fixture.h - a program's results that are always the same: every kind of row. */
#ifndef BENCH_FIXTURE_H
#define BENCH_FIXTURE_H

#include "bench/forms/document.h"

/* Two repetitions of a steady benchmark with parameters, a noisy one with everything that can be
 * counted and a hostile name, a skipped and a failed one. The caller finishes it. */
void fixture_bench(pki_bench_document *document);
void fixture_bench_finish(pki_bench_document *document);

#endif
