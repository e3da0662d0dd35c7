/* lib/session/collector/toll.h - what perfkit itself takes of the processors, while the session
 * runs.
 *
 * Recording is measured once and multiplied out by who reports it (measure/overhead.h): reading a
 * clock twice more at each region would cost more than the region. All that is done between the
 * rings and the file is measured, in CPU time of the threads that do it.
 */
#pragma once

#include "session/session.h"

/* CPU time of the calling thread, ns: before work that pki_toll_of_caller counts. */
uint64_t pki_toll_begin(void);

/* All below: under the drain lock. */

/* A thread of the program has done the collector's work since then. */
void pki_toll_of_caller(pki_session *session, uint64_t since);

/* Since then the thread has written captures. */
void pki_toll_of_captures(pki_session *session, uint64_t since);

/* The collector, at the end of a round. */
void pki_toll_of_collector(pki_session *session);

/* As of now. */
pki_toll pki_toll_now(const pki_session *session);

/* The same, into the arena. */
void pki_toll_publish(pki_session *session);
