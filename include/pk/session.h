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
 * Threads: any thread may make every call; the calls take one lock among themselves. Threads that
 *          record are never stopped or waited for.
 * Failure: a status, and a sentence in pk_error_message(). A pk_start that fails has started
 *          nothing and leaves nothing behind. After pk_start, trouble with files is counted, logged
 *          and answered by the next pk_flush or pk_stop; the program goes on. No call ends the
 *          process, installs a signal handler, changes errno, or prints unless asked to.
 * Cost:    pk_start takes about 2 ms (1 ms of it calibrates the clock). A session has one thread,
 *          which wakes four times a second while nothing is recorded, ten times otherwise, when a
 *          thread has filled a quarter of its ring, and about every 10 ms where CUDA or NCCL is
 *          there; and a second one, which wakes every 100 ms, where NVML is asked about GPUs;
 *          hang_seconds adds one that wakes twice a second. pk_flush and pk_stop wait for the disk.
 * Stack:   pk_start, pk_flush and pk_stop need 64 KiB at most, plus what a log function needs. The
 *          calls that record fit PTHREAD_STACK_MIN.
 * Signals: not for handlers, except that a handler may call exit(). A call that a handler makes
 *          amid another one of perfkit's on the same thread answers PK_EBUSY.
 * Exit:    a session that is still open at exit() is stopped there, by perfkit's own thread; so is
 *          one that an atexit() function has opened. The session is left as after a kill if a
 *          handler calls exit() amid a call of perfkit, or if nothing moves for 10 s. After a kill,
 *          `pk recover` completes the trace from the arena file beside it.
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

/* message is one line, without a newline. It is called on the thread that has something to say (a
 * control call's or the collector's) under perfkit's lock, so it must not call perfkit. */
typedef void pk_log_function(void *user, pk_log_level level, const char *message);

/* Zero is every field's default. Each field has an environment variable, PK_ and its name in
 * capitals; a field set here wins. Two variables have no field, since whoever starts the program
 * decides: PK_LOG=stderr, and PK_ENVIRONMENT=off (no machine and command line in reports and
 * captures). Numbers in the environment may end in K, M or G. A malformed value is PK_EINVAL. Names
 * of quantities end in their unit: _records, _bytes, _ms, _steps. */
