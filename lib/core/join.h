/* lib/core/join.h - how a thread gets its block, and gives it back. */
#ifndef PKI_CORE_JOIN_H
#define PKI_CORE_JOIN_H

#include "core/registry.h"
#include "core/values.h"

/* Once per process, before the first session. False: the process has no thread key left. */
bool pki_join_prepare(void);

/* In the child of a fork: its one thread has no block. */
void pki_join_after_fork(void);

/* A new block with so many ring records (0: statistics only), not yet anybody's. Under the registry's lock. */
pki_thread *pki_block_create(pki_registry *registry, uint32_t ring_records);

/* Has the thread a block, of whatever session? */
bool pki_thread_is_joined(const pki_thread *t);

#endif
