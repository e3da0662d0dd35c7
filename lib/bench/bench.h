/* lib/bench/bench.h - the engine that pk_bench, pk_bench_main and pk_bench_open_ share, and the
 * lock that lets one of them measure at a time. */
#pragma once

#include "bench/case.h"

/* On the system's clock; its overhead is measured at the first call. */
const pki_bench_engine *pki_bench_engine_get(void);

/* PK_EBUSY from within a benchmark, which would wait for itself. */
pk_status pki_bench_lock(void);
void pki_bench_unlock(void);
