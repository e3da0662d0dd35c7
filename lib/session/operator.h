/* lib/session/operator.h - what whoever starts the program wants, beside what its code asks for:
 * PK_OFF, PK_OVERRIDE, and a word where a file that only the environment asks for does not come. */
#pragma once

#include "session/session.h"

/* PK_OFF=1: no session, and every control call answers PK_OK, as with -DPK_DISABLE. PK_EINVAL if it
 * or PK_OVERRIDE is neither 0 nor 1. */
pk_status pki_operator_read(bool *off);

/* PK_OVERRIDE=1: what the environment sets is not what the code has set. */
void pki_operator_override(pk_options *options);

/* Does the environment and not the code ask for the trace or the report? Then no code need look at
 * the status of a start or stop. */
bool pki_operator_asks(const pk_options *options);

/* One line on stderr, prefix and pk_error_message(), about a status that is not PK_OK. Not if
 * PK_LOG=stderr has said it or PK_LOG=off forbids it; of the ranks of a host one says it. */
void pki_operator_tell(const char *prefix, pk_status status);
