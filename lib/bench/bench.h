/* lib/bench/bench.h - the engine that pk_bench, pk_bench_main and pk_bench_open_ share */
#pragma once

#include <pk/status.h>

#include "base/compiler.h"
#include "bench/case.h"

/* ---- a status and the sentence that belongs to it ---- */

/* The message is libpk's, which a shared libpkbench must not have a copy of: so it goes through
 * pk_fail_, not through base/log.h. */

/* Sets pk_error_message() of this thread, logs it as an error, and returns status. */
pk_status pki_bench_fail(pk_status status, const char *format, ...) PKI_PRINTF(2, 3);

/* ---- bench ---- */

/* The engine that pk_bench, pk_bench_main and pk_bench_open_ share, and the
 * lock that lets one of them measure at a time. */

/* On the system's clock; its overhead is measured at the first call. */
const pki_bench_engine *pki_bench_engine_get(void);

/* PK_EBUSY from within a benchmark, which would wait for itself. */
pk_status pki_bench_lock(void);
void pki_bench_unlock(void);
