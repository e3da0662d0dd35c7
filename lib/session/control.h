/* lib/session/control.h - pk/session.h: start, flush, stop, counts; what whoever starts the program
 * wants */
#pragma once

#include "session/session.h"

/* ---- what whoever starts the program wants, beside what its code asks for ---- */

/* PK_OFF, PK_OVERRIDE, and a word where a file that only the environment asks for does not come. */

/* PK_OVERRIDE=1: what the environment sets is not what the code has set. */
bool pki_operator_overrides(void);

/* Then members that have a variable in it are set to nothing. */
void pki_operator_override(pk_options *options);

/* ---- from an open session to its reports ---- */

/* At exit() nobody is waited for any longer who does nothing: the arena then stays for pk recover.
 */
#define PKI_EXIT_PATIENCE_NS 10000000000u
