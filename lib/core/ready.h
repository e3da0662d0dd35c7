/* lib/core/ready.h - how long the thread that makes steps was ready to run and had no processor,
 * outside calls that wait for other ranks.
 *
 * Where several ranks share a processor, some of a rank's own time is others' doing: it is known
 * from the scheduler alone, and only where it is read at the borders between the program's own time
 * and its waiting, since a rank that polls for a message is ready, too. libpk_mpi tells the borders
 * (pk_comm_border_on_). Where nobody does, nothing is read, and a step makes no system call.
 *
 * A border less than PKI_READY_LEAST after the last look is left to the next one. A look is a
 * getrusage (0.3 us); if the thread has been switched out since the last one, the scheduler's
 * account is read, too (5 us): without a switch it has not changed. (How long the thread ran, which
 * the same call tells, is brought up to date at the timer's ticks only, so it misses up to 4 ms.
 * It counts where switches are not told.) Where borders between two looks were left out, as much of
 * the time without a processor is the rank's own as can be: it had that much own time there, which
 * is 50 us too much at most, in favour of the rank.
 */
#pragma once

#include "core/overhead.h"
#include "core/thread.h"

/* All zero: no border has been told. Used by one thread at a time, which holds `busy`. */
typedef struct pki_ready {
    uint32_t busy;
    const pki_thread *of; /* whose borders these are */
    uint64_t border;      /* ticks, the last one */
    uint64_t looked;      /* ticks, the last look... */
    uint64_t mine;        /* ...and ns of its own time since then, up to the border */
    uint64_t switches;    /* how often it had been switched out then */
    uint64_t read;        /* ticks, when the account was read; as of then... */
    uint64_t running;     /* ...ns on a processor */
    uint64_t waited;      /* ...ns that it was ready without one */
    uint64_t own;         /* of it, in the running step and outside calls that wait */
} pki_ready;

/* Within pki_enter and pki_leave. The thread goes on to wait for others, or comes from there. */
void pki_ready_border(pki_ready *r, const pki_thread *t, bool to_wait);

/* Ends a step of this thread: what of it was so, ns; PKI_READY_NOT_TOLD where nobody tells borders.
 */
uint64_t pki_ready_step(pki_ready *r, const pki_thread *t);
