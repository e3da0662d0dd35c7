/* lib/session/report/run.h - what a session says about itself: counts, environment, limits, its
 * report */
#pragma once

#include <pk/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "measure/rows.h"
#include "measure/summary.h"
#include "session/options/config.h"
#include "session/session.h"

/* ---- a summary into the place that report_path names ---- */

/* Can there be a report? Asked at the start: a run that ends without one is too late to learn it.
 */
pk_status pki_report_check(const char *path);

/* Of a session that stops, under the control and the drain lock: its report, its part of the job's
 * file, and where a trace is written the JSON report on one line, for its end, in a block of its
 * own. Nothing is summed up that nobody reads. */
pk_status pki_report_stop(pki_session *session, char **line, size_t *bytes);

/* A report in memory, in a block of its own; NULL without memory. */
typedef int pki_report_function(const pki_summary *summary, FILE *file);
char *pki_report_as(pki_report_function *report, const pki_summary *summary, size_t *bytes);

/* ---- machine and build, for the report and for captures ---- */

/* Read at the end, and by the thread that writes captures: nothing of it is on the way of a
 * recording thread or of the collector. */

/* PK_ENVIRONMENT: 0 or 1. */
pk_status pki_environment_config(pki_config *c);

/* False: no memory. */
bool pki_environment_fill(const pki_config *c, pki_environment *out);

/* ---- the run beside what its machine can do ---- */

/* The option `peak`. */
pk_status pki_limits_config(pki_config *config, pki_config_text peak);

/* That peak, of a process that so many devices work for. It reads files. */
void pki_limits_peak(const pki_config *config, size_t gpus, pki_peak *peak);

/* ---- what a session says about itself ---- */

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
