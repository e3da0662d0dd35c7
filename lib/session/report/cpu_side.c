#include "session/report/cpu_side.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/processors.h"

#define INTERVAL UINT64_C(1000000000) /* ns */
#define THREADS_MOST 512u             /* looked at */
#define THREADS_EACH 64u              /* a look's interval grows by itself with each of so many */

typedef struct seen {
    uint32_t tid;
    uint64_t wanted; /* ns: had a processor, or was ready for one */
} seen;

static struct {
    const char *root;
    uint64_t last, interval; /* CLOCK_MONOTONIC, ns; 0: none */
    uint32_t stepper;
    uint64_t forced, own; /* as of the last look at it */
    pki_cpus allowed;
    pki_quota quota; /* as of the start */
    uint64_t heat;
    unsigned clocks; /* looks that the clock's mean is of */
    size_t count;
    seen threads[THREADS_MOST];
    pki_cpu_side sum;
} x;

void pki_cpu_side_begin(const char *root)
{
    memset(&x, 0, sizeof x);
    x.root = root;
    x.interval = INTERVAL;
    pki_quota_read(root, &x.quota);
}

/* ---- threads ---- */

static const seen *find(uint32_t tid)
{
    for (size_t i = 0; i < x.count; i++)
        if (x.threads[i].tid == tid)
            return &x.threads[i];
    return NULL;
}

/* Is it one of those that want a processor for more than half of the time? */
static bool is_busy(const seen *now, uint64_t elapsed)
{
    const seen *before = find(now->tid);
    return before && pki_saturating_sub(now->wanted, before->wanted) > elapsed / 2;
}

static void sample_threads(uint64_t elapsed)
{
    static uint32_t tids[THREADS_MOST];
    static seen now[THREADS_MOST];
    size_t count = 0, found = pki_thread_ids(x.root, tids, THREADS_MOST), busy = 0;
    pki_cpus together = {{0}};
    for (size_t i = 0; i < found; i++) {
        pki_thread_cpu t;
        if (!pki_thread_cpu_read(x.root, tids[i], false, &t))
            continue;
        now[count] = (seen){tids[i], t.running + t.ready};
        if (elapsed && is_busy(&now[count], elapsed)) {
            pki_thread_cpu_read(x.root, tids[i], true, &t);
            pki_cpus_add(&together, &t.allowed);
            busy++;
        }
        count++;
    }
    x.count = count;
    memcpy(x.threads, now, count * sizeof *now);
    x.interval = INTERVAL * (1 + found / THREADS_EACH);
    if (!elapsed)
        return;
    x.sum.threads = found;
    x.sum.busy += (double)busy; /* the sum, up to the end */
    x.sum.busy_most = PKI_MAX(x.sum.busy_most, busy);
    if (busy)
        x.sum.allowed_busy = pki_cpus_count(&together);
}

/* The first sample of it shows where its counts stand, and which processors it may use. */
static void sample_stepper(uint32_t tid)
{
    pki_thread_cpu t;
    if (!pki_thread_cpu_read(x.root, tid, true, &t))
        return;
    if (tid == x.stepper) {
        x.sum.forced += pki_saturating_sub(t.forced, x.forced);
        x.sum.own += pki_saturating_sub(t.own, x.own);
    }
    if (!x.stepper)
        x.heat = pki_heat_read(x.root, &t.allowed);
    x.stepper = tid;
    x.forced = t.forced;
    x.own = t.own;
    pki_cpus_add(&x.allowed, &t.allowed);
}

static void sample_clock(void)
{
    double now, most;
    if (!pki_clock_rates_read(x.root, &x.allowed, &now, &most))
        return;
    x.sum.clock_mean += now * 1e3; /* the sum, up to the end */
    x.sum.clock_most = most * 1e3;
    x.clocks++;
}

void pki_cpu_side_poll(uint32_t stepper, bool now)
{
    uint64_t ns = pki_monotonic_ns(), elapsed = x.last ? ns - x.last : 0;
    bool early = x.last && elapsed < x.interval;
    if (!stepper || !x.root || (early && (!now || elapsed < INTERVAL / 10)))
        return;
    sample_stepper(stepper);
    sample_threads(elapsed);
    if (elapsed)
        sample_clock();
    x.sum.looks += elapsed > 0;
    x.last = ns;
}

void pki_cpu_side_switches(uint64_t *forced, uint64_t *own)
{
    *forced = x.sum.forced;
    *own = x.sum.own;
}

/* ---- the end ---- */

static void add_nodes(pki_cpu_side *sum)
{
    pki_nodes nodes;
    uint64_t largest = 0;
    if (!pki_nodes_read(x.root, &x.allowed, &nodes))
        return;
    sum->nodes = nodes.count;
    for (unsigned i = 0; i < PKI_NODES_MOST; i++) {
        *(nodes.ours[i] ? &sum->near_bytes : &sum->far_bytes) += nodes.bytes[i];
        sum->own_nodes += nodes.ours[i];
        largest = PKI_MAX(largest, nodes.bytes[i]);
    }
    if (sum->near_bytes + sum->far_bytes)
        sum->largest_node = (double)largest / (double)(sum->near_bytes + sum->far_bytes);
}

static void add_quota(pki_cpu_side *sum)
{
    pki_quota now;
    pki_quota_read(x.root, &now);
    sum->quota = now.processors;
    sum->quota_periods = pki_saturating_sub(now.periods, x.quota.periods);
    sum->quota_throttled = pki_saturating_sub(now.throttled, x.quota.throttled);
    sum->quota_throttled_time = pki_saturating_sub(now.throttled_ns, x.quota.throttled_ns);
}

pki_cpu_side pki_cpu_side_end(void)
{
    pki_cpu_side sum = x.sum;
    if (!sum.looks)
        return (pki_cpu_side){.looks = 0};
    sum.busy /= (double)sum.looks;
    sum.clock_mean = x.clocks ? sum.clock_mean / x.clocks : 0;
    sum.allowed = pki_cpus_count(&x.allowed);
    sum.heat_events = pki_saturating_sub(pki_heat_read(x.root, &x.allowed), x.heat);
    add_quota(&sum);
    add_nodes(&sum);
    return sum;
}
