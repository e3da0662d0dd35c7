/* lib/core/registry.h - the threads of a session and the arena they record into.
 *
 * A registry lives as long as its session or any thread that has joined it, whichever is longer: a thread
 * may still be on its way out of a recording call when the session ends, and finds valid memory. After the
 * end it is kept for its statistics until the next one starts.
 *
 * One lock for joining, leaving and reading; recording takes none.
 */
#ifndef PKI_CORE_REGISTRY_H
#define PKI_CORE_REGISTRY_H

#include <pk/session.h>
#include <pk/stats.h>

#include "core/arena.h"
#include "core/thread.h"

typedef struct pki_registry {
    pki_arena *arena;
    uint32_t ring_records;
    uint32_t monotonic;
    uint32_t references; /* one for the session, one for each joined thread; under the lock */
    bool over;           /* under the lock */
    uint64_t joined;     /* threads, ever */
    pki_thread *retired; /* statistics of threads that have ended */
    /* the training loop: one thread at a time, holding `stepping` */
    uint32_t stepping;
    pki_thread *stepper; /* who made the last step */
    uint64_t step_start;
    uint64_t step_index;
    uint64_t steps_missed; /* calls while another thread was in one */
} pki_registry;

/* Opens the gate on a new registry over the arena, which it owns from then on, and lets go of the one before; NULL
 * (nothing taken, nothing changed) without memory. */
pki_registry *pki_registry_open(pki_arena *arena, uint32_t ring_records, uint32_t monotonic);

/* Closes the gate and waits until no thread is inside a recording call. Open regions stay on their stacks. */
void pki_registry_close(pki_registry *registry);

/* The running or last registry, NULL if there was none. Under the lock. */
pki_registry *pki_registry_now(void);

void pki_registry_lock(void);
void pki_registry_unlock(void);

/* All below: under the lock. */

uint32_t pki_registry_blocks(const pki_registry *registry);
pki_thread *pki_registry_block(const pki_registry *registry, uint32_t i);

/* A block whose thread has ended and whose ring has been taken: its statistics go to the retired block, it is free again. */
void pki_registry_recycle(pki_registry *registry, pki_thread *t);

/* Adds what block t holds of name id, in ticks, between pki_stats_begin and pki_stats_finish. False if nothing. */
bool pki_thread_stats(const pki_thread *t, uint32_t id, pk_stats *stats);

/* Sums of all blocks' counters, into counts. */
void pki_registry_counts(const pki_registry *registry, pk_counts *counts);

/* Gives up one reference; the last one frees the registry and its arena. */
void pki_registry_drop(pki_registry *registry);

/* Counts a region that found no block. Without the lock. */
void pki_registry_refuse(void);

/* Makes this process's copy of everything here as if nothing had ever been started. In the child of a fork. */
void pki_registry_after_fork(void);

#endif