typedef struct pk_options {
    uint32_t size; /* sizeof(pk_options); pk_options(...) sets it */

    /* Records per thread, a power of two in 64 .. 2^24, 32 bytes each. 0: 65536. */
    uint32_t ring_records;

    /* Where the Chrome trace goes: %r is the rank, %p the pid, %h the host, %% a %. A name ending
     * in .gz is compressed. NULL: no trace. This path and the two below replace an older file. A
     * symbolic link, a device (/dev/stdout, /dev/null), a pipe, a socket or a directory is left as
     * it is, and pk_start answers PK_EACCES. Trace and report get the permissions that the umask
     * leaves of 0666; the arena, which is memory of the running program, gets 0600. If the program
     * closes the file's descriptor (close_range), what comes after counts as unwritten, and
     * pk_flush and pk_stop answer PK_EIO. */
    const char *trace_path;

    /* Where the report goes at pk_stop. "-" is text on stderr, a name ending in .json is JSON, one
     * ending in .rank.json is what `pk job` needs of it, any other is text. The same %-fields.
     * NULL: no report. For a program that was started without a stderr, or has closed it, "-" is
     * nowhere: perfkit does not write to what the program opens as descriptor 2, and pk_stop
     * answers PK_EIO. */
    const char *report_path;

    /* Upper bound of all recording memory, 4 MiB .. 1 TiB; beyond it regions are dropped and
     * counted. 0: 1 GiB. It is reserved at the start and used as threads need it. After
     * mlockall(MCL_FUTURE) only what is used is locked. mlockall(MCL_CURRENT) after pk_start counts
     * all that is reserved, without bringing it in: where RLIMIT_MEMLOCK is small, call it before
     * pk_start, or set a small bound. */
    uint64_t memory_bytes;

    /* "cuda,cupti,nvtx,nccl,nvml": these; "-nvml": all but these; "none". NULL: all that are
     * available, except cupti. */
    const char *backends;

    /* The file that survives a kill. NULL: trace_path with ".arena" appended; memory only if there
     * is no trace or if it goes to a network file system. "none": memory only. */
    const char *arena_path;

    /* "tsc", "cntvct" or "monotonic". NULL: the fastest that is trustworthy here. */
    const char *clock;

    /* Events beyond this size of the trace (uncompressed, all its files) are counted, not written.
     * 0: no bound. */
    uint64_t trace_max_bytes;

    /* A record is in the file after this time at the latest, 10 .. 3600000. 0: 1000. */
    uint32_t flush_ms;

    /* 1: the report lists every thread's regions too. */
    uint32_t report_threads;

    /* How many of the first steps the report keeps apart as warm-up. 0: found from the data. */
    uint32_t warmup_steps;

    /* The number of this process in the job, 0 .. world_size - 1; read only if world_size is set.
     * world_size 0: both come from the launcher's environment (torchrun, Open MPI, PMIx, PMI, PALS,
     * MVAPICH, Flux, JSM, Slurm). */
    int32_t rank;
    int32_t world_size;

    /* A pk_log_level; in the environment "error", "warning", "info" or "debug". 0: warnings and
     * errors. */
    uint32_t log_level;

    /* Where messages go, with log_user as `user`. NULL: nowhere. In the environment PK_LOG=stderr.
     * Failures of control calls are logged too, so a program prints them or logs them, not both. */
    pk_log_function *log;
    void *log_user;

    /* Steps during which CUPTI records kernels, copies and CUDA calls: "100-104" or "100", numbered
     * as in the trace. Turns the cupti backend on for these steps alone. NULL: the whole session,
     * if backends names cupti. */
    const char *cupti_steps;

    /* 1: CUPTI records every kernel of a CUDA graph, not each launch as a whole. More overhead. */
    uint32_t cupti_graph_nodes;

    /* 1: the NVTX ranges and marks of all libraries in the process become regions. Start before the
     * first of them calls NVTX, since a library looks for a listener only then (docs/backends.md).
     */
    uint32_t nvtx_consume;

    /* The path of libpkshim.so. Through it a program with a static perfkit hears of NVTX ranges, if
     * it asks for them (nvtx_consume), and of NCCL's operations (docs/backends.md). NULL: the
     * loader finds it, or it is where it was installed. */
    const char *nvtx_shim;

    /* "off": nothing is put into CUDA graphs while they are captured; what pk_gpu_begin or
     * libpk_nccl would have put there is counted (pk_gpu_counts.kept_out). For programs whose
     * graphs take no event nodes: those launched from the device (pk/gpu.h, "Capture"). "on", NULL:
     * spans in captures are timed by event nodes. */
    const char *gpu_capture;

    /* 1: CUPTI also records which event is recorded and waited for where, as HTA's critical path
     * analysis wants it (PyTorch's enable_cuda_sync_events): waits have their call's correlation
     * and their stream, and stand beside the device's kernels. Tools that take what has a stream
     * for work then count waits for streams as such. More overhead. */
    uint32_t cupti_sync_events;

    /* Upper bound of the history, 1 MiB .. 1 TiB, within memory_bytes; taken piece by piece as it
     * is needed. The oldest whole steps go first. 0: 64 MiB. */
    uint64_t history_bytes;

    /* The flight recorder: so many of the last steps are kept whole in memory, unformatted, up to
     * 65536. 0: none. It costs the collector about 5 ns a region, the threads nothing. With a trace
     * it serves captures only. Without one it is what survives a kill: the arena then is the file
     * "run-%r-history.json.arena" in the working directory, unless arena_path says otherwise, and
     * `pk recover` makes a trace of it. A program without steps keeps what fits. */
    uint32_t history_steps;

    /* How many captures the last hour may have left, at any moment, 1 .. 3600. Within it the worst
     * steps win: a slower one takes the place of the one that was slow least, whose file is
     * removed. perfkit removes no other file. 0: 12. */
    uint32_t captures_per_hour;

    /* The same bound in bytes of files, 1 MiB or more; a capture that does not fit is cut and says
     * so. 0: 256 MiB. */
    uint64_t capture_bytes_per_hour;

    /* Which steps become a trace of their own, from the history; clauses with ';' between:
     *
     *     slow=1.2                  a step that takes more than 1.2 x the median of
     *                               the last 65 like it, and 100 us more; with the
     *                               3 steps before it
     *     slow=1.2,floor:500        and 500 us more
     *     steps=100-104             these; up to 8 such clauses
     *     every=1000                step 1000, 2000, ...
     *     cycle=skip:10,wait:5,warmup:1,active:3,repeat:2
     *                               after 10 steps, twice: 6 steps pass, 3 are
     *                               captured. All but active may be left out;
     *                               repeat 0 is for ever
     *     request                   what `pk capture` asks for
     *     kernels=armed             CUPTI, if `backends` names it, records only where a capture
     *                               is foreseen, from a cycle's warm-up on, and from a slow
     *                               step on, with the next 4 in the same capture. The default
     *                               without a trace; kernels=armed,steps:8 for the next 8
     *     kernels=always            from start to stop: the default with a trace
     *
     * What had begun when the run ends is kept and says that it was cut. Without history_steps the
     * history is of 32 steps, or of as many as a capture needs. NULL: pk_capture alone, with a
     * history. */
    const char *capture;

    /* Where captures go: %s is the number of the first step, the other %-fields as in trace_path;
     * .gz compresses. NULL: trace_path with "-%s" before its ending; without a trace
     * "run-%r-%s.json". */
    const char *capture_path;

    /* Where windows go: figures of a part of the run each, a line of JSON
     * (docs/report-format.md), of which `pk report` makes the report of the run again. The same
     * %-fields; a name ending in .gz is compressed. NULL: none. It replaces an older file. */
    const char *windows_path;

    /* A window ends after so many steps (those whose numbers they divide, so that all ranks'
     * windows end with the same ones), or with the first step that ends so many seconds after its
     * beginning; whichever comes first. 0: not by that; both 0: 60 seconds. Where no step ends,
     * seconds alone decide. A window costs some hundred nanoseconds for each region that had a call
     * in it, on perfkit's own thread or whichever folds what has been recorded; where they would
     * come faster than they can be written, they are longer. */
    uint32_t window_steps;
    uint32_t window_seconds;

    /* Bound of all window files together, 1 MiB and more: the file becomes NAME.1, and so on to
     * NAME.3, whenever it has a quarter of it, and what was NAME.3 goes. 0: 256 MiB. */
    uint64_t windows_max_bytes;

    /* Where the run's figures go for Prometheus: a file of the text format that node exporter's
     * textfile collector reads, if its name ends in .prom; at most 300 series
     * (docs/production.md). The same %-fields; ranks of one host need %r. It is written aside and
     * renamed every metrics_seconds (0: 15), and a last time at pk_stop. NULL: none. */
    const char *metrics_path;
    uint32_t metrics_seconds;

    /* The program hangs if no step and no region has ended for so many seconds, or for 5 times the
     * 99th percentile of the step and of the innermost open region, if that is more. perfkit says
     * so through the log function and in the arena (`pk where` shows it), with where each thread
     * stands; it never ends the program. Regions of kind PK_IO may take as long as they take, and
     * those with a limit so long (pk_region_limit). The watchdog is a thread that wakes twice a
     * second at most. 1 .. 604800; 0: no watchdog. */
    uint32_t hang_seconds;

    /* A command for /bin/sh, run when the program hangs (hang_seconds), with the same %-fields. It
     * is no child that the program could notice: its input is /dev/null, its output the program's,
     * all other descriptors are closed, and nobody waits for it. NULL: none. */
    const char *hang_command;

    /* "none": perfkit has no thread that empties the rings; pk_flush does it, at moments of the
     * program's choice (between steps, say), on the thread that calls it. What finds its ring full
     * meanwhile is dropped and counted (64 Ki records by default); metrics, windows and captures
     * come with the calls. At exit() a thread is made for the end of an open session. "thread",
     * NULL: a thread. */
    const char *collector;

    /* Processors that this thread may use: "3", "0-3,8", as in sched_setaffinity, up to 1023. Where
     * the system does not let it, it stays where it is, which is logged. NULL: those of the thread
     * that calls pk_start. If that is one alone (a launcher has bound the program), the thread has
     * the policy SCHED_BATCH: it does not interrupt what runs there, but takes its share. */
    const char *collector_cpus;

    /* The trace goes into several files of at most so many bytes on the disk, each a whole trace.
     * trace_path names the one that is written; before it would grow beyond that it becomes
     * run.part1.json, the next one run.part2.json ("run.json", "run.json.gz" alike). A region is in
     * the file that was written when it ended. `pk report run.json` reads those of its run that lie
     * beside it. They replace files of these names. 2 MiB or more; 0: one file. */
    uint64_t trace_rotate_bytes;

    /* So many of these files stay, with the one that is written; the oldest are removed. At most
     * 65536. 0: all. */
    uint32_t trace_keep;

    /* The file of what the machine can do, which `pk machine` has made: the report holds regions
     * with bytes and flops (pk_region_add) against it (docs/machine.md). The same %-fields. It is
     * read at pk_stop, if there are such regions; one of another processor is refused, which is
     * logged. NULL: where `pk machine` keeps it, if it is there. "none": none. */
    const char *machine_path;

    /* How much perfkit may take, as a share of the process's CPU time, its own included: 0.01 is
     * one percent, 0.5 the most. What it takes is estimated while the session runs: calls times
     * what one costs here, and the CPU time of its threads. When that nears the bound, the regions
     * that cost most lose their events in the trace, then the times of all but one of n calls, at
     * random distances, n up to 4096; where there is room again they get them back. All calls are
     * counted, and what pk_region_add is told stays exact; times of thinned regions are estimates,
     * and say so, with their error (docs/production.md). Regions of kind PK_COMM and those that
     * hold operations keep all of theirs. Where even that does not hold the bound, it is logged,
     * and in the report. 0: no bound, nothing is thinned. */
    double overhead_max;

    /* The state file of the job's life: every run of the job appends what its time went into
     * (pk/goodput.h), so that `pk job` can say over all restarts what the wall time was good for.
     * It is never replaced; a file of another kind is PK_EINVAL. The same %-fields; without %r the
     * first rank alone writes it. One process at a time: another one waits. A line of some 600
     * bytes every 100 ms to 60 s, a thousandth of the run's length, on perfkit's own thread. NULL:
     * none. */
    const char *goodput_path;

    /* What the run costs beside time, with ',' between: "io": bytes and calls as the kernel counts
     * them (/proc/self/io), rates of devices, checkpoints; "energy": as far as counters can be
     * read; both on perfkit's own thread, whose own I/O is taken off (docs/guide.md). "memory":
     * what CUDA allocates, by region; takes CUPTI for the session (docs/memory.md). "hardware",
     * "software": what processor and kernel count of regions, in as many calls as 1 % of CPU time,
     * or overhead_max / 4, pays for; 4 descriptors a thread (docs/machine.md). NULL: none. */
    const char *costs;

    /* What MFU and HFU are of (docs/machine.md): fp64, fp32, tf32, bf16, fp16, fp8; operations per
     * second, "989.5e12"; both, "bf16:989.5e12". NULL: fp32 of processors, of GPUs none. */
    const char *peak;
    const char *job_path; /* of all ranks' report, by libpk_mpi (docs/mpi.md). "-": stderr */
} pk_options;

