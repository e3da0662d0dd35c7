/* pk/job.h - a rank's part of the job's report (pk_options.job_path), for libpk_mpi, which gathers
 * the parts. Programs have no use for it.
 *
 * Threads: any, but others must not touch the texts of a part meanwhile.
 * Failure: what cannot be kept or written is logged, with no other effect.
 * Cost:    a part is made at pk_stop, or by pk_job_take_, which takes as long as a report of this
 *          run.
 */
#ifndef PK_JOB_H
#define PK_JOB_H

#include <pk/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What libpk_mpi has to say, through the session's log function. */
PK_API void pk_log_(pk_log_level level, const char *sentence);

#define PK_JOB_STDERR_ 1       /* report_path is "-" */
#define PK_JOB_STDERR_ASKED_ 2 /* job_path is "-" */

/* This rank's part of the job's report. The texts are perfkit's, until pk_job_leave_. */
typedef struct pk_job_part_ {
    uint32_t size;      /* sizeof(pk_job_part_), set by the caller */
    uint32_t to_stderr; /* a text report of the job is wanted there: PK_JOB_STDERR_..., else 0 */
    const char *path;   /* job_path; "": none, or "-" */
    const char *text;   /* what a report_path ending in .rank.json would have */
    uint64_t bytes;
} pk_job_part_;

/* From here on, when a session stops, its part waits for pk_job_take_. With several ranks its
 * report for stderr waits, too, to be replaced by the job's. 0, the default: both are written as
 * without MPI. */
PK_API void pk_job_hold_(uint32_t ranks);

/* The part that waits, or one of the session that is open. 0: there is none, or none is wanted. */
PK_API uint32_t pk_job_take_(pk_job_part_ *part);

/* reduced: the part is in the job's report and is dropped. Otherwise it is written as without MPI.
 */
PK_API void pk_job_leave_(uint32_t reduced);

/* Writes the part that waits to its file now, in case the process dies before it is reduced. */
PK_API void pk_job_save_(void);

/* Writes a file with this content, or text on stderr (path NULL). Errors are logged, too. */
PK_API pk_status pk_job_write_(const char *path, const char *text, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE /* as pk/disable.h has them for the other headers */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
PK_API void pk_log_(pk_log_level level, const char *sentence) {}
PK_API void pk_job_hold_(uint32_t ranks) {}
PK_API uint32_t pk_job_take_(pk_job_part_ *part)
{
    return 0;
}
PK_API void pk_job_leave_(uint32_t reduced) {}
PK_API void pk_job_save_(void) {}
PK_API pk_status pk_job_write_(const char *path, const char *text, uint64_t bytes)
{
    return PK_OK;
}
#pragma GCC diagnostic pop
#endif
#endif
