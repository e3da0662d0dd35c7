/* lib/session/costs/memory.h - how much memory the process takes, step by step */
#pragma once

#include "alloc/interface.h"
#include "session/session.h"

/* ---- memory at the ends of steps, as counters (costs=memory) ---- */

/* The thread that ends a step reads how much is resident and, with libpk_alloc, how much is
 * allocated, and records both as of the step's end: "memory.resident", "memory.allocated". No more
 * often than once in PKI_MEMORY_STEP_LEAST: a reading is three system calls, some microseconds. So
 * each step that is longer has its own, and of shorter ones some have. What it takes is in the
 * account of perfkit's own time. */

#define PKI_MEMORY_STEP_LEAST 1000000u /* ns */

/* So much of the program's threads' time has gone into it, ns, about. */
uint64_t pki_memory_steps_spent(void);

/* ---- how much memory the process takes, step by step ---- */

/* The collector reads what the kernel says of the process (/proc/self/statm, getrusage) and what
 * libpk_alloc counts, if that is loaded: some microseconds, ten times a second at most. The
 * program's threads pay nothing for it here (memory_steps.h has what costs=memory adds). */

/* As of the last look. Under the drain lock. */
pki_memory_sum pki_memory_so_far(void);

/* Bytes that are allocated now. False: libpk_alloc is not there. */
bool pki_memory_allocated(uint64_t *bytes);
