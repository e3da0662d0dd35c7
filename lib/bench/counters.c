#include "bench/counters.h"

#include "base/clock.h"
#include "base/compiler.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    uint64_t config;
} events[PKI_BENCH_COUNTERS] = {
    {"instructions", PERF_COUNT_HW_INSTRUCTIONS},
    {"cycles", PERF_COUNT_HW_CPU_CYCLES},
    {"cache misses", PERF_COUNT_HW_CACHE_MISSES},
    {"branch misses", PERF_COUNT_HW_BRANCH_MISSES},
};

static int open_one(uint64_t config)
{
    struct perf_event_attr wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.type = PERF_TYPE_HARDWARE;
    wanted.size = sizeof wanted;
    wanted.config = config;
    wanted.disabled = 1;
    wanted.exclude_kernel = 1;
    wanted.exclude_hv = 1;
    wanted.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return pki_fd_up((int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

/* Without ioctl(): this request fits the type that glibc has for it, and not musl's. */
static bool read_id(int fd, uint64_t *id)
{
    return syscall(SYS_ioctl, fd, PERF_EVENT_IOC_ID, id) == 0;
}

bool pki_bench_counters_open(pki_bench_counters *counters)
{
    bool any = false;
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++) {
        pki_owned *event = &counters->event[i];
        if (pki_own_take(event, open_one(events[i].config)) &&
            !read_id(event->fd, &counters->id[i]))
            pki_own_close(event);
        any |= event->fd >= 0;
    }
    return any;
}

/* What is measured may have closed it and opened its own. */
static bool is_ours(const pki_bench_counters *counters, int i)
{
    uint64_t id;
    const pki_owned *event = &counters->event[i];
    return event->fd >= 0 && pki_own_check(event) && read_id(event->fd, &id) &&
           id == counters->id[i];
}

/* A constant at the call: C libraries disagree about the type of requests. */
static void switch_to(pki_bench_counters *counters, bool on)
{
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++)
        if (is_ours(counters, i))
            ioctl(counters->event[i].fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

void pki_bench_counters_start(pki_bench_counters *counters)
{
    switch_to(counters, true);
}

void pki_bench_counters_stop(pki_bench_counters *counters)
{
    switch_to(counters, false);
}

void pki_bench_counters_read(pki_bench_counters *counters, pki_bench_counts *counts)
{
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++) {
        uint64_t value[3]; /* count, time enabled, time running */
        counts->value[i] = -1;
        if (is_ours(counters, i) &&
            read(counters->event[i].fd, value, sizeof value) == sizeof value && value[2] > 0)
            counts->value[i] = (double)value[0] * ((double)value[1] / (double)value[2]);
    }
}

void pki_bench_counters_close(pki_bench_counters *counters)
{
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++)
        if (is_ours(counters, i))
            pki_own_close(&counters->event[i]);
}

static void explain_error(char *text, size_t size, int error)
{
    char paranoid[16] = "?";
    switch (error) {
    case EACCES:
    case EPERM:
        pki_read_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof paranoid);
        snprintf(text, size,
                 "the kernel does not allow hardware counters here "
                 "(perf_event_paranoid is %s; a container's filter may forbid the call)",
                 paranoid);
        break;
    case ENOSYS:
        snprintf(text, size, "this kernel has no hardware counters (perf_event_open)");
        break;
    case EMFILE:
    case ENFILE:
        snprintf(text, size, "too many files are open for hardware counters");
        break;
    default:
        snprintf(text, size,
                 "this machine shows no hardware counters (virtual machines often hide"
                 " them)");
    }
}

void pki_bench_counters_explain(char *text, size_t size)
{
    int missing = 0, error = 0;
    char names[96] = "";
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++) {
        int fd = open_one(events[i].config);
        if (fd >= 0) {
            close(fd);
            continue;
        }
        error = errno;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", missing++ ? ", " : "", events[i].name);
    }
    if (missing == PKI_BENCH_COUNTERS)
        explain_error(text, size, error);
    else
        snprintf(text, size, "%s%s", missing ? "not counted on this machine: " : "", names);
}
