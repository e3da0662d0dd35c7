/* pk/private.h - what libpk does for the libraries beside it (libpk_mpi, libpk_nccl, libpk_attach,
 * libpkbench): messages and starts in perfkit's name, a rank's part of the job's file
 * (pk_options.job_path), and what ranks are compared by while they run (PK_MPI_STRAGGLERS).
 *
 * Not for users: programs have no use for it, and it changes without notice. Its symbols, and those
 * that the inline functions of other headers call, end in "_" and have a version of their own,
 * PK_PRIVATE_1.
 *
 * Threads: any, but others must not touch the texts of a part meanwhile.
 * Failure: what cannot be kept or written is logged, with no other effect.
 * Cost:    a part is made at pk_stop, or by pk_job_take_, which takes as long as a report of this
 *          run.
 */
#ifndef PK_PRIVATE_H
#define PK_PRIVATE_H

#include <pk/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- in perfkit's name ---- */

/* What libpk_mpi has to say, through the session's log function. */
PK_API void pk_log_(pk_log_level level, const char *sentence);

/* Makes this sentence the thread's pk_error_message(), logs it as an error, and returns status. */
PK_API pk_status pk_fail_(pk_status status, const char *sentence);

/* pk_start where only the environment asks for a session, by variable=1: for what may be preloaded
 * into a program without perfkit. No caller looks at the status then, so a failure is printed as
 * one line on stderr, by rank 0 of the job as far as options or launcher give the rank; not if
 * PK_LOG=stderr has printed it, nor if the program has its own session. */
PK_API pk_status pk_start_asked_(const char *variable, const pk_options *options);

/* "perfkit: SENTENCE" on stderr. rank: of this process; ranks other than 0 print nothing. -1: the
 * rank that the launcher gives. */
PK_API void pk_say_(int32_t rank, const char *sentence);

/* The text as it is, on stderr, if that is still there. */
PK_API void pk_show_(const char *text, size_t bytes);

/* Ends the session as exit() does: by perfkit's own thread, from any place of the program, a
 * handler of a signal included. For libpk_attach, which `pk run` preloads. */
PK_API void pk_exit_(void);

/* NULL: there is no region of that number. */
PK_API const char *pk_region_name_(uint32_t id);

/* As the report has it. */
struct pk_comm;
PK_API const char *pk_comm_name_(const struct pk_comm *comm);

/* What libpk_attach took for steps, for the report: turns of a loop, how long they took in all, how
 * many of them were over before it was known, how many percent were alike, what each begins with,
 * and what `pk run
 * --step` takes for the same ("": it has no words for it). */
PK_API void pk_steps_found_(uint64_t turns, int64_t ns, uint64_t before, uint32_t alike,
                            const char *by, const char *step);

/* Before pk_start: looks at late steps may at first take what they would be allowed in so many ms,
 * 10,000 if this is not called. */
PK_API void pk_looks_burst_(uint64_t ms);

/* The number of the first step, while there is none yet. */
PK_API void pk_step_number_(uint64_t number);

/* Hears of ranges that others tell through NVTX, before each begins, on its thread. NULL: nobody.
 */
struct pk_region;
typedef void pk_heard_(const struct pk_region *region, const void *site);
PK_API void pk_nvtx_heard_(pk_heard_ *heard);

/* While a session is open: the thread goes on to wait for other ranks (1), or has done so. */
#ifndef PK_DISABLE
PK_API void pk_comm_border_on_(int to_wait);
#endif

/* ---- a rank's part of the job's file ---- */

/* This rank's part of the job's file. The texts are perfkit's, until pk_job_leave_. */
typedef struct pk_job_part_ {
    uint32_t size;    /* sizeof(pk_job_part_), set by the caller... */
    int32_t rank;     /* ...as is its rank in the job */
    const char *path; /* job_path */
    const char *text; /* as it stands in that file (docs/report-format.md); NULL: no memory */
    uint64_t bytes;
} pk_job_part_;

/* From here on, when a session with a job_path stops, its part waits for pk_job_take_; of so many
 * ranks. 0, the default: it is written to a file of its own, as without MPI. */
PK_API void pk_job_hold_(uint32_t ranks);

/* The part that waits, or one of the session that is open. 0: there is none, or none is wanted. */
PK_API uint32_t pk_job_take_(pk_job_part_ *part);

/* gathered: the part is in the job's file and is dropped. Otherwise it is written as without MPI.
 */
PK_API void pk_job_leave_(uint32_t gathered);

/* Writes the part that waits to its file now, in case the process dies before it is gathered. */
PK_API void pk_job_save_(void);

/* The job's file, by rank 0: begun under another name, then ranks' parts, one behind the other, in
 * any order; whole: it gets its name, else it goes. One at a time. What has failed once is answered
 * by all that follow. */
PK_API pk_status pk_job_file_begin_(const char *path);
PK_API pk_status pk_job_file_add_(const char *text, uint64_t bytes);
PK_API pk_status pk_job_file_end_(uint32_t whole);

