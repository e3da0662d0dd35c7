/* lib/session/collector/collect.h - the collector: one thread that empties the rings now and then.
 */
#pragma once

#include "session/session.h"

/* PK_ETHREAD. */
pk_status pki_collect_start(pki_session *session);

/* Waits until the thread has ended, unless it is the caller. */
void pki_collect_stop(pki_session *session);

/* Has the thread do this, and end. False: it is not done, and for so long the thread has done
 * nothing at all. */
bool pki_collect_finish(pki_session *session, void (*job)(pki_session *), uint64_t patience_ns);

/* Compares the clocks if it is time to. Under the drain lock. */
void pki_collect_check_clock(pki_session *session, bool now);

/* By a thread that has left its block: sees to it that others find it free, at once if that takes
 * neither long nor waiting. Threads may follow each other faster than the collector is woken. */
void pki_collect_ended(void);

/* The next round begins within so many nanoseconds, once. By backends, in collect. */
void pki_collect_within(uint64_t ns);

void pki_collect_after_fork(void);
