/* pk/options.h - what a session is to do: the members of pk_options.
 *
 *     pk_start(pk_options(.trace_path = "run-%r.json", .report_path = "-"));
 *
 * Part of pk/session.h, which includes it; no program needs to.
 *
 * Zero is every field's default. Each field has an environment variable, PK_ and its name in
 * capitals; a field set here wins. Some variables have no field, since they are for whoever starts
 * the program: PK_OFF=1 (no session: every call answers PK_OK and does nothing, as with
 * -DPK_DISABLE), PK_OVERRIDE=1 (the environment wins over fields set here), PK_LOG=stderr or off,
 * and PK_ENVIRONMENT=off (reports and captures do not name the machine and the command line). Where
 * the environment and not the code asks for trace or report, a pk_start or pk_stop that fails says
 * so in one line on stderr (of the ranks of a host one does), unless PK_LOG=off. Numbers in the
 * environment may end in K, M or G. A malformed value is PK_EINVAL. Names of quantities end in
 * their unit: _records, _bytes, _ms, _steps.
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
     * in .gz: it is compressed. NULL: no trace. An older file at this path or the two below is
     * replaced. A symbolic link, a device (/dev/stdout, /dev/null), a pipe, a socket or a directory
     * is left as it is, and pk_start returns PK_EACCES. Trace and report get the permissions that
     * the umask leaves of 0666; the arena, which is memory of the running program, gets 0600. If
     * the program closes the file's descriptor (close_range), everything after that counts as
     * unwritten, and pk_flush and pk_stop return PK_EIO. */
    const char *trace_path;

    /* Where the report goes at pk_stop. "-" is text on stderr, a name ending in .json is JSON, one
     * ending in .rank.json is what `pk job` needs of it, any other is text. The same %-fields.
     * NULL: no report. If the program was started without stderr or has closed it, nothing is
     * written: whatever else the program opens as descriptor 2 is left alone, and pk_stop returns
     * PK_EIO. */
    const char *report_path;

    /* Upper bound of all recording memory, 4 MiB .. 1 TiB; beyond it regions are dropped and
     * counted. 0: 1 GiB. It is reserved at the start and used as threads need it. After
     * mlockall(MCL_FUTURE) only what is used is locked. mlockall(MCL_CURRENT) after pk_start counts
     * everything reserved towards the limit, without touching it: where RLIMIT_MEMLOCK is small,
     * call it before pk_start, or set a small bound. */
    uint64_t memory_bytes;

    /* "cuda,cupti,nvtx,nccl,nvml": these; "-nvml": all but these; "none". NULL: all that are
     * available but cupti. */
    const char *backends;

    /* The file that survives a kill. NULL: trace_path with ".arena" appended, or memory only if
     * there is no trace or it goes to a network file system. "none": memory only. */
    const char *arena_path;

    /* "tsc", "cntvct" or "monotonic". NULL: the fastest that is trustworthy here. "tsc" is taken,
     * with a warning, where the processor promises a constant rate and only the kernel does not
     * trust it, as in virtual machines that may be moved: begin and end take a third or a quarter
     * of the time, and where it jumps, times are wrong by as much. Jumps of 10 ms and more are told
     * through the log function, any in the report. */
    const char *clock;

    /* Events beyond this size of the trace (uncompressed, all its files) are counted, not written.
     * 0: no bound. */
    uint64_t trace_max_bytes;

    /* The longest time until a record is in the file, 10 .. 3600000. 0: 1000. */
    uint32_t flush_ms;

    /* 1: the report lists every thread's regions too. */
    uint32_t report_threads;

    /* How many of the first steps are warm-up, which the report shows separately. 0: determined
     * from the data. */
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
     * Failures of control calls are logged too, so a program need not print them as well. */
    pk_log_function *log;
    void *log_user;

    /* Steps during which CUPTI records kernels, copies and CUDA calls: "100-104" or "100", numbered
     * as in the trace. Turns the cupti backend on for these steps alone. NULL: the whole session,
     * if backends names cupti. */
    const char *cupti_steps;

    /* 1: CUPTI records every kernel of a CUDA graph, not each launch as a whole. More overhead. */
    uint32_t cupti_graph_nodes;

    /* 1: the NVTX ranges and marks of all libraries in the process become regions. Call pk_start
     * before the first of them calls NVTX, since a library looks for a listener only then
     * (docs/gpu.md).
     */
    uint32_t nvtx_consume;

    /* The path of libpkshim.so. Through it a program that is linked with libpk.a receives NVTX
     * ranges, if asked for (nvtx_consume), and NCCL's operations (docs/nccl.md). NULL: as the
     * loader finds it, or where it was installed. */
    const char *nvtx_shim;

    /* "off": nothing is put into CUDA graphs while they are captured; what pk_gpu_begin or
     * libpk_nccl would have put there is counted (pk_gpu_counts.kept_out). For programs whose
     * graphs take no event nodes: those launched from the device (pk/gpu.h, "Capture"). "on", NULL:
     * spans in captures are timed by event nodes. */
    const char *gpu_capture;

    /* 1: CUPTI also records which event is recorded and waited for where, as HTA's critical path
     * analysis needs it (PyTorch's enable_cuda_sync_events): waits carry their call's correlation
     * and their stream, beside the device's kernels. Tools that treat everything with a stream as
     * work then count these waits as work. More overhead. */
    uint32_t cupti_sync_events;

    /* Upper bound of the history, 1 MiB .. 1 TiB, within memory_bytes; allocated piece by piece as
     * needed. The oldest steps are dropped first, each as a whole. 0: 64 MiB. */
    uint64_t history_bytes;

    /* The flight recorder: so many of the last steps are kept whole in memory, unformatted, up to
     * 65536. 0: none. It costs the collector about 5 ns a region, the threads nothing. With a trace
     * it serves captures only. Without one it is what survives a kill: the arena is then the file
     * "run-%r-history.json.arena" in the working directory, unless arena_path says otherwise, and
     * `pk recover` makes a trace of it. A program without steps keeps what fits. */
    uint32_t history_steps;

    /* At most so many captures are kept of any one hour, 1 .. 3600. The slowest steps win: a slower
     * one replaces the least slow of the hour, whose file is removed. perfkit removes no other
     * file. 0: 12. */
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
     *     straggler                 when libpk_mpi finds this rank late (docs/mpi.md)
     *     kernels=armed             CUPTI, if `backends` names it, records only where a capture
     *                               is foreseen, from a cycle's warm-up on, and from a slow
     *                               step on, with the next 4 in the same capture. The default
     *                               without a trace; kernels=armed,steps:8 for the next 8
     *     kernels=always            from start to stop: the default with a trace
     *
     * A capture that is under way when the run ends is kept and marked as cut. Without
     * history_steps the history is of 32 steps, or of as many as a capture needs. NULL: pk_capture
     * alone, with a history. */
    const char *capture;

    /* Where captures go: %s is the number of the first step, the other %-fields as in trace_path;
     * .gz compresses. NULL: trace_path with "-%s" before its ending; without a trace
     * "run-%r-%s.json". */
    const char *capture_path;

    /* Where windows go. Each is a line of JSON (docs/internals/report-format.md) with the figures
     * of a part of the run; `pk report` adds them up to the report of the run. The same %-fields; a
     * name ending in .gz is compressed. NULL: none. An older file with windows in it, which a
     * killed run may have left, is kept as NAME.prev, its parts as NAME.prev.1 ..., in place of
     * older ones. */
    const char *windows_path;

    /* A window ends after so many steps (at multiples of that number, so that all ranks' windows
     * end with the same step), or with the first step that ends so many seconds after its
     * beginning, whichever comes first. 0: no such limit; both 0: 60 seconds. Without steps,
     * seconds alone decide. A window costs some hundred nanoseconds for each region that had a call
     * in it, on perfkit's own thread or whichever aggregates the records. If windows end faster
     * than they can be written, they become longer. */
    uint32_t window_steps;
    uint32_t window_seconds;

    /* Bound of all window files together, 1 MiB or more: whenever the file reaches a quarter of it,
     * it becomes NAME.1, and so on to NAME.3; the old NAME.3 is removed. 0: 256 MiB. */
    uint64_t windows_max_bytes;

    /* Where the run's figures go for Prometheus: a file of the text format that node exporter's
     * textfile collector reads, if its name ends in .prom; at most 300 series (docs/production.md).
     * The same %-fields; ranks of one host need %r. It is written to another name and renamed,
     * every metrics_seconds (0: 15) and once more at pk_stop. NULL: none. */
    const char *metrics_path;
    uint32_t metrics_seconds;

    /* The program hangs if no step and no region has ended for so many seconds, or for 5 times the
     * 99th percentile of the step and of the innermost open region, if that is more. perfkit says
     * so through the log function and in the arena (`pk where` shows it), with each thread's open
     * regions; it never ends the program. Regions of kind PK_IO may take any time, and those with a
     * limit as long as that (pk_region_set_limit). The watchdog is a thread that wakes twice a
     * second at most. 1 .. 604800; 0: no watchdog. */
    uint32_t hang_seconds;

    /* A command for /bin/sh, run when the program hangs (hang_seconds), with the same %-fields. It
     * is not a child that the program could notice: its input is /dev/null, its output the
     * program's, all other descriptors are closed, and nothing waits for it. NULL: none. */
    const char *hang_command;

    /* "none": perfkit has no thread that drains the rings; pk_flush does it, at moments of the
     * program's choice (between steps, say), on the thread that calls it. Records that find their
     * ring full (64 Ki by default) are dropped and counted; metrics, windows and captures are
     * written in these calls, too. At exit() a thread is created to end an open session. "thread",
     * NULL: a thread. */
    const char *collector;

    /* Processors that this thread may use: "3", "0-3,8", as in sched_setaffinity, up to 1023. If
     * the system refuses, it stays where it is, which is logged. NULL: those of the thread that
     * calls pk_start. If that is only one (a launcher has bound the program), the thread runs under
     * SCHED_BATCH: it does not preempt what runs there, but takes its share. */
    const char *collector_cpus;

    /* The trace goes into several files of at most so many bytes on the disk, each a whole trace.
     * trace_path names the one that is written; before it would grow beyond that it is renamed to
     * run.part1.json, the next one to run.part2.json ("run.json", "run.json.gz" alike). A region is
     * in the file that was current when it ended. `pk report run.json` reads the parts of its run
     * that lie beside it. Older files of these names are replaced. 2 MiB or more; 0: one file. */
    uint64_t trace_rotate_bytes;

    /* How many of these files are kept, including the one being written; the oldest are removed. At
     * most 65536. 0: all. */
    uint32_t trace_keep;

    /* The file with the machine's limits that `pk machine` has measured: the report compares
     * regions with bytes and flops (pk_region_add) with them (docs/costs.md). The same %-fields.
     * It is read at pk_stop if there are such regions; a file of another processor is refused,
     * which is logged. NULL: where `pk machine` keeps it, if it is there. "none": none. */
    const char *machine_path;

    /* How much overhead perfkit may have, as a share of the process's CPU time (its own included):
     * 0.01 is one percent; at most 0.5. The overhead is estimated while the session runs: calls
     * times the cost of one on this machine, plus the CPU time of perfkit's threads. Near the
     * bound, the most expensive regions are thinned: first their events are left out of the trace,
     * then only one of n calls is timed, at random distances, n up to 4096; when there is room
     * again this is undone. All calls are counted, and the sums of pk_region_add stay exact; times
     * of thinned regions are estimates, marked as such, with their error (docs/production.md).
     * Regions of kind PK_COMM and regions that contain operations are never thinned. If the bound
     * is missed all the same, that is logged and reported. 0: no bound, no thinning. */
    double overhead_max;

    /* The job's goodput file: every run of the job appends how it spent its time (pk/goodput.h), so
     * that `pk job` can account for the wall time over all restarts. It is never replaced; a file
     * of another kind is PK_EINVAL. The same %-fields; without %r only rank 0 writes it. One
     * process writes at a time; another waits. A line of some 600 bytes every twentieth of the
     * session's length at first (10 to 250 ms), every thousandth of the run's later (up to 60 s),
     * on perfkit's own thread. NULL: none. */
    const char *goodput_path;

    /* What the run costs besides time, separated by ',': "io": bytes and calls as the kernel counts
     * them (/proc/self/io), rates of devices, checkpoints; "energy": where its counters can be
     * read; both on perfkit's own thread, whose own I/O is subtracted (docs/costs.md), and of I/O
     * also at the end of a step, 8 to 20 us once per millisecond at most. "memory": CUDA's
     * allocations, by region, with CUPTI throughout the session; and the process's resident memory
     * at the end of a step, 5 to 8 us once per millisecond at most (docs/costs.md).
     * "hardware", "software", "topdown": events of the processor and the kernel by region, and what
     * became of pipeline slots, in as many calls as fit 1 % of the CPU time, or overhead_max / 4; 4
     * or 5 descriptors per thread each (docs/costs.md). NULL: none. */
    const char *costs;

    /* The peak for MFU and HFU (docs/costs.md): a precision (fp64, fp32, tf32, bf16, fp16, fp8);
     * operations per second, "989.5e12"; or both, "bf16:989.5e12". NULL: fp32 for processors, none
     * for GPUs. */
    const char *peak;
    const char *job_path; /* all ranks' reports in one file for `pk job`, by libpk_mpi
                             (docs/mpi.md); ".gz": compressed */
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
