/* lib/core/join.h - how a thread gets its block, and gives it back. */
#ifndef PKI_CORE_JOIN_H
#define PKI_CORE_JOIN_H

#include "core/registry.h"

/* Once per process, before the first session. False: the process has no thread key left. */
bool pki_join_prepare(void);

/* In the child of a fork: its one thread has no block. */
void pki_join_after_fork(void);

/* Fills in what a block needs before it is anybody's. ring_bytes a multiple of a record's. */
void pki_block_init(pki_thread *t, pki_record *ring, uint32_t ring_bytes, uint32_t monotonic);

/* Names another thread that has recorded in the running session; false if there is none with that
 * system's id. */
bool pki_thread_name_of(uint32_t tid, const char *name);

/* Has the thread a block, of whatever session? */
bool pki_thread_is_joined(const pki_thread *t);

/* This thread's block, if its session goes on. A thread without one has no open regions: if there
 * was a begin, it has been counted as refused. */
pki_thread *pki_thread_joined(void);

#endif
