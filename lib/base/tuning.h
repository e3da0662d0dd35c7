/* lib/base/tuning.h - variables of the environment that stand for options, and what experts tune */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- what experts set: a key of pk_options.tuning, and a variable ---- */

/* The table: of keys, variables (PK_ID), ranges and defaults, and of docs/tuning.md, which a test
 * makes of it.
 *
 *     NUMBER(ID, key, a power of two?, least, most, default, default in words, what it is for)
 *     SWITCH(ID, key, default, what it is for)                                         0 or 1
 *     TEXT(ID, key, values in words, default in words, what it is for)
 *
 * 0 is every number's default; a default in words says what that comes to. */
/* clang-format off */
#define PKI_TUNING_TABLE(NUMBER, SWITCH, TEXT)                                                     \
    NUMBER(RING_RECORDS, "ring_records", true, 64, 16 << 20, 0,                                    \
           "64K, and more while it is full",                                                       \
           "records per thread, 32 bytes each: so many and no more. By default threads that "      \
           "are fast go on in memory that they share, a sixteenth of `memory_bytes` at most")      \
    NUMBER(FLUSH_MS, "flush_ms", false, 10, 3600000, 1000, NULL,                                   \
           "the longest time until a record is in the trace")                                      \
    TEXT(ARENA_PATH, "arena_path", "a path with `%r` `%p` `%h`; `none`: memory only",              \
         "`trace_path` with `.arena`; memory only without a trace or history, or on a "            \
         "network file system", "the file that survives a kill")                                   \
    TEXT(CLOCK, "clock", "`tsc`, `cntvct`, `monotonic`",                                           \
         "the fastest that is trustworthy here",                                                   \
         "`tsc` is taken, with a warning, where the processor promises a constant rate and "       \
         "only the kernel does not trust it, as in virtual machines that may be moved; "           \
         "where it jumps, times are wrong by as much")                                             \
    TEXT(COLLECTOR_CPUS, "collector_cpus", "`3`, `'0-3,8'`, up to 1023",                           \
         "those of the thread that calls `pk_start`",                                              \
         "processors that perfkit's thread may use. If the system refuses, that is logged")        \
    SWITCH(REPORT_THREADS, "report_threads", 0,                                                    \
           "the report lists every thread's regions, too")                                         \
    NUMBER(TRACE_MAX_BYTES, "trace_max_bytes", false, 64 << 10, UINT64_MAX, UINT64_MAX,            \
           "no bound",                                                                             \
           "events beyond this size of the trace (uncompressed, all its files) are counted, "      \
           "not written")                                                                          \
    NUMBER(TRACE_ROTATE_BYTES, "trace_rotate_bytes", false, 2 << 20, UINT64_MAX, 0,                \
           "one file",                                                                             \
           "the trace goes into several files of at most so many bytes on the disk, each a "       \
           "whole trace: `run.part1.json`, `run.part2.json`, ..., and `run.json`, the one "        \
           "that is written. Older files of these names are replaced")                             \
    NUMBER(TRACE_KEEP, "trace_keep", false, 1, 64 << 10, 0, "all",                                 \
           "how many of these files are kept, the one being written among them")                   \
    NUMBER(HISTORY_BYTES, "history_bytes", false, 1 << 20, UINT64_C(1) << 40, 64 << 20, NULL,      \
           "upper bound of the history, within `memory_bytes`. The oldest steps are dropped "      \
           "first, each as a whole")                                                               \
    NUMBER(SAMPLES, "samples", false, 0, 999, 0,                                                   \
           "99 of the stepping thread with a history",                                             \
           "so often in a second of CPU time the stacks of all threads that record (eight at "     \
           "most) are sampled ([production.md](production.md#captures)). 0: none")                 \
    NUMBER(CAPTURES_PER_HOUR, "captures_per_hour", false, 1, 3600, 12, NULL,                       \
           "at most so many captures are kept of any one hour. A slower one replaces the "         \
           "least slow, whose file is removed")                                                    \
    NUMBER(CAPTURE_BYTES_PER_HOUR, "capture_bytes_per_hour", false, 1 << 20,                       \
           UINT64_C(1024) << 40, 256 << 20, NULL,                                                  \
           "the same bound in bytes of files. A capture that does not fit is cut and says "        \
           "so")                                                                                   \
    NUMBER(WINDOW_STEPS, "window_steps", false, 1, UINT32_MAX, 0, "by seconds alone",              \
           "a window ends at multiples of so many steps, so that all ranks' windows end "          \
           "with the same step")                                                                   \
    NUMBER(WINDOW_SECONDS, "window_seconds", false, 1, 31536000, 0,                                \
           "60; by steps alone with `window_steps`",                                               \
           "or with the first step that ends so many seconds after it began, whichever "           \
           "comes first")                                                                          \
    NUMBER(WINDOWS_MAX_BYTES, "windows_max_bytes", false, 1 << 20, UINT64_MAX, 256 << 20,          \
           NULL,                                                                                   \
           "bound of all window files together: a file that has a quarter of it becomes "          \
           "`NAME.1`, and so on to `NAME.3`")                                                      \
    NUMBER(METRICS_SECONDS, "metrics_seconds", false, 1, 86400, 15, NULL,                          \
           "how often the file of `metrics_path` is written")                                      \
    TEXT(MACHINE_PATH, "machine_path", "a path with `%r` `%p` `%h`; `none`",                       \
         "where `pk machine` keeps it",                                                            \
         "the machine's limits, which regions with bytes and flops are compared with "             \
         "([costs.md](costs.md))")                                                                 \
    TEXT(PEAK, "peak",                                                                             \
         "`fp64` `fp32` `tf32` `bf16` `fp16` `fp8`; `989.5e12`; `bf16:989.5e12`",                  \
         "`fp32` for processors, none for GPUs",                                                   \
         "the peak for MFU and HFU: a precision, operations per second, or both "                  \
         "([costs.md](costs.md))")                                                                 \
    SWITCH(GPU_GRAPHS, "gpu_graphs", 1,                                                            \
           "spans in CUDA graphs are timed by event nodes. 0: nothing is put into graphs "         \
           "while they are captured, which is counted. For graphs that take no event nodes: "      \
           "those launched from the device ([gpu.md](gpu.md))")                                    \
    TEXT(CUPTI_STEPS, "cupti_steps", "`100-104`, `100`",                                           \
         "the whole session, if `backends` names cupti",                                           \
         "the steps during which CUPTI records, numbered as in the trace. Turns it on for "        \
         "these alone")                                                                            \
    SWITCH(CUPTI_GRAPH_NODES, "cupti_graph_nodes", 0,                                              \
           "CUPTI records every kernel of a CUDA graph, not each launch as a whole. More "         \
           "overhead")                                                                             \
    SWITCH(CUPTI_SYNC_EVENTS, "cupti_sync_events", 0,                                              \
           "CUPTI records which event is waited for where, as HTA's critical path needs it. "      \
           "Tools that take all that has a stream for work then count these waits. More "          \
           "overhead")                                                                             \
    SWITCH(NVTX_CONSUME, "nvtx_consume", 0,                                                        \
           "the NVTX ranges and marks of all libraries in the process become regions. Call "       \
           "`pk_start` before the first of them calls NVTX ([gpu.md](gpu.md))")                    \
    TEXT(NVTX_SHIM, "nvtx_shim", "a path",                                                         \
         "as the loader finds it, or where it was installed",                                      \
         "`libpkshim.so`, through which a program linked with `libpk.a` receives NVTX "            \
         "ranges, if asked for, and NCCL's operations")
