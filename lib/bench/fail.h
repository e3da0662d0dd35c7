/* lib/bench/fail.h - a status and the sentence that belongs to it. The message is libpk's, which a
 * shared libpkbench must not have a copy of: so it goes through pk_fail_, not through base/error.h.
 */
#pragma once

#include <pk/status.h>

#include "base/compiler.h"

/* Sets pk_error_message() of this thread, logs it as an error, and returns status. */
pk_status pki_bench_fail(pk_status status, const char *format, ...) PKI_PRINTF(2, 3);
