/* pk/job.h - a rank's part of the job's report (pk_options.job_path), for libpk_mpi, which gathers
 * the parts. Programs have no use for it.
 *
 * Threads: any, but the texts of a part are to be left alone by others.
 * Failure: what cannot be kept or written is logged; nothing else comes of it.
 * Cost:    a part is made at pk_stop, or by pk_job_take_: as long as a report of this run takes.
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
    uint32_t to_stderr; /* of the job there shall be a text on stderr: PK_JOB_STDERR_..., else 0 */
    const char *path;   /* job_path; "": none, or "-" */
    const char *text;   /* what a report_path ending in .rank.json would have */
    uint64_t bytes;
} pk_job_part_;

/* From here on the part of a session that stops waits for pk_job_take_, and with several ranks its
 * report for stderr, too, in whose place the job's comes. 0, the default: they go where they go
 * without MPI. */
PK_API void pk_job_hold_(uint32_t ranks);

/* What waits, or a part of the session that is open. 0: there is none, or nobody wants one. */
PK_API uint32_t pk_job_take_(pk_job_part_ *part);

/* reduced: the part is in the job's report, and is forgotten. Else it goes where it goes without
 * MPI. */
PK_API void pk_job_leave_(uint32_t reduced);

/* The part that waits, in its file already, should the process come to nothing before it is
 * reduced. */
PK_API void pk_job_save_(void);

/* A file with this in it, or text on stderr (path NULL). What goes wrong is logged, too. */
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
