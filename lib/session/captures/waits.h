/* lib/session/captures/waits.h - what a thread of the process waits for, as the kernel tells;
 * within the room */
#pragma once

#include "session/session.h"

#define PKI_WAIT_TEXT 160u

typedef struct pki_thread_stat {
    char state, name[32];
    uint64_t ticks;     /* on a processor, in user mode and the kernel... */
    uint64_t in_kernel; /* ...and in the kernel alone */
    uint64_t faults[2]; /* of pages, minor and major ones */
    uint32_t processor, threads;
    bool of_kernel; /* a thread of the kernel's */
} pki_thread_stat;

/* Of a thread by "/proc/self/task" and its id, or of a process by "/proc". */
bool pki_thread_stat_read(const char *folder, uint32_t id, pki_thread_stat *stat);

/* What a thread waited for, from its first to its last look alike. */
typedef struct pki_wait {
    uint64_t from, until; /* ns, CLOCK_MONOTONIC */
    uint64_t off;         /* ns of it, by the thread's account */
    const char *what;     /* a word of events.h */
    const char *call;
    char object[PKI_WAIT_TEXT]; /* a path, a peer; "" if it has no name */
    char holder[80];            /* of a lock: a thread; or who else is at work meanwhile */
    char region[PKI_WAIT_TEXT]; /* that the holder is in */
} pki_wait;

/* What this thread waits for now, but for the moments. False: it runs by now, or that is not told.
 * Some small files; without a lock. */
bool pki_wait_see(const pki_session *session, uint32_t tid, pki_wait *out);
