/* lib/session/live/watchdog.h - says that the program hangs, and where (pk_options.hang_seconds).
 *
 * A thread of its own, since the collector may be what is stuck: in a driver's call, on a full
 * disk, in the program's log function. It wakes twice a second at most and reads the arena's words
 * alone, without a lock, so that nobody who hangs with a lock takes it along; one who asks for a
 * log message takes that lock, last of all.
 */
#pragma once

#include "session/session.h"

/* Nothing if hang_seconds is 0. PK_ETHREAD. */
pk_status pki_watchdog_start(pki_session *s);

/* Waits until the thread has ended. Nothing if there is none. */
void pki_watchdog_stop(void);

void pki_watchdog_after_fork(void);
