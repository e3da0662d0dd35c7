/* pk/session.h - start, flush, stop, and what perfkit says about itself.
 *
 *     pk_start(pk_options(.trace_path = "run-%r.json", .report_path = "-"));
 *     ... the program ...
 *     pk_stop();
 *
 * A program that calls pk_start(NULL) gets the same from its environment:
 *
 *     PK_TRACE_PATH=run-%r.json PK_REPORT_PATH=- ./program
 *
 * The options are in pk/options.h.
 *
 * Threads: any thread may make every call; the calls take one lock among themselves. Threads that
 *          record are never stopped or waited for.
 * Failure: a status, and a sentence in pk_error_message(). A pk_start that fails has started
 *          nothing and leaves nothing behind. After pk_start, errors with files are counted, logged
 *          and returned by the next pk_flush or pk_stop; the program goes on. No call ends the
 *          process, installs a signal handler, changes errno, or prints unless asked to. A program
 *          whose work does not depend on its profile leaves the status alone: a full disk must not
 *          make a good run look like a failed one.
 * Cost:    pk_start takes about 2 ms (1 ms of it calibrates the clock). A session has one thread,
 *          which wakes twice to ten times a second, by how much is recorded and who reads files
 *          meanwhile, when a thread fills a quarter of its ring, and every 10 ms with CUDA or NCCL
 *          in use; and a second one, which wakes every 100 ms, where GPUs are monitored through
 *          NVML; hang_seconds adds one that wakes twice a second. pk_flush and pk_stop wait for the
 *          disk, and for a GPU driver's call that does not come back 5 s: then they go on without
 *          it, pk_backend_status and the report say what is left out, and no session has that
 *          backend before the call has come back.
 * Stack:   pk_start, pk_flush and pk_stop need 64 KiB at most, plus what a log function needs. The
 *          calls that record fit PTHREAD_STACK_MIN.
 * Signals: not for handlers, except that a handler may call exit(). A call made by a handler that
 *          has interrupted another perfkit call on the same thread returns PK_EBUSY.
 * Exit:    a session that is still open at exit() is stopped there, by perfkit's own thread; so is
 *          one that an atexit() function has opened. The session is left as after a kill if a
 *          handler calls exit() during a perfkit call, or if there is no progress for 10 s. After a
 *          kill, `pk recover` completes the trace from the arena file beside it.
 * Fork:    the child is off until it calls pk_start itself; the parent goes on.
 */
#ifndef PK_SESSION_H
#define PK_SESSION_H

#include <pk/options.h>
#include <pk/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Begins a session. NULL: environment and defaults. PK_EBUSY if a session is open, even if another
 * copy of perfkit in this process has opened it (two libraries that are both linked with libpk.a).
 * Best called before the program creates other threads: pk_start may set an environment variable
 * through which NCCL or NVTX finds it (docs/gpu.md and docs/nccl.md say which and when, and how to
 * avoid that). */
PK_API pk_status pk_start(const pk_options *options);

/* When it returns, everything recorded before the call is in the trace file. PK_ENOSPC: the disk is
 * full; perfkit tries again about every 10 ms. PK_EIO, here and from pk_stop: for example, the
 * trace was deleted or replaced by another file, and its events are lost. Writing to a trace that
 * was only renamed continues. Events that are missing count as unwritten. */
PK_API pk_status pk_flush(void);

/* Ends the session: regions that are still open are closed and marked so, and everything is
 * written, the report included. Statistics stay readable until the next pk_start. The status is
 * that of the first failure while writing; PK_ENOMEM or PK_ENOSPC also if there was no room to
 * record anything. PK_EOFF if no session is open. */
PK_API pk_status pk_stop(void);

/* Makes a trace of what the history holds and of so many further steps, the current one being the
 * first; 0: of what it holds now, the current step included. A thread of perfkit's own writes it
 * when the last of these steps has ended. reason: at most 95 bytes, copied; may be NULL. Any
 * thread; the call does not block. PK_EOFF without a session or a history; PK_EBUSY if four such
 * calls already wait for the collector's next round. Whether the hour's budget has room for it is
 * seen in the log and by the files. */
PK_API pk_status pk_capture(const char *reason, uint32_t steps);

/* Record accounting. With every region closed and after pk_stop, recorded + dropped == begun. */
typedef struct pk_counts {
    uint32_t size;           /* sizeof(pk_counts); pk_get_counts(...) sets it */
    uint32_t threads;        /* that have recorded, ever */
    uint64_t begun;          /* regions begun while perfkit was on */
    uint64_t recorded;       /* regions closed and taken by the collector */
    uint64_t written;        /* events in the trace: regions, steps, counters, instants */
    uint64_t dropped;        /* regions begun but not recorded: ring full, too deep, no memory */
    uint64_t unbalanced;     /* closed by another's end, a thread's exit, pk_stop; recorded */
    uint64_t too_deep;       /* begun below 64 open ones; included in dropped */
    uint64_t stray_ends;     /* ends without a begin */
    uint64_t points;         /* steps, counter values and instants recorded */
    uint64_t points_dropped; /* likewise, but dropped: ring full, no memory */
    uint64_t unwritten;      /* recorded, but kept out of the file by the disk or trace_max_bytes */
    uint64_t regions;        /* different names */
    uint64_t steps;          /* closed */
    uint64_t memory_bytes;   /* recording memory in use */
    uint64_t trace_bytes;    /* trace text written so far (before compression) */
    uint64_t other_starts;   /* pk_starts of other copies of perfkit in this process, refused */
    uint64_t not_finite;     /* counter values that were infinite or NaN; not recorded */
    uint64_t untimed;        /* of recorded: counted and not timed (overhead_max) */
    uint64_t untraced;       /* recorded and kept out of the trace for overhead_max */
} pk_counts;

/* During a session and after it. PK_EOFF if there was none. PK_EINVAL if size is 0 or too large. A
 * smaller size is filled in as far as it goes. */
PK_API pk_status pk_get_counts(pk_counts *counts);

typedef struct pk_backend_info {
    uint32_t size;    /* sizeof(pk_backend_info); pk_backend_status(...) sets it */
    uint32_t live;    /* 1: recording (or ready to, before pk_start) */
    char version[32]; /* of the library behind it; "" if unknown */
    char reason[192]; /* why it is not live, or what it does */
} pk_backend_info;

/* name: "cuda", "cupti", "nvtx", "nccl" or "nvml"; PK_ENOENT for any other. */
PK_API pk_status pk_backend_status(const char *name, pk_backend_info *info);

/* Names the calling thread in trace and report, in this session and those that follow; it may come
 * before pk_start. Copied, at most 63 bytes. Without it the thread has the name that
 * pthread_setname_np gave it. Allocates. */
PK_API void pk_thread_set_name(const char *name);

/* ---- below: how it is done ---- */

#define pk_get_counts(counts) (pk_get_counts)(pk_counts_sized_(counts))

static inline pk_counts *pk_counts_sized_(pk_counts *counts)
{
    if (counts)
        counts->size = sizeof *counts;
    return counts;
}

#define pk_backend_status(name, info) (pk_backend_status)((name), pk_backend_info_sized_(info))

static inline pk_backend_info *pk_backend_info_sized_(pk_backend_info *info)
{
    if (info)
        info->size = sizeof *info;
    return info;
}

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_SESSION_
#include <pk/disable.h>
#endif
#endif