/* The options as a pointer to a literal: pk_start(pk_options(.trace_path = "run.json")). For C; in
 * C++ fill in a struct, or see pk.hpp. */
#ifndef __cplusplus
#define pk_options(...) (&(pk_options){.size = (uint32_t)sizeof(struct pk_options), __VA_ARGS__})
#endif

/* Begins a session. NULL: environment and defaults. PK_EBUSY if a session is open, also if another
 * copy of perfkit in this process has opened it (two libraries that are both linked with libpk.a).
 * Best called before the program makes other threads: so that NCCL or NVTX find it, pk_start may
 * set an environment variable (docs/backends.md says which and when, and how to do without). */
PK_API pk_status pk_start(const pk_options *options);

/* When it returns, everything recorded before the call is in the trace file. PK_ENOSPC: the disk is
 * full; perfkit tries again about every 10 ms. PK_EIO, here and from pk_stop: for example, the
 * trace was deleted or replaced by another file, and its events are lost. A trace that was only
 * renamed is written on. What is missing counts as unwritten. */
PK_API pk_status pk_flush(void);

/* Ends the session: regions that are still open are closed and marked so, and everything is
 * written, the report included. Statistics stay readable until the next pk_start. The status is
 * that of the first failure while writing; PK_ENOMEM or PK_ENOSPC also if there was no room to
 * record anything. PK_EOFF if no session is open. */
