/* lib/base/error.h - a status and the sentence that belongs to it. */
#pragma once

#include <pk/status.h>

#include "base/compiler.h"

/* Sets pk_error_message() of this thread, logs it as an error, and returns status. */
pk_status pki_fail(pk_status status, const char *format, ...) PKI_PRINTF(2, 3);

/* The same without logging it, hence without a lock. */
pk_status pki_fail_unheard(pk_status status, const char *message);

/* The status that fits a system error of a file or of memory. */
pk_status pki_status_of_errno(int error);
