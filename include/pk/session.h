/* pk/session.h - start, flush, stop, and what perfkit says about itself.
 *
 *     pk_start(pk_options(.trace_path = "run-%r.json", .report_path = "-"));
 *     ... the program ...
 *     pk_stop();
 *
 * For a program that calls pk_start(NULL), the same from outside:
 *
 *     PK_TRACE_PATH=run-%r.json PK_REPORT_PATH=- ./program
 *
 * Threads: every call may be made from any thread; they take one lock among themselves. Threads
 *          that record are never stopped or waited for.
 * Failure: a status, and a sentence in pk_error_message(). A pk_start that fails has started
 *          nothing and left nothing behind. After pk_start, trouble with files is counted, logged
 *          and answered by the next pk_flush or pk_stop, and the program goes on. No call ends the
 *          process, installs a signal handler, changes errno, or prints unless asked to.
 * Cost:    pk_start about 2 ms (1 ms of it clock calibration) and one thread, which wakes about
 *          every 10 ms; a second one, every 100 ms, where NVML is asked about GPUs; pk_flush and
 *          pk_stop as long as the disk takes.
 * Stack:   pk_start, pk_flush and pk_stop need 64 KiB at most, a log function's own on
 *          top; what records fits PTHREAD_STACK_MIN.
 * Signals: not for handlers, but for exit() in one. A call that a handler makes amid another one of
 *          perfkit's on the same thread answers PK_EBUSY.
 * Exit:    a session that is still open at exit() is stopped there, on perfkit's own thread; also one
 *          that a function of atexit() has opened. If exit() is called in a handler amid a call of
 *          perfkit, or nothing has moved for 10 s, the session is left as by a kill. After a kill,
 *          `pk recover` makes the trace whole from the arena file that lies beside it.
 * Fork:    the child is off until it calls pk_start itself; the parent goes on.
 */
#ifndef PK_SESSION_H
#define PK_SESSION_H

#include <pk/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pk_log_level {
    PK_LOG_DEFAULT = 0, /* warnings and errors */
    PK_LOG_ERROR = 1,
    PK_LOG_WARNING = 2,
    PK_LOG_INFO = 3,
    PK_LOG_DEBUG = 4
} pk_log_level;

/* One line without a newline. Called on the thread that has something to say (a control call's, or
 * the collector's), under perfkit's lock: it must not call perfkit. */
typedef void pk_log_function(void *user, pk_log_level level, const char *message);

/* Zero is every field's default. Each field has an environment twin, PK_ and the field's name in
 * capitals; a field that is set here wins. Numbers in the environment may end in K, M or G. A
 * malformed one, from either side, is PK_EINVAL. */
typedef struct pk_options {
    uint32_t size; /* sizeof(pk_options); pk_options(...) sets it */

    /* Records per thread, a power of two in 64 .. 2^24, 32 bytes each. 0: 65536. */
    uint32_t ring_records;

    /* Chrome trace; %r rank, %p pid, %h host, %%. Ending in .gz: compressed. NULL: none.
     * Of this path and the two below: an older file is replaced; a symbolic link, a device
     * (/dev/stdout, /dev/null), a pipe, a socket or a directory is left as it is, and pk_start
     * answers PK_EACCES. Trace and report get the permissions that the umask leaves of 0666, the
     * arena, which is memory of the running program, 0600. If the program closes the descriptor
     * of the file (close_range), what comes after counts as unwritten, and pk_flush and pk_stop
     * answer PK_EIO. */
    const char *trace_path;

    /* Report at stop; "-": text on stderr; ending in .json: JSON; else text. The same %-fields.
     * NULL: none. A program that was started without a stderr, or has closed it, has none: what it
     * opens as descriptor 2 is not written to, and pk_stop answers PK_EIO. */
    const char *report_path;

    /* Upper bound of all recording memory, 4 MiB .. 1 TiB; beyond it regions are dropped and
     * counted. 0: 1 GiB. Reserved at start, used as threads need it. After mlockall(MCL_FUTURE) only
     * what is used is locked. mlockall(MCL_CURRENT) after pk_start counts what is reserved, without
     * bringing it in: where RLIMIT_MEMLOCK is small, call it before, or set a small bound. */
    uint64_t memory_bytes;

    /* "cuda,cupti,nvtx,nccl,nvml": these; "-nvml": all but these; "none". NULL: all that are there
     * except cupti. */
    const char *backends;

    /* The file that survives a kill. NULL: trace_path with ".arena" appended, or memory only
     * without a trace or on a network file system. "none": memory only. */
    const char *arena_path;

    /* "tsc", "cntvct" or "monotonic". NULL: the fastest that is trustworthy here. */
    const char *clock;

    /* Events beyond this size of the trace (uncompressed) are counted, not written. 0: no bound. */
    uint64_t trace_max_bytes;

    /* At most this long until a record is in the file, 10 .. 3600000. 0: 1000. */
    uint32_t flush_ms;

    /* 1: the report lists every thread's regions too. */
    uint32_t report_threads;

    /* So many first steps are told apart from the rest. 0: found from the data. */
    uint32_t warmup_steps;

    /* This process in the job, 0 .. world_size - 1; read only if world_size is set. world_size 0:
     * both from the launcher's environment (torchrun, Open MPI, PMIx, PMI, PALS, MVAPICH, Flux,
     * JSM, Slurm). */
    int32_t rank;
    int32_t world_size;

    /* A pk_log_level; in the environment error, warning, info or debug. 0: warnings and errors. */
    uint32_t log_level;

    /* Where messages go, with log_user; NULL: nowhere. In the environment PK_LOG=stderr. It hears
     * failures of control calls too, so a program prints those or logs them, not both. */
    pk_log_function *log;
    void *log_user;

    /* Steps during which CUPTI records kernels, copies and CUDA calls: "100-104" or "100", by the
     * numbers that steps have in the trace. Turns the cupti backend on for these steps alone. NULL:
     * for the whole session, if backends names cupti. */
    const char *cupti_steps;

    /* 1: CUPTI records every kernel of a CUDA graph, not each launch of it as a whole. Dearer. */
    uint32_t cupti_graph_nodes;

    /* 1: the NVTX ranges and marks of all libraries in the process become regions. Start before the
     * first of them calls NVTX, since each looks for a listener only then (docs/backends.md). */
    uint32_t nvtx_consume;

    /* libpkshim.so, through which a program with a static perfkit hears of NVTX ranges, if it asks
     * for them (nvtx_consume), and of NCCL's operations (docs/backends.md). NULL: found by the
     * loader, or where it was installed. */
    const char *nvtx_shim;
} pk_options;

