/* lib/base/log.h - what perfkit has to say, to whoever asked to hear it. Silent by default. */
#pragma once

#include <pk/session.h>

#include "base/compiler.h"

/* Where messages up to level go from now on; NULL for nowhere. */
void pki_log_to(pk_log_function *function, void *user, pk_log_level level);

/* A pk_log_function that writes "perfkit: ..." to stderr. */
void pki_log_to_stderr(void *user, pk_log_level level, const char *message);

void pki_log(pk_log_level level, const char *format, ...) PKI_PRINTF(2, 3);

/* In the child of a fork: the lock may have been held by a thread that is not here. */
void pki_log_after_fork(void);
