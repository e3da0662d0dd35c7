/* lib/core/registry.h - the threads of a session and the arena they record into.
 *
 * A registry lives as long as its session or any thread that has joined it, whichever is longer: a
 * thread may still be on its way out of a recording call when the session ends, and finds valid
 * memory. After the end it is kept for its statistics until the next one starts.
 *
 * One lock for joining, leaving, naming and adding slots; recording takes none.
 */
#pragma once

#include <pk/session.h>

#include "core/arena.h"
#include "core/ready.h"
#include "core/ring.h"
#include "core/thread.h"

/* Called at each end of a step, and of the time between two, which belongs to none: on the thread
 * that makes it, amid pki_enter and pki_leave, one at a time, and perhaps still as the session
 * ends. */
typedef void pki_at_step(pki_thread *t, uint64_t now, bool between);
enum { PKI_AT_STEP_MEMORY, PKI_AT_STEP_IO, PKI_AT_STEPS };

typedef struct pki_registry {
    pki_arena *arena;
    uint32_t ring_records;
    uint32_t monotonic;
    uint32_t serial;     /* of its session in this process, from 1 */
    uint32_t references; /* one for the session, one for each joined thread */
    struct pki_registry *next;
    bool over;
    pki_thread *free;    /* blocks that are nobody's, linked by next_free */
    uint32_t waiting;    /* blocks that ended threads have left and that are not drained */
    void (*drain)(void); /* asks for that when many wait; without locks. May be NULL */
    /* the training loop: one thread at a time, holding `stepping` */
    uint32_t stepping;
    pki_thread *stepper; /* who made the last step */
    uint64_t step_start;
    bool stepped;        /* any thread has ended a step, or the time before the first */
    uint32_t step_kind;  /* of the step that runs: a name's id; 0: the usual one */
    uint64_t step_model; /* the bits of a double: the running step's operations, the model's... */
    uint64_t step_hardware;             /* ...and those done */
    uint64_t first_step;                /* its number */
    uint64_t steps_missed;              /* calls while another thread was in one */
    pki_ready ready;                    /* how long the stepper had no processor */
    pki_at_step *at_step[PKI_AT_STEPS]; /* NULL: nobody */
    pki_spares spares;                  /* what full rings reach into */
} pki_registry;

/* A new registry over the arena, which it owns from then on; lets go of the one before. NULL
 * (nothing taken, nothing changed) without memory. */
pki_registry *pki_registry_open(pki_arena *arena, uint32_t ring_records, uint32_t monotonic);

/* Opens the gate: from here on threads record, so all that they read is as it stays. */
void pki_registry_admit(void);

/* Closes the gate. What a thread was doing at that moment is either recorded or an open region on
 * its stack. */
void pki_registry_close(pki_registry *registry);

/* The same for a session that could not begin: nothing of it stays but what threads hold on to. */
void pki_registry_discard(pki_registry *registry);

void pki_registry_lock(void);

/* Is it to be had in reasonable time? Who exits does not wait longer. */
void pki_registry_unlock(void);

/* Another number for each session. Without the lock. */
uint32_t pki_registry_serial(void);

/* A duration of that thread's session as statistics and traces have it. */
static inline uint64_t pki_thread_ns(const pki_thread *t, uint64_t start, uint64_t ticks)
{
    return pki_clock_span_ns(&t->registry->arena->header->clock, start, ticks);
}

/* Counts what a thread without a block could not record, while a session is open. Without the
 * lock. */
void pki_registry_refuse_region(void);
void pki_registry_refuse_point(void);

/* All below: under the lock. */

/* Whom to ask when blocks have to be drained soon. */
void pki_registry_on_drain(pki_registry *registry, void (*drain)(void));

void pki_registry_on_step(pki_registry *registry, unsigned which, pki_at_step *at_step);

/* The running or last registry, NULL if there was none. */
pki_registry *pki_registry_now(void);

/* A block that an ended thread has left and that holds nothing any more: another thread may have
 * it. Its `lost` table has been merged elsewhere. */
void pki_registry_recycle(pki_registry *registry, pki_thread *t);

/* Sums of all blocks' counters, into counts. */
void pki_registry_counts(const pki_registry *registry, pk_counts *counts);

/* Of spans, over all blocks. */
void pki_registry_span_tally(const pki_registry *registry, pki_span_tally *tally);

/* Adds what one block has counted. */
void pki_thread_counts(const pki_thread *t, pk_counts *counts);

/* A thread's state and turn, the bytes that it has recorded by then, and how many slots of them
 * were no regions (or fewer, if some are being pushed just now). */
typedef struct pki_position {
    uint64_t state, bytes, others, turn;
} pki_position;
pki_position pki_thread_position(const pki_thread *t);

/* What the thread does from here on is not seen any more. Under the fold lock. */
void pki_thread_seal(pki_thread *t);

/* In the child of a fork: as if nothing had ever been started. unlisted: the arena of a session
 * that is being started, if any; it is let go of, too. */
void pki_registry_after_fork(pki_arena *unlisted);

/* The blocks, without the lock: the list only grows. */
uint32_t pki_registry_blocks(const pki_registry *registry);
pki_thread *pki_registry_block(const pki_registry *registry, uint32_t i);

/* The one that lives and has that id of the system's; NULL: none. */
pki_thread *pki_registry_thread_of(const pki_registry *registry, uint32_t tid);
