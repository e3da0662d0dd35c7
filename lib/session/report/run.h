/* lib/session/report/run.h - what a session says about itself. */
#ifndef PKI_SESSION_RUN_H
#define PKI_SESSION_RUN_H

#include "session/session.h"

/* For the trace's head. Under the drain lock. */
void pki_run_describe(const pki_session *session, bool complete, pki_chrome_run *run);

/* All counts of the session so far, or the final ones. Under the drain lock. */
void pki_run_counts(const pki_session *session, pk_counts *counts);

/* What ran, where and when; without its length. False without memory: what there
 * is of it has to be given back. */
bool pki_run_fill(const pki_session *session, pki_run *run);

/* All threads, ended ones last. The fold lock is held. False likewise. */
bool pki_run_threads(const pki_session *session, pki_summary *out);

/* Communicators alone. The fold lock is held. False likewise. */
bool pki_run_comms(pki_summary *out);

/* The whole run in numbers. False without memory. Under the drain lock, after a round. */
bool pki_run_summarise(const pki_session *session, pki_summary *summary);

/* The same of a session that goes on: what devices have not reported yet is not in it. */
bool pki_run_summarise_so_far(const pki_session *session, pki_summary *summary);

/* PK_OK unless the threads found no room for their first block: whoever looks at no counts would
 * take the empty report for a program that did nothing. Of a session that has been stopped. */
pk_status pki_run_recorded_any(const pki_session *session);

const char *pki_clock_name(uint32_t monotonic);

#endif
