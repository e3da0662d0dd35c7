/* lib/session/captures/capture_job.h - from a wish to a file with a name. */
#pragma once

#include "capture/capture.h"
#include "session/captures/capture_file.h"
#include "session/captures/capture_queue.h"
#include "session/session.h"

/* What it takes to write it without the session. False: the hour has no room, or there is nothing.
 * Under the drain lock. */
bool pki_capture_job_make(pki_session *session, const pki_waiting_capture *waiting,
                          pki_budget *budget, pki_capture_job *job);

/* Writes it, removes what has to make room, and gives it its name. False and errno. Without a lock.
 */
bool pki_capture_job_write(pki_capture_job *job, pki_budget *budget);

/* What captures of this session have in common. */
void pki_capture_job_forget(void);
void pki_capture_job_after_fork(void);

/* So many wishes wait; what has become of the others. */
typedef struct pki_capture_counts {
    uint64_t written, refused, failed, removed;
    unsigned waiting;
} pki_capture_counts;
void pki_capture_counts_log(const pki_capture_counts *counts); /* to the log, if there were any */

/* To the log: what it is, or, with an error, why it is not. */
void pki_capture_job_log(const pki_capture_job *job, int error);
