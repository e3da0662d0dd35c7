/* lib/base/log.h - what went wrong, and whom it is told */
#pragma once

#include <pk/session.h>
#include <pk/status.h>

#include "base/compiler.h"

/* ---- a status and the sentence that belongs to it ---- */

/* Sets pk_error_message() of this thread, logs it as an error, and returns status. */
pk_status pki_fail(pk_status status, const char *format, ...) PKI_PRINTF(2, 3);

/* The same without logging it, hence without a lock. */
pk_status pki_fail_unheard(pk_status status, const char *message);

/* The status that fits a system error of a file or of memory. */
pk_status pki_status_of_errno(int error);

/* ---- what perfkit has to say, to whoever asked to hear it; silent by default ---- */

/* Where messages up to level go from now on; NULL for nowhere. */
void pki_log_to(pk_log_function *function, void *user, pk_log_level level);

/* A pk_log_function that writes "perfkit: ..." to stderr. */
void pki_log_to_stderr(void *user, pk_log_level level, const char *message);

void pki_log(pk_log_level level, const char *format, ...) PKI_PRINTF(2, 3);

/* In the child of a fork: the lock may have been held by a thread that is not here. */
void pki_log_after_fork(void);
