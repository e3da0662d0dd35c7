/* lib/session/memory.h - how much memory the process takes, step by step.
 *
 * The collector reads what the kernel says of the process (/proc/self/statm, getrusage) and what
 * libpk_alloc counts, if that is loaded: some microseconds, ten times a second at most. The
 * program's threads pay nothing for it here.
 */
#pragma once

#include "session/session.h"

/* Finds libpk_alloc. Under the control lock. */
void pki_memory_start(pki_session *session);

/* Looks, if it is time to or `now`. Under the drain lock. */
void pki_memory_round(pki_session *session, bool now);

/* Under the drain lock. False without memory. */
bool pki_memory_fill(pki_memory_summary *memory);

void pki_memory_after_fork(void);
