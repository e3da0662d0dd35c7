/* lib/core/ready.h - how long the thread that makes steps was ready to run and had no processor,
 * outside calls that wait for other ranks.
 *
 * Where several ranks share a processor, some of a rank's own time is others' doing: it is known
 * from the scheduler alone, and only where it is read at the borders between the program's own time
 * and its waiting, since a rank that polls for a message is ready, too. libpk_mpi announces the
 * borders (pk_comm_border_on_). Where nobody does, nothing is read, and a step makes no system
 * call.
 *
 * A border less than PKI_READY_LEAST after the last check is left to the next one. A check is a
 * getrusage (0.3 us). If the thread has been switched out since the last one, its clock says how
 * long it was off its processor, of its own time and of waiting. How much of that it was ready, and
 * did not sleep, is in the scheduler's account (5 us), which is read again no sooner than 100 times
 * as long as that took. So reads take 1 % at most. Where the system counts no switches, the clock
 * is read at each check. Without an account it is tried again after a second, and steps until then
 * have no figure.
 *
 * The error is in favour of the rank: of the time between two reads in which it was ready, as much
 * is its own as it was off its processor in its own time. That is too much by what it slept in its
 * own time, at most, if it was ready for so long while it waited (both within the half of a
 * millisecond that a read is put off by, or in the stretch before it); and by 50 us at a check that
 * borders before it were left to. What was put off in one step may be counted in the next; what is
 * put off at the last step's end is not counted.
 */
#pragma once

#include "core/overhead.h"
#include "core/seats.h"
#include "core/thread.h"

/* All zero: no border has been announced. Used by one thread at a time, which holds `busy`. */
typedef struct pki_ready {
    uint32_t busy;
    const pki_thread *of; /* whose borders these are; NULL: nobody's */
    bool failed;          /* there was no account when it was read */
    bool unread;          /* it may have changed since */
    uint64_t border;      /* ticks, the last one */
    uint64_t checked;     /* ticks, the last check... */
    uint64_t mine;        /* ...and ns of its own time since then, up to the border */
    uint64_t switches;    /* how often it had been switched out... */
    uint64_t asked;       /* ...when that had last changed, ticks... */
    uint64_t running;     /* ...and ns on a processor until then */
    uint64_t read;        /* ticks, when the account was read... */
    uint64_t pause;       /* ...and ns that it is not read again for; as of then... */
    uint64_t waited;      /* ...ns that it was ready without a processor... */
    uint64_t off;         /* ...and since then off it, in its own time */
    uint64_t own;         /* ready in its own time, in the running step */
    uint32_t processor;   /* + 1: where it was at the last border or step; 0: not known */
    pki_seats seats;      /* of its own time, in the running step */
} pki_ready;

/* Within pki_enter and pki_leave. The thread goes on to wait for others, or comes from there. */
void pki_ready_border(pki_ready *r, const pki_thread *t, bool to_wait);

/* Ends a step of this thread: what of it was so, ns; PKI_READY_UNKNOWN where nobody announces
 * borders. seat: where it was. */
uint64_t pki_ready_step(pki_ready *r, const pki_thread *t, pki_seat *seat);

/* Its block is to be another thread's. Beside any of the above, of other threads. */
void pki_ready_forget(pki_ready *r, const pki_thread *t);
