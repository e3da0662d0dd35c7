/* lib/core/ready.h - how long the thread that makes steps was ready to run and had no processor,
 * outside calls that wait for other ranks.
 *
 * Where several ranks share a processor, some of a rank's own time is others' doing: it is known
 * from the scheduler alone, and only where it is read at the borders between the program's own time
 * and its waiting, since a rank that polls for a message is ready, too. libpk_mpi tells the borders
 * (pk_comm_border_on_). Where nobody does, nothing is read, and a step makes no system call.
 *
 * A border less than PKI_READY_LEAST after the last look is left to the next one. A look is a
 * getrusage (0.3 us); if the thread has been off its processor for as long since the scheduler's
 * account was read, that is read again (5 us). What is less may count on the wrong side of a
 * border: whoever compares ranks allows for so much in a step.
 */
#pragma once

#include "core/overhead.h"
#include "core/thread.h"

/* All zero: no border has been told. Used by one thread at a time, which holds `busy`. */
typedef struct pki_ready {
    uint32_t busy;
    const pki_thread *of; /* whose borders these are */
    uint64_t looked;      /* ticks */
    uint64_t read;        /* ticks, when the account was read; as of then... */
    uint64_t running;     /* ...ns on a processor */
    uint64_t waited;      /* ...ns that it was ready without one */
    uint64_t own;         /* of it, in the running step and outside calls that wait */
} pki_ready;

/* Within pki_enter and pki_leave. The thread goes on to wait for others, or comes from there. */
void pki_ready_border(pki_ready *r, const pki_thread *t, bool to_wait);

/* Ends a step of this thread: what of it was so, ns; 0 where no borders are told. */
uint64_t pki_ready_step(pki_ready *r, const pki_thread *t);
