/* lib/session/costs/memory.h - how much memory the process takes, step by step.
 *
 * The collector reads what the kernel says of the process (/proc/self/statm, getrusage) and what
 * libpk_alloc counts, if that is loaded: some microseconds, ten times a second at most. The
 * program's threads pay nothing for it here (memory_steps.h has what costs=memory adds).
 */
#pragma once

#include "session/session.h"

/* As of the last look. Under the drain lock. */
pki_memory_sum pki_memory_so_far(void);

/* Bytes that are allocated now. False: libpk_alloc is not there. */
bool pki_memory_allocated(uint64_t *bytes);
