/* lib/core/frames.h - what a thread has open: how it ends, and who looks at it */
#pragma once

#include <pk/status.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/thread.h"

/* ---- how a region ends, off the fast path ---- */

/* Closes every region above `until`, as unbalanced; by the owner. */
void pki_close_above(pki_thread *t, const pki_frame *until, uint64_t now);

/* The record, and its second slot, of the region that is open at this depth, as if it ended now.
 * Any thread. */
void pki_record_open(const pki_thread *t, unsigned depth, uint64_t now, pki_record record[2]);

/* ---- where the calling thread is, for libraries that count for it ---- */

/* The name's id of the calling thread's innermost open region; 0: none, or nothing is recorded. It
 * neither waits nor allocates, and may be called amid a call of ours. Beyond 64 open regions it is
 * the 64th. */
uint32_t pki_innermost_region(void);

/* ---- is this thread within a call of ours that waits for locks? ---- */

/* A signal handler that interrupts such a call, and makes another one or ends the process, must not
 * wait for what the thread below it holds: that would be for ever. So control calls, and those that
 * read statistics, mark their thread; within the mark, or amid a slow path (core/thread.h), they
 * answer PK_EBUSY, and what is done at exit() is left to `pk recover`. */

/* False: it is already. */
bool pki_inside_enter(void);
void pki_inside_leave(void);

/* What a control call answers that finds itself inside another one. Takes no lock. */
pk_status pki_fail_inside(void);

/* Takes the lock unless that takes longer than so many ns. */
bool pki_lock_within(pthread_mutex_t *mutex, uint64_t ns);

/* ---- what a thread has open, seen by another one of its process ---- */

typedef struct pki_open_frames {
    unsigned depth;
    pki_frame open[PKI_DEPTH_MAX]; /* outermost first; ids without their flags */
} pki_open_frames;

/* Frames that were open together. False: the thread moves too fast for that. */
bool pki_open_frames_of(const pki_thread *t, pki_open_frames *look);
