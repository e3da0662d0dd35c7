/* pk/options.h - what a session is to do: the members of pk_options.
 *
 *     pk_start(pk_options(.trace_path = "run-%r.json", .report_path = "-"));
 *
 * Part of pk/session.h, which includes it; no program needs to.
 *
 * Zero is every field's default. Each field has an environment variable, PK_ and its name in
 * capitals; a field set here wins. Two variables have no field, since whoever starts the program
 * decides: PK_LOG=stderr, and PK_ENVIRONMENT=off (no machine and command line in reports and
 * captures). Numbers in the environment may end in K, M or G. A malformed value is PK_EINVAL. Names
 * of quantities end in their unit: _records, _bytes, _ms, _steps.
 */
#ifndef PK_OPTIONS_H
#define PK_OPTIONS_H

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

typedef struct pk_options {
    uint32_t size; /* sizeof(pk_options); pk_options(...) sets it */

    /* Records per thread, a power of two in 64 .. 2^24, 32 bytes each: so many and no more. 0:
     * 65536, and while whoever takes them out is held up (a busy disk), threads that are fast go on
     * in memory that they share: a sixteenth of memory_bytes at most (64 MiB by default), which is
     * not touched unless a thread fills its records within 100 ms while a trace or a history is
     * kept, or they were found half full; given back after a minute without. */
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
     * what CUDA allocates, by region; takes CUPTI for the session; and as a step ends, what the
     * process has resident, 2 to 4 us once in a millisecond at most (docs/memory.md). "hardware",
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

#ifdef __cplusplus
}
#endif

#endif
