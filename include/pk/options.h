/* pk/options.h - what a session is to do: the members of pk_options.
 *
 *     pk_start(pk_options(.trace_path = "run-%r.json", .report_path = "-"));
 *
 * Part of pk/session.h, which includes it; no program needs to.
 *
 * In order of need. Zero is every member's default. Each has an environment variable, PK_ and its
 * name in capitals; what is set here wins. What only experts set has names, too, in one string
 * (tuning). Some variables have no member, since they are for whoever starts the program: PK_OFF=1
 * (no session: every call answers PK_OK and does nothing, as with -DPK_DISABLE), PK_OVERRIDE=1 (the
 * environment wins over what is set here), PK_LOG=stderr or none, and PK_ENVIRONMENT=0 (reports and
 * captures do not name the machine and the command line). Where the environment and not the code
 * asks for trace or report, a pk_start or pk_stop that fails says so in one line on stderr (of the
 * ranks of a host one does), unless PK_LOG=none. Numbers in the environment and in tuning may end
 * in K, M or G; switches are 0 or 1. A malformed value is PK_EINVAL. Names of quantities end in
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

    /* Where the Chrome trace goes: %r is the rank, %p the pid, %h the host, %% a %. A name ending
     * in .gz: it is compressed. NULL: no trace. An older file at this path or the two of report and
     * arena is replaced. A symbolic link, a device (/dev/stdout, /dev/null), a pipe, a socket or a
     * directory is left as it is, and pk_start returns PK_EACCES. Trace and report get the
     * permissions that the umask leaves of 0666; the arena, which is memory of the running program,
     * gets 0600. If the program closes the file's descriptor (close_range), everything after that
     * counts as unwritten, and pk_flush and pk_stop return PK_EIO. */
    const char *trace_path;

    /* Where the report goes at pk_stop. "-" is text on stderr, a name ending in .json is JSON, one
     * ending in .rank.json is what `pk job` needs of it, any other is text. The same %-fields.
     * NULL: no report. If the program was started without stderr or has closed it, nothing is
     * written: whatever else the program opens as descriptor 2 is left alone, and pk_stop returns
     * PK_EIO. */
    const char *report_path;

    /* "cuda,cupti,nvtx,nccl,nvml": these; "-nvml": all but these; "none". NULL: all that are
     * available but cupti. */
    const char *backends;

    /* The number of this process in the job, 0 .. world_size - 1; read only if world_size is set.
     * world_size 0: both come from the launcher's environment (torchrun, Open MPI, PMIx, PMI, PALS,
     * MVAPICH, Flux, JSM, Slurm). */
    int32_t rank;
    int32_t world_size;

    /* How many of the first steps are warm-up, which the report shows separately. 0: determined
     * from the data. */
    uint32_t warmup_steps;

    /* Upper bound of all recording memory, 4 MiB .. 1 TiB; beyond it regions are dropped and
     * counted. 0: 1 GiB. It is reserved at the start and used as threads need it. After
     * mlockall(MCL_FUTURE) only what is used is locked. mlockall(MCL_CURRENT) after pk_start counts
     * everything reserved towards the limit, without touching it: where RLIMIT_MEMLOCK is small,
     * call it before pk_start, or set a small bound. */
    uint64_t memory_bytes;

    /* The flight recorder: so many of the last steps are kept whole in memory, unformatted, up to
     * 65536. 0: none. It costs the collector about 5 ns a region, the threads nothing. With a trace
     * it serves captures only. Without one it is what survives a kill: the arena is then the file
     * "run-%r-history.json.arena" in the working directory, unless arena_path says otherwise, and
     * `pk recover` makes a trace of it. A program without steps keeps what fits. */
    uint32_t history_steps;

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
     * of a part of the run, a minute unless window_steps or window_seconds say otherwise; `pk
     * report` adds them up to the report of the run. The same %-fields; a name ending in .gz is
     * compressed. NULL: none. An older file with windows in it, which a killed run may have left,
     * is kept as NAME.prev, its parts as NAME.prev.1 ..., in place of older ones. */
    const char *windows_path;

    /* Where the run's figures go for Prometheus: a file of the text format that node exporter's
     * textfile collector reads, if its name ends in .prom; at most 300 series (docs/production.md).
     * The same %-fields; ranks of one host need %r. It is written to another name and renamed,
     * every 15 seconds (metrics_seconds) and once more at pk_stop. NULL: none. */
    const char *metrics_path;

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

    /* The job's goodput file: every run of the job appends how it spent its time (pk/goodput.h), so
     * that `pk job` can account for the wall time over all restarts. It is never replaced; a file
     * of another kind is PK_EINVAL. The same %-fields; without %r only rank 0 writes it. One
     * process writes at a time; another waits. A line of some 600 bytes every twentieth of the
     * session's length at first (10 to 250 ms), every thousandth of the run's later (up to 60 s),
     * on perfkit's own thread. NULL: none. */
    const char *goodput_path;

    /* All ranks' reports in one file for `pk job`, by libpk_mpi (docs/mpi.md); ".gz": compressed.
     * NULL: none. */
    const char *job_path;

    /* Where messages go, with log_user as `user`. NULL: nowhere. In the environment PK_LOG=stderr.
     * Failures of control calls are logged too, so a program need not print them as well. */
    pk_log_function *log;
    void *log_user;

    /* A pk_log_level; in the environment "error", "warning", "info" or "debug". 0: warnings and
     * errors. */
    uint32_t log_level;

    /* What only experts set, by name: "ring_records=4096,flush_ms=50". docs/tuning.md has the
     * names, each of which is a variable, too (PK_RING_RECORDS). A value with a comma stands in
     * quotes, "collector_cpus='0-3,8',flush_ms=50", in which '' is one that stays; "flush_ms=" asks
     * for the default. What is set here wins over its variable, which wins over the variable
     * PK_TUNING, a string like this one; with PK_OVERRIDE=1 both win over the code. A name that is
     * not known or there twice is PK_EINVAL. NULL: nothing. */
    const char *tuning;
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
