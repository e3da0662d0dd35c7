#include "bench/counters.h"

#include <pk/bench.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/nvml/api.h"
#include "backend/nvml/reading.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "bench/case.h"
#include "bench/device.h"
#include "bench/stats/samples.h"

/* ---- the clocks that benchmarks are timed by ---- */

static uint64_t system_now(void *self)
{
    (void)self;
    return pki_monotonic_ns();
}

static uint64_t system_cpu(void *self)
{
    (void)self;
    return pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
}

const pki_bench_clock pki_bench_system_clock = {system_now, system_cpu, NULL};

/* ---- a device's own clock while it is measured ---- */

static bool read_now(pki_bench_case *c, pki_bench_health *health)
{
    c->clocks.read = pki_bench_now(c);
    c->clocks.looked = true;
    return c->device->health(c->timer, health);
}

static bool is_time(const pki_bench_case *c)
{
    return !c->clocks.looked || pki_bench_now(c) - c->clocks.read >= PKI_BENCH_CLOCKS_EVERY;
}

/* ---- warm-up ---- */

bool pki_bench_clocks_risen(pki_bench_case *c, uint64_t began)
{
    pki_bench_clocks *clocks = &c->clocks;
    pki_bench_health health;
    if (is_time(c) && read_now(c, &health) && health.mhz) {
        if (health.mhz > clocks->top * (1 + PKI_BENCH_CLOCKS_RISE)) {
            clocks->top = health.mhz;
            clocks->rose = clocks->read;
        }
    }
    uint64_t now = pki_bench_now(c);
    return clocks->top ? now - clocks->rose >= PKI_BENCH_CLOCKS_STILL
                       : now - began >= PKI_BENCH_CLOCKS_BLIND;
}

/* ---- measurement ---- */

static void mark(pki_bench_case *c)
{
    pki_bench_clocks *clocks = &c->clocks;
    if (clocks->first < c->count)
        memset(c->marks + clocks->first, PK_BENCH_MARK_THROTTLED, c->count - clocks->first);
    c->result.throttled += c->count - clocks->first;
}

static bool is_same(double a, double b)
{
    return fabs(a - b) <= PKI_BENCH_CLOCKS_SAME * PKI_MAX(a, b);
}

static double clock_between(unsigned before, unsigned after)
{
    if (!before || !after)
        return PKI_BENCH_CLOCK_UNKNOWN;
    return is_same(before, after) ? PKI_MIN(before, after) : PKI_BENCH_CLOCK_CHANGED;
}

/* Samples since the last reading lie between two; both judge them. */
static void check(pki_bench_case *c)
{
    pki_bench_clocks *clocks = &c->clocks;
    pki_bench_health health = {.mhz = 0};
    bool told = read_now(c, &health), held = told && *health.held_down != 0;
    if (held || (told && clocks->held))
        mark(c);
    if (held)
        memcpy(clocks->why, health.held_down, sizeof clocks->why);
    for (size_t i = clocks->first; i < c->count; i++)
        c->mhz[i] = clock_between(clocks->last, health.mhz);
    if (health.mhz) {
        clocks->low = clocks->low ? PKI_MIN(clocks->low, health.mhz) : health.mhz;
        clocks->high = PKI_MAX(clocks->high, health.mhz);
    }
    clocks->last = health.mhz;
    clocks->held = held;
    clocks->first = c->count;
}

void pki_bench_clocks_start(pki_bench_case *c)
{
    c->clocks.low = c->clocks.high = c->clocks.last = 0;
    c->clocks.held = false;
    c->clocks.first = c->count;
    c->clocks.why[0] = 0;
    c->result.throttled = 0;
    check(c);
}

void pki_bench_clocks_check(pki_bench_case *c)
{
    if (is_time(c))
        check(c);
}

/* ---- samples at other clocks are left out ---- */

/* The median of those that are known; 0: none is, or there is no memory. */
static double usual_clock(const pki_bench_case *c)
{
    double *known = malloc(PKI_MAX(c->count, (size_t)1) * sizeof *known);
    size_t n = 0;
    for (size_t i = 0; known && i < c->count; i++)
        if (c->mhz[i] > 0)
            known[n++] = c->mhz[i];
    double usual = n ? pki_samples_select_median(known, n) : 0;
    free(known);
    return usual;
}

static bool is_at(const pki_bench_case *c, size_t i, double usual)
{
    bool other = c->mhz[i] > 0 && usual > 0 && !is_same(c->mhz[i], usual);
    return !(c->marks[i] & PK_BENCH_MARK_THROTTLED) && c->mhz[i] >= 0 && !other;
}

static void keep(pki_bench_case *c, size_t from, size_t to)
{
    c->time[to] = c->time[from];
    c->cpu[to] = c->cpu[from];
    c->at[to] = c->at[from];
    c->overhead[to] = c->overhead[from];
    c->launch[to] = c->launch[from];
    c->mhz[to] = c->mhz[from];
    c->marks[to] = c->marks[from];
    for (unsigned s = 0; s < c->series_count; s++)
        if (from < c->series[s].count)
            c->series[s].values[to] = c->series[s].values[from];
}