PK_API pk_status pk_stop(void);

/* Makes a trace of what the history holds and of so many steps more, from the one that runs on; 0:
 * of what it holds now, the step that runs included. It is written by a thread of perfkit's own
 * when the last of them has ended. reason: at most 95 bytes, copied; NULL is fine. Any thread; it
 * waits for nothing. PK_EOFF without a session or a history; PK_EBUSY if four such calls wait for
 * the collector's next round. Whether the hour's budget has room for it shows in the log and in the
 * files that are there. */
PK_API pk_status pk_capture(const char *reason, uint32_t steps);

/* Record accounting. With every region closed and after pk_stop, recorded + dropped == begun. */
typedef struct pk_counts {
    uint32_t size;           /* sizeof(pk_counts), set by the caller */
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
    uint32_t size;    /* sizeof(pk_backend_info), set by the caller */
    uint32_t live;    /* 1: recording (or ready to, before pk_start) */
    char version[32]; /* of the library behind it; "" if unknown */
    char reason[192]; /* in words: why it is not live, or what it does */
} pk_backend_info;

/* name: "cuda", "cupti", "nvtx", "nccl" or "nvml"; PK_ENOENT for any other. */
PK_API pk_status pk_backend_status(const char *name, pk_backend_info *info);

/* Names the calling thread in trace and report; copied, at most 63 bytes. Without it the thread has
 * the name that pthread_setname_np gave it. */
PK_API void pk_thread_name(const char *name);

/* ---- for libpk_mpi and libpk_nccl, which may be preloaded into a program without perfkit ---- */

/* pk_start where only the environment asks for a session, by variable=1. Nobody looks at the status
 * then, so a failure is one line on stderr, from rank 0 of the job as far as options or launcher
 * tell the rank. There is no line if PK_LOG=stderr has said it, or if the program has its own
 * session. */
PK_API pk_status pk_start_asked_(const char *variable, const pk_options *options);

/* "perfkit: SENTENCE" on stderr. rank: of this process; ranks other than 0 say nothing. -1: the
 * rank that the launcher tells. */
PK_API void pk_say_(int32_t rank, const char *sentence);

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_SESSION_
#include <pk/disable.h>
#endif
#endif
