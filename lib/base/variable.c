#include "base/variable.h"

#include <stdlib.h>
#include <string.h>

static const char *const variables[] = {
    "PK_ARENA_PATH",
    "PK_BACKENDS",
    "PK_CAPTURE",
    "PK_CAPTURES_PER_HOUR",
    "PK_CAPTURE_BYTES_PER_HOUR",
    "PK_CAPTURE_PATH",
    "PK_CLOCK",
    "PK_COLLECTOR",
    "PK_COLLECTOR_CPUS",
    "PK_CUPTI_GRAPH_NODES",
    "PK_CUPTI_STEPS",
    "PK_CUPTI_SYNC_EVENTS",
    "PK_ENVIRONMENT",
    "PK_FLUSH_MS",
    "PK_GPU_CAPTURE",
    "PK_HANG_COMMAND",
    "PK_HANG_SECONDS",
    "PK_HISTORY_BYTES",
    "PK_HISTORY_STEPS",
    "PK_JOB_PATH",
    "PK_LOG",
    "PK_LOG_LEVEL",
    "PK_MACHINE_PATH",
    "PK_MEMORY_BYTES",
    "PK_METRICS_PATH",
    "PK_METRICS_SECONDS",
    "PK_NVTX_CONSUME",
    "PK_NVTX_SHIM",
    "PK_OVERHEAD_MAX",
    "PK_GOODPUT_PATH",
    "PK_COSTS",
    "PK_PEAK",
    "PK_OFF",
    "PK_OVERRIDE",
    "PK_RANK",
    "PK_REPORT_PATH",
    "PK_REPORT_THREADS",
    "PK_RING_RECORDS",
    "PK_TRACE_KEEP",
    "PK_TRACE_MAX_BYTES",
    "PK_TRACE_PATH",
    "PK_TRACE_ROTATE_BYTES",
    "PK_WARMUP_STEPS",
    "PK_WINDOWS_MAX_BYTES",
    "PK_WINDOWS_PATH",
    "PK_WINDOW_SECONDS",
    "PK_WINDOW_STEPS",
    "PK_WORLD_SIZE",
};

bool pki_variable_is_known(const char *variable, size_t length)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (strlen(variables[i]) == length && memcmp(variables[i], variable, length) == 0)
            return true;
    return false;
}

const char *pki_variable(const char *name)
{
    const char *text = pki_variable_is_known(name, strlen(name)) ? secure_getenv(name) : NULL;
    return text && *text ? text : NULL;
}
