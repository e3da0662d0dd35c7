/* lib/core/inside.h - is this thread within a call of ours that waits for locks?
 *
 * A signal handler that interrupts such a call, and makes another one or ends the process, must not
 * wait for what the thread below it holds: that would be for ever. So control calls, and those that
 * read statistics, mark their thread; within the mark, or amid a slow path (core/thread.h), they
 * answer PK_EBUSY, and what is done at exit() is left to `pk recover`.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <pk/status.h>

/* False: it is already. */
bool pki_inside_enter(void);
void pki_inside_leave(void);

/* What a control call answers that finds itself inside another one. Takes no lock. */
pk_status pki_fail_inside(void);

/* Takes the lock unless that takes longer than so many ns. */
bool pki_lock_within(pthread_mutex_t *mutex, uint64_t ns);
