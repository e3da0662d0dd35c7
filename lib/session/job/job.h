/* lib/session/job/job.h - this rank's part of the job's file.
 *
 * It is the text that a report_path ending in .rank.json would have. Where libpk_mpi gathers the
 * ranks (pk_job_hold_) it waits in memory for MPI_Finalize, where rank 0 puts all of them into one
 * file. In all other cases it goes into a file of its own, for `pk job`:
 *
 *     job_path.ranks/RANK / 1000/RANK.rank.json
 */
#pragma once

#include <stddef.h>

#include <pk/private.h>

#include "measure/summary.h"
#include "session/session.h"

/* Of a session that stops: its part of the job's file. Under the control lock. */
pk_status pki_job_stop(pki_session *s, const pki_summary *summary);

/* At exit(): what nobody has taken goes where it goes without MPI. It gives no memory back and
 * waits for nobody without end: a handler may have called exit(), amid malloc. */
void pki_job_exit(void);