/* Adds what a rank has left in its file (pk_job_save_). 0: there is none, or not added. */
PK_API uint32_t pk_job_file_add_left_(int32_t rank);

/* ---- ranks that are late, while they run ---- */

#define PK_JOB_STAGES_ 16

/* A stage of the loop: a region by its name, as far as that has room, and its pk_kind. */
typedef struct pk_job_stage_ {
    uint64_t self; /* ns */
    char name[23]; /* "": there is none here */
    uint8_t kind;
} pk_job_stage_;

/* Some steps of a rank's: those whose numbers, divided by how many they are, are the same. Times in
 * ns. */
typedef struct pk_job_steps_ {
    uint64_t first; /* the number of the first that belongs to them */
    uint64_t steps; /* of the usual kind */
    uint64_t time, items, no_processor;
    uint64_t observed,
        ready; /* of the thread that makes steps, so far: see docs/internals/report-format.md */
    uint32_t ended; /* 1: this rank has come to its end */
    uint32_t told;  /* of so many of them no_processor is known */
    pk_job_stage_ stages[PK_JOB_STAGES_];
    uint64_t running;          /* as `ready` */
    uint32_t processor, on_it; /* where the thread was: see there, `seats` */
} pk_job_steps_;

/* From here on, of sessions that are open or will be, so many steps at a time are kept for
 * pk_job_steps_take_; 0, the default: none. */
PK_API void pk_job_steps_expect_(uint32_t every);

/* The oldest ones that have not been taken; 0: there are none. One thread at a time; takes no lock
 * and no time. */
PK_API uint32_t pk_job_steps_take_(pk_job_steps_ *steps);

#define PK_JOB_LATE_ 8

/* A rank or host that is late. */
typedef struct pk_job_late_ {
    int32_t rank;   /* -1: all ranks of the host */
    uint32_t ranks; /* how many that are */
    double by;      /* 0.05: 5 % longer for the same work */
    char host[64];
    char text[280]; /* in words */
} pk_job_late_;

/* What rank 0 says of all ranks. */
typedef struct pk_job_word_ {
    uint32_t over;        /* 1: it is the last word */
    uint32_t count;       /* of late ones, as they were named; there may be more than have room */
    uint64_t first, last; /* the steps that it is about; both 0: none have been compared yet */
    uint64_t from; /* steps before these are of no use any more: a rank has told of later ones */
    pk_job_late_ late[PK_JOB_LATE_];
} pk_job_word_;

/* It is for the log (of rank 0), the arena, and the clause `straggler` of captures. `rank`: of this
 * process. Takes no time: perfkit's own thread does the rest. One thread at a time. */
PK_API void pk_job_say_(const pk_job_word_ *word, int32_t rank);

/* Called by perfkit's own thread in each of its rounds, holding none of its locks; NULL: nobody
 * is. */
PK_API void pk_job_each_round_(void (*judge)(void));

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE /* as pk/disable.h has them for the other headers */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
PK_API void pk_log_(pk_log_level level, const char *sentence) {}
PK_API pk_status pk_fail_(pk_status status, const char *sentence)
{
    return status;
}
PK_API pk_status pk_start_asked_(const char *variable, const pk_options *options)
{
    return PK_OK;
}
PK_API void pk_say_(int32_t rank, const char *sentence) {}
PK_API void pk_show_(const char *text, size_t bytes) {}
PK_API void pk_exit_(void) {}
PK_API void pk_steps_found_(uint64_t turns, int64_t ns, uint64_t before, uint32_t alike,
                            const char *by, const char *step)
{
}
PK_API void pk_step_number_(uint64_t number) {}
PK_API void pk_looks_burst_(uint64_t ms) {}
PK_API const char *pk_comm_name_(const struct pk_comm *comm)
{
    return "";
}
PK_API const char *pk_region_name_(uint32_t id)
{
    return NULL;
}
PK_API void pk_nvtx_heard_(pk_heard_ *heard) {}
PK_API void pk_job_hold_(uint32_t ranks) {}
PK_API uint32_t pk_job_take_(pk_job_part_ *part)
{
    return 0;
}
PK_API void pk_job_leave_(uint32_t gathered) {}
PK_API void pk_job_save_(void) {}
PK_API pk_status pk_job_file_begin_(const char *path)
{
    return PK_OK;
}
PK_API pk_status pk_job_file_add_(const char *text, uint64_t bytes)
{
    return PK_OK;
}
PK_API pk_status pk_job_file_end_(uint32_t whole)
{
    return PK_OK;
}
PK_API uint32_t pk_job_file_add_left_(int32_t rank)
{
    return 0;
}
PK_API void pk_job_steps_expect_(uint32_t every) {}
PK_API uint32_t pk_job_steps_take_(pk_job_steps_ *steps)
{
    return 0;
}
PK_API void pk_job_say_(const pk_job_word_ *word, int32_t rank) {}
PK_API void pk_job_each_round_(void (*judge)(void)) {}
#pragma GCC diagnostic pop
#endif
#endif
