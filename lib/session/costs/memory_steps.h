/* lib/session/costs/memory_steps.h - memory at the ends of steps, as counters (costs=memory).
 *
 * The thread that ends a step reads how much is resident and, with libpk_alloc, how much is
 * allocated, and records both as of the step's end: "memory.resident", "memory.allocated". No more
 * often than once in PKI_MEMORY_STEP_LEAST: a reading is three system calls, some microseconds. So
 * each step that is longer has its own, and of shorter ones some have. What it takes is in the
 * account of perfkit's own time.
 */
#pragma once

#include "alloc/interface.h"
#include "session/session.h"

#define PKI_MEMORY_STEP_LEAST 1000000u /* ns */

/* alloc: NULL without libpk_alloc. Does nothing where costs=memory is not asked for. */
void pki_memory_steps_begin(pki_session *session, const pki_alloc_interface *alloc);

/* Are ends of steps told? */
bool pki_memory_steps_on(void);

/* So much of the program's threads' time has gone into it, ns, about. */
uint64_t pki_memory_steps_spent(void);

void pki_memory_steps_forget(void);