/* The options as a pointer to a literal: pk_start(pk_options(.trace_path = "run.json")). C only; in
 * C++ fill a struct (or see pk.hpp). */
#ifndef __cplusplus
#define pk_options(...) (&(pk_options){.size = (uint32_t)sizeof(struct pk_options), __VA_ARGS__})
#endif

/* Begins a session. NULL: environment and defaults. PK_EBUSY if one is open; also one of another
 * copy of perfkit in this process, where two libraries are linked with libpk.a each. Best called
 * before the program's other threads are made: to be found by NCCL or NVTX it may set an environment
 * variable (docs/backends.md says which and when, and how to do without). */
PK_API pk_status pk_start(const pk_options *options);

/* Everything recorded before this call is in the trace file when it returns. PK_ENOSPC: the disk is
 * full; it is tried again, about every 10 ms. PK_EIO, here and at the stop: among others, the trace was
 * deleted or replaced by another file, and its events are lost; one that was only renamed is written
 * on. Both are counted as unwritten. */
PK_API pk_status pk_flush(void);

/* Ends the session: regions still open are closed and marked, everything is written, the report
 * too. Statistics stay readable until the next pk_start. The status is the first one that went
 * wrong while writing; PK_ENOMEM or PK_ENOSPC also if there was no room to record anything. PK_EOFF if no session is open. */
PK_API pk_status pk_stop(void);

/* What became of what was recorded. With every region closed and after pk_stop,
 * recorded + dropped == begun. */
typedef struct pk_counts {
    uint32_t size;           /* sizeof(pk_counts), set by the caller */
    uint32_t threads;        /* that have recorded, ever */
    uint64_t begun;          /* regions begun while perfkit was on */
    uint64_t recorded;       /* regions closed and taken by the collector */
    uint64_t written;        /* events in the trace: regions, steps, counters, instants */
    uint64_t dropped;        /* regions begun but not recorded: ring full, too deep, no memory */
    uint64_t unbalanced;     /* closed by another's end, a thread's exit, pk_stop; recorded */
    uint64_t too_deep;       /* begun below 64 open ones; among dropped */
    uint64_t stray_ends;     /* ends without a begin */
    uint64_t points;         /* steps, counter values and instants recorded */
    uint64_t points_dropped; /* of those, dropped: ring full, no memory */
    uint64_t unwritten;      /* recorded, but kept out of the file by the disk or trace_max_bytes */
    uint64_t regions;        /* different names */
    uint64_t steps;          /* closed */
    uint64_t memory_bytes;   /* recording memory in use */
    uint64_t trace_bytes;    /* trace text written so far (before compression) */
    uint64_t other_starts;   /* of another copy of perfkit in this process, refused */
    uint64_t not_finite;     /* counter values that were infinite or no number; not recorded */
} pk_counts;

/* During a session and after it. PK_EOFF if there was none. PK_EINVAL if size is 0 or too large. */
PK_API pk_status pk_get_counts(pk_counts *counts);

typedef struct pk_backend_info {
    uint32_t size;    /* sizeof(pk_backend_info), set by the caller */
    uint32_t live;    /* 1: recording (or ready to, before pk_start) */
    char version[32]; /* of the library behind it; "" if unknown */
    char reason[192]; /* why it is not live, or what it is doing, in words */
} pk_backend_info;

/* name: "cuda", "cupti", "nvtx", "nccl" or "nvml". PK_ENOENT for any other. */
PK_API pk_status pk_backend_status(const char *name, pk_backend_info *info);

/* Names the calling thread in trace and report (copied, at most 63 bytes). Without it: the name
 * that pthread_setname_np gave it. */
PK_API void pk_thread_name(const char *name);

/* ---- for libpk_mpi and libpk_nccl, which a program that knows nothing of perfkit preloads ---- */

/* pk_start where the environment alone asked for a session, by variable=1. Nobody looks at the
 * status then: a failure is one line on stderr, from rank 0 of the job as far as options or launcher
 * tell the rank. None if PK_LOG=stderr has said it, or if the program has a session of its own. */
PK_API pk_status pk_start_asked_(const char *variable, const pk_options *options);

/* "perfkit: SENTENCE" on stderr. rank: of this process, nothing unless 0; -1: as the launcher tells
 * it. */
PK_API void pk_say_(int32_t rank, const char *sentence);

#ifdef __cplusplus
}
#endif
#endif
