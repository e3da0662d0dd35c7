#include "bench/counters.h"

#include <pk/bench.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"

/* ---- allocations of the whole process while they are counted ---- */

static uint32_t counting;
static uint64_t count_so_far, bytes_so_far;

void pk_bench_note_allocation(size_t bytes)
{
    if (!pki_load(&counting))
        return;
    pki_fetch_add(&count_so_far, 1);
    pki_fetch_add(&bytes_so_far, bytes);
}

void pki_bench_allocations_start(void)
{
    pki_store(&count_so_far, 0);
    pki_store(&bytes_so_far, 0);
    pki_store(&counting, 1);
}

void pki_bench_allocations_stop(void)
{
    pki_store(&counting, 0);
}

void pki_bench_allocations_read(uint64_t *count, uint64_t *bytes)
{
    *count = pki_load(&count_so_far);
    *bytes = pki_load(&bytes_so_far);
}

bool pki_bench_allocations_seen(void)
{
    uint64_t count, bytes;
    pki_bench_allocations_start();
    void *volatile block = malloc(1); /* volatile: a compiler may drop a pair that nobody sees */
    pki_bench_allocations_stop();
    free(block);
    pki_bench_allocations_read(&count, &bytes);
    return count > 0;
}

/* ---- counters ---- */

static bool open_one(pki_perf_group *group, int i)
{
    return pki_perf_open(group, &pki_perf_hardware[i], 1, false);
}

bool pki_bench_counters_open(pki_bench_counters *counters)
{
    bool any = false;
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++)
        any |= open_one(&counters->event[i], i);
    return any;
}

static void turn(pki_bench_counters *counters, bool on)
{
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++)
        pki_perf_turn(&counters->event[i], on);
}

void pki_bench_counters_start(pki_bench_counters *counters)
{
    turn(counters, true);
}

void pki_bench_counters_stop(pki_bench_counters *counters)
{
    turn(counters, false);
}

/* They began at 0, as it does. */
static double counted(const pki_perf_group *group)
{
    const pki_perf_reading none = {{0}, 0, 0, false};
    pki_perf_reading now;
    double value[PKI_PERF_EVENTS];
    if (!pki_perf_read(group, &now) || !pki_perf_between(&none, &now, value))
        return -1;
    return value[0];
}

void pki_bench_counters_read(pki_bench_counters *counters, pki_bench_counts *counts)
{
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++)
        counts->value[i] = counted(&counters->event[i]);
}

void pki_bench_counters_close(pki_bench_counters *counters)
{
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++)
        pki_perf_close(&counters->event[i]);
}

void pki_bench_counters_explain(char *text, size_t size)
{
    int missing = 0, error = 0;
    char names[96] = "", why[192];
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++) {
        pki_perf_group group;
        if (open_one(&group, i)) {
            pki_perf_close(&group);
            continue;
        }
        error = group.error;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", missing++ ? ", " : "",
                 pki_perf_hardware[i].name);
    }
    pki_perf_explain(error, why, sizeof why);
    if (missing == PKI_BENCH_COUNTERS)
        snprintf(text, size, "hardware counters: %s", why);
    else
        snprintf(text, size, "%s%s", missing ? "not counted on this machine: " : "", names);
}
