/* lib/backend/cupti/switch.h - when CUPTI is on: all the time, for a range of steps, or as captures
 * want it, any number of times. What is allocated (costs=memory) is recorded all the time, whether
 * or not the rest is asked for.
 *
 * Threads: start, then flushes of any thread, one of which acts at a time; they may wait for
 * CUPTI's threads, so no lock is held that a callback or a recording thread takes. What is asked:
 * any.
 */
#pragma once

#include <stddef.h>

#include "session/backend.h"

/* listed: by name among the backends; else it is here for what else is asked for. False: it is not
 * there; pki_cupti_switch_status has the reason. */
bool pki_cupti_switch_start(const pki_config *config, bool listed);
void pki_cupti_switch_flush(pki_flush why);

uint64_t pki_cupti_opened(void); /* when it first began to record, ns of the session; 0: not yet */
uint64_t pki_cupti_complete(void); /* what began before it and has ended has been given back */
bool pki_cupti_is_closed(void);    /* not yet, or between two times that captures want it */

/* The same of what is allocated: since when, and up to when all of it has been given back. */
uint64_t pki_cupti_memory_opened(void);
uint64_t pki_cupti_memory_complete(void);

/* The session's last word of it. */
void pki_cupti_switch_over(const char *why);

/* How it stands, in words. False: it is off. */
bool pki_cupti_switch_status(char *why, size_t size);

void pki_cupti_switch_after_fork(void);
