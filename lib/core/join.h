/* lib/core/join.h - how a thread gets its block, and gives it back. */
#pragma once

#include "core/registry.h"

/* Once per process, before the first session. False: the process has no thread key left. */
bool pki_join_prepare(void);

/* In the child of a fork: its one thread has no block. */
void pki_join_after_fork(void);

/* This thread's block in the running session; NULL if the session is over or has no memory for one:
 * the caller counts what that costs (pki_registry_refuse_region, pki_registry_refuse_point). Within
 * pki_enter and pki_leave. */
pki_thread *pki_thread_join(void);

/* Names another thread that has recorded in the running session; false if there is none with that
 * system's id. */
bool pki_thread_name_of(uint32_t tid, const char *name);
