/* lib/core/ready.h - how long the thread that makes steps was ready to run and had no processor,
 * outside calls that wait for other ranks.
 *
 * Ranks that share a processor take time from each other. A rank must not be called late for that.
 * The scheduler knows how long a thread was ready; but a rank that polls for a message is ready,
 * too. So it is read at the borders between own time and waiting. libpk_mpi announces these
 * (pk_comm_border_on_). Without it nothing is read, and a step makes no system call.
 *
 *     own time   ====|          |======|     |=======
 *     waiting        |~~~~~~~~~~|      |~~~~~|
 *     border         ^          ^      ^     ^      checked if the last check is 50 us ago or more
 *
 * A check asks three things, each only if the one before calls for it:
 *
 *     getrusage           0.3 us   was the thread switched out? If not, that is all
 *     its CPU clock                how long was it off its processor, in own time and in waiting?
 *     schedstat           5 us     how much of that was it ready? At most 1 % of the time goes here
 *
 * Where the system counts no switches, the CPU clock is read at each check. Without schedstat it is
 * tried again after a second; steps until then have no figure.
 *
 * The error favours the rank. Of the time in which it was ready, as much counts as its own as it
 * was off its processor in own time. That is too much by what it slept in own time, at most, while
 * it was ready as it waited, both within one read's distance; and by 50 us at a check that skipped
 * borders. What is put off in one step may count in the next; at the last step's end it does not
 * count.
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
    uint64_t own;         /* ready in its own time, in the running step... */
    uint64_t away;        /* ...and off its processor in it, for whatever reason */
    uint32_t processor;   /* + 1: where it was at the last border or step; 0: not known */
    pki_seats seats;      /* of its own time, in the running step */
} pki_ready;

/* Within pki_enter and pki_leave. The thread goes on to wait for others, or comes from there. */
void pki_ready_border(pki_ready *r, const pki_thread *t, bool to_wait);
