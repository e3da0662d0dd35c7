/* lib/backend/cupti/control.h - taking CUPTI, switching it on, off, and giving it back.
 *
 * In the order that the library wants: driver, library, subscription (which is the lock against
 * other tools), attributes, buffers, clock, kinds; and back: kinds, a forced flush, subscription.
 * cuptiFinalize is never called. Whatever fails undoes what came before it.
 *
 * Threads: one at a time, and with no lock that a callback takes (there is none): every call here
 * may wait for CUPTI's threads.
 */
#pragma once

#include "backend/cupti/api.h"

/* True: it records. If not, why not. graph_nodes: each kernel of a graph. */
bool pki_cupti_open(bool graph_nodes, char *reason, size_t size);

/* Records what is allocated and freed, whether or not it records the rest, until it is turned off:
 * before pki_cupti_open, behind pki_cupti_close. */
bool pki_cupti_memory_on(char *reason, size_t size);
void pki_cupti_memory_off(void);

/* Records nothing more. What it has is still to be flushed. */
void pki_cupti_quiet(void);

/* Records again, after pki_cupti_quiet. False: why not, and it is closed. */
bool pki_cupti_resume(bool graph_nodes, char *reason, size_t size);

/* Gives back all that is complete; forced: all. */
void pki_cupti_flush(bool forced);

/* Quiet, a forced flush, and anybody may have it, unless what is allocated is recorded. */
void pki_cupti_close(void);

/* Records that CUPTI says it has dropped since the last forgetting, however often it was opened.
 * Any thread. */
uint64_t pki_cupti_dropped(void);
void pki_cupti_forget_dropped(void);

/* In the child of a fork: nothing is open. A child of a process that had CUPTI open cannot. */
void pki_cupti_control_after_fork(void);