/* A figure that not every sample has had stays whole: nobody knows whose its values are. */
static bool series_are_whole(const pki_bench_case *c)
{
    for (unsigned s = 0; s < c->series_count; s++)
        if (c->series[s].count != c->count)
            return false;
    return true;
}

/* How many. */
static size_t leave_out(pki_bench_case *c, double usual)
{
    size_t all = c->count, kept = 0;
    for (size_t i = 0; i < all; i++)
        kept += is_at(c, i, usual);
    if (kept == all || kept * 2 < all || kept < 2 || !series_are_whole(c))
        return 0;
    kept = 0;
    for (size_t i = 0; i < all; i++)
        if (is_at(c, i, usual))
            keep(c, i, kept++);
    c->count = kept;
    for (unsigned s = 0; s < c->series_count; s++)
        c->series[s].count = kept;
    return all - kept;
}

/* Of what is kept. */
static void note_range(pki_bench_case *c, size_t out)
{
    pki_bench_clocks *clocks = &c->clocks;
    for (size_t i = 0; i < c->count && out; i++) {
        unsigned mhz = (unsigned)PKI_MAX(c->mhz[i], 0);
        clocks->low = i ? PKI_MIN(clocks->low, mhz) : mhz;
        clocks->high = i ? PKI_MAX(clocks->high, mhz) : mhz;
    }
    c->result.clock_low_mhz = clocks->low;
    c->result.clock_high_mhz = clocks->high;
}

void pki_bench_clocks_finish(pki_bench_case *c)
{
    char text[160] = "";
    check(c);
    size_t all = c->count;
    double usual = usual_clock(c);
    size_t out = leave_out(c, usual);
    pk_bench_result *r = &c->result;
    note_range(c, out);
    if (out && r->throttled)
        snprintf(text, sizeof text,
                 "%zu of %zu samples are left out: the GPU's clock was held down (%.70s)", out, all,
                 c->clocks.why);
    else if (out)
        snprintf(text, sizeof text,
                 "%zu of %zu samples are left out: the GPU's clock was not at %.0f MHz", out, all,
                 usual);
    else if (r->throttled)
        snprintf(text, sizeof text,
                 "throttled: in %zu of %zu samples the GPU's clock was held "
                 "down (%.70s)",
                 (size_t)r->throttled, all, c->clocks.why);
    else if (!is_same(r->clock_low_mhz, r->clock_high_mhz))
        snprintf(text, sizeof text, "the GPU's clock went between %u and %u MHz meanwhile",
                 r->clock_low_mhz, r->clock_high_mhz);
    pki_bench_case_note(c, text);
}

/* ---- How a GPU feels while it is measured: lib/bench/device.h ---- */

struct pki_bench_health_source {
    const pki_nvml *nvml;
    pki_nvml_handle device;
};

static bool find_device(pki_bench_health_source *s, const char *uuid)
{
    char reason[128];
    s->nvml = *uuid ? pki_nvml_open(reason, sizeof reason) : NULL;
    if (!s->nvml || !s->nvml->by_uuid || s->nvml->init() != PKI_NVML_OK)
        return false;
    if (s->nvml->by_uuid(uuid, &s->device) == PKI_NVML_OK)
        return true;
    s->nvml->shutdown();
    return false;
}

pki_bench_health_source *pki_bench_health_open(const char *uuid)
{
    pki_bench_health_source *s = calloc(1, sizeof *s);
    if (s && find_device(s, uuid))
        return s;
    free(s);
    return NULL;
}

void pki_bench_health_close(pki_bench_health_source *s)
{
    if (s)
        s->nvml->shutdown();
    free(s);
}

static bool read_reasons(const pki_bench_health_source *s, pki_bench_health *health)
{
    unsigned long long bits = 0;
    int (*read)(pki_nvml_handle, unsigned long long *) =
        s->nvml->reasons ? s->nvml->reasons : s->nvml->old_reasons;
    if (!read || read(s->device, &bits) != PKI_NVML_OK)
        return false;
    for (uint64_t bit = 1; bit <= PKI_NVML_DISPLAY; bit <<= 1) {
        const char *text = bits & bit & PKI_NVML_HELD_DOWN ? pki_nvml_reason_text(bit) : NULL;
        size_t used = strlen(health->held_down);
        if (text)
            snprintf(health->held_down + used, sizeof health->held_down - used, "%s%s",
                     used ? ", " : "", text);
    }
    return true;
}

bool pki_bench_health_read(const pki_bench_health_source *s, pki_bench_health *health)
{
    memset(health, 0, sizeof *health);
    if (!s)
        return false;
    if (!s->nvml->clock ||
        s->nvml->clock(s->device, PKI_NVML_CLOCK_SM, &health->mhz) != PKI_NVML_OK)
        health->mhz = 0;
    return read_reasons(s, health) || health->mhz;
}

/* ---- what is counted, not timed: hardware counters and allocations ---- */

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
