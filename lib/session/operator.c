#include "session/operator.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/process.h"

static pk_status read_switch(const char *variable, bool *on)
{
    const char *text = pki_variable(variable);
    *on = text && strcmp(text, "1") == 0;
    return !text || *on || strcmp(text, "0") == 0
               ? PK_OK
               : pki_fail(PK_EINVAL, "%s=%.40s is neither 0 nor 1", variable, text);
}

pk_status pki_operator_read(bool *off)
{
    bool override;
    pk_status status = read_switch("PK_OFF", off);
    return status || *off ? status : read_switch("PK_OVERRIDE", &override);
}

/* ---- PK_OVERRIDE ---- */

/* All members that have a variable. rank counts with world_size alone. */
#define FOR_EACH_OPTION(X)                                                                         \
    X(ring_records, "PK_RING_RECORDS")                                                             \
    X(trace_path, "PK_TRACE_PATH")                                                                 \
    X(report_path, "PK_REPORT_PATH")                                                               \
    X(memory_bytes, "PK_MEMORY_BYTES")                                                             \
    X(backends, "PK_BACKENDS")                                                                     \
    X(arena_path, "PK_ARENA_PATH")                                                                 \
    X(clock, "PK_CLOCK")                                                                           \
    X(trace_max_bytes, "PK_TRACE_MAX_BYTES")                                                       \
    X(flush_ms, "PK_FLUSH_MS")                                                                     \
    X(report_threads, "PK_REPORT_THREADS")                                                         \
    X(warmup_steps, "PK_WARMUP_STEPS")                                                             \
    X(world_size, "PK_WORLD_SIZE")                                                                 \
    X(log_level, "PK_LOG_LEVEL")                                                                   \
    X(log, "PK_LOG")                                                                               \
    X(cupti_steps, "PK_CUPTI_STEPS")                                                               \
    X(cupti_graph_nodes, "PK_CUPTI_GRAPH_NODES")                                                   \
    X(nvtx_consume, "PK_NVTX_CONSUME")                                                             \
    X(nvtx_shim, "PK_NVTX_SHIM")                                                                   \
    X(gpu_capture, "PK_GPU_CAPTURE")                                                               \
    X(cupti_sync_events, "PK_CUPTI_SYNC_EVENTS")                                                   \
    X(history_bytes, "PK_HISTORY_BYTES")                                                           \
    X(history_steps, "PK_HISTORY_STEPS")                                                           \
    X(captures_per_hour, "PK_CAPTURES_PER_HOUR")                                                   \
    X(capture_bytes_per_hour, "PK_CAPTURE_BYTES_PER_HOUR")                                         \
    X(capture, "PK_CAPTURE")                                                                       \
    X(capture_path, "PK_CAPTURE_PATH")                                                             \
    X(windows_path, "PK_WINDOWS_PATH")                                                             \
    X(window_steps, "PK_WINDOW_STEPS")                                                             \
    X(window_seconds, "PK_WINDOW_SECONDS")                                                         \
    X(windows_max_bytes, "PK_WINDOWS_MAX_BYTES")                                                   \
    X(metrics_path, "PK_METRICS_PATH")                                                             \
    X(metrics_seconds, "PK_METRICS_SECONDS")                                                       \
    X(hang_seconds, "PK_HANG_SECONDS")                                                             \
    X(hang_command, "PK_HANG_COMMAND")                                                             \
    X(collector, "PK_COLLECTOR")                                                                   \
    X(collector_cpus, "PK_COLLECTOR_CPUS")                                                         \
    X(trace_rotate_bytes, "PK_TRACE_ROTATE_BYTES")                                                 \
    X(trace_keep, "PK_TRACE_KEEP")                                                                 \
    X(machine_path, "PK_MACHINE_PATH")                                                             \
    X(overhead_max, "PK_OVERHEAD_MAX")                                                             \
    X(goodput_path, "PK_GOODPUT_PATH")                                                             \
    X(costs, "PK_COSTS")                                                                           \
    X(peak, "PK_PEAK")                                                                             \
    X(job_path, "PK_JOB_PATH")

void pki_operator_override(pk_options *options)
{
    bool on;
    if (read_switch("PK_OVERRIDE", &on) || !on)
        return;
#define UNSET(member, variable)                                                                    \
    if (pki_variable(variable))                                                                    \
        options->member = 0;
    FOR_EACH_OPTION(UNSET)
#undef UNSET
}

/* ---- what no code looks at ---- */

#define HAS(o, member)                                                                             \
    ((o) && (o)->size >= offsetof(pk_options, member) + sizeof(o)->member && (o)->member)

bool pki_operator_asks(const pk_options *options)
{
    bool override = false;
    read_switch("PK_OVERRIDE", &override);
    const bool trace = override || !HAS(options, trace_path);
    const bool report = override || !HAS(options, report_path);
    return (trace && pki_variable("PK_TRACE_PATH")) || (report && pki_variable("PK_REPORT_PATH"));
}

/* PK_LOG: stderr has it already, off wants none. */
static bool is_silent(void)
{
    return pki_variable("PK_LOG") != NULL;
}

static bool speaks_for_its_host(void)
{
    pki_world world;
    pki_world_detect(&world);
    return world.local_rank <= 0;
}

void pki_operator_tell(const char *prefix, pk_status status)
{
    char line[448];
    if (!status || is_silent() || !speaks_for_its_host())
        return;
    snprintf(line, sizeof line, "%s%.380s (%s)", prefix, pk_error_message(),
             pk_status_name(status));
    pki_log_to_stderr(NULL, PK_LOG_INFO, line);
}