/* clang-format on */

#define PKI_TUNING_ID(id, ...) PKI_TUNING_##id,
typedef enum pki_tuning_key {
    PKI_TUNING_TABLE(PKI_TUNING_ID, PKI_TUNING_ID, PKI_TUNING_ID) PKI_TUNING_COUNT
} pki_tuning_key;

typedef struct pki_tuning {
    const char *key, *variable;
    bool power_of_two;
    uint64_t least, most, otherwise; /* 0, 1: a switch; 0, 0: a text. otherwise: the default */
} pki_tuning;

extern const pki_tuning pki_tunings[PKI_TUNING_COUNT];

#define PKI_TUNING_MOST 8192 /* bytes of all settings together, with a 0 */

/* Takes "ring_records=4096,collector_cpus='0-3,8'" apart, in place: what each key is set to, "" or
 * more, NULL where nothing sets it. False, with the word in question: an unknown key, one that is
 * there twice, no "=", a quote that does not end. */
bool pki_tuning_split(char *text, const char *values[PKI_TUNING_COUNT], char *why, size_t size);

/* What the environment says, by the key's variable or by PK_TUNING. False: nothing, or nothing that
 * fits. For those who cannot wait for a session. */
bool pki_tuning_of_environment(pki_tuning_key key, char *value, size_t size);

/* ---- all variables that stand for options ---- */

/* Is there one of this name? */
bool pki_variable_is_known(const char *name, size_t length);

/* An empty variable counts as not set: NULL. So does one that is not known. */
const char *pki_variable(const char *name);
