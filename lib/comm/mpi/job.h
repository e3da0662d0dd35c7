/* lib/comm/mpi/job.h - job_path: one file with the reports of all ranks, gathered in MPI_Finalize
 * and written by rank 0, for `pk job`.
 *
 * A rank that stops its session before MPI_Finalize keeps its part until then, since only there are
 * all ranks sure to come by; of a session that is open then the part is what it has so far. Who was
 * asked, by its session's options or by the environment, waits until rank 0 says that all have come
 * (meet.h); then the parts go to rank 0 (gather.h), which writes one behind the other as they come,
 * and tells the others when they are in the file. Who is not there within PK_MPI_PATIENCE costs no
 * more than its own part: each rank that has waited for a second leaves its part in a file, should
 * the job be killed meanwhile, and in the end rank 0 makes the job's file of those that are there.
 * Who was not asked does nothing.
 */
#pragma once

/* Behind MPI_Init; in MPI_Finalize, behind the end of a session of our own. */
void pki_mpi_job_begin(void);
void pki_mpi_job_end(void);

/* In MPI_Abort: nobody gathers anything. */
void pki_mpi_job_abort(void);
