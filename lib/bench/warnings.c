/* What about a machine spoils measurements, and which machines are of one kind:
 * bench/environment.h. */
#include "bench/environment.h"

#include "base/compiler.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- fingerprint ---- */

/* FNV-1a */
static uint64_t mix(uint64_t hash, const void *data, size_t n)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * 0x100000001B3u;
    return hash;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return mix(hash, text, strlen(text) + 1);
}

static uint64_t mix_number(uint64_t hash, uint64_t number)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(number >> (8 * i));
    return mix(hash, bytes, sizeof bytes);
}

uint64_t pki_bench_fingerprint(const pki_bench_environment *e)
{
    const char *const texts[] = {e->cpu, e->architecture, e->governor,        e->turbo,
                                 e->smt, e->container,    e->virtual_machine, e->gpu};
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < PKI_COUNT_OF(texts); i++)
        hash = mix_text(hash, texts[i]);
    hash = mix_number(hash, e->cpus_online);
    hash = mix_number(hash, (uint64_t)(e->cgroup_cpus * 1000));
    for (size_t i = 0; i < e->cache_count; i++)
        hash = mix_number(hash, e->caches[i].bytes);
    return hash;
}

/* ---- warnings ---- */

typedef struct list {
    pki_bench_warning *at;
    size_t count;
} list;

static PKI_PRINTF(3, 4) void warn(list *l, const char *name, const char *format, ...)
{
    if (l->count == PKI_BENCH_WARNINGS)
        return;
    va_list args;
    pki_bench_warning *made = &l->at[l->count++];
    made->name = name;
    va_start(args, format);
    vsnprintf(made->text, sizeof made->text, format, args);
    va_end(args);
}

static void warn_of_builds(list *l, const pki_bench_environment *e)
{
    if (!e->optimized)
        warn(l, "debug-build", "the benchmarks are compiled without optimisation");
    else if (!e->library_optimized)
        warn(l, "debug-build", "perfkit is compiled without optimisation: its loops cost more");
    if (e->sanitized)
        warn(l, "sanitizer", "a sanitizer is built in: times are of the instrumented program");
}

static void warn_of_clocks(list *l, const pki_bench_environment *e, const pki_bench_overhead *o)
{
    if (*e->governor && strcmp(e->governor, "performance") != 0)
        warn(l, "governor",
             "the governor is \"%s\": the clock follows the load (performance holds"
             " it)",
             e->governor);
    if (strcmp(e->turbo, "on") == 0)
        warn(l, "turbo", "turbo is on: the clock depends on temperature and on other cores");
    if (strcmp(e->smt, "on") == 0)
        warn(l, "smt", "SMT is on: what runs on the core's other thread slows this one");
    if (o->step > 100 || o->clock > 200)
        warn(l, "clock-coarse", "the clock (%s) takes %d ns to read, in steps of %d ns",
             *e->clock_source ? e->clock_source : "unknown", (int)o->clock, (int)o->step);
    if (o->unsure > PKI_BENCH_UNSURE)
        warn(l, "calibration",
             "the cost of perfkit's loop is uncertain by %.1f ns: only what is certain is"
             " subtracted",
             o->unsure);
}

static void warn_of_others(list *l, const pki_bench_environment *e)
{
    if (e->load[0] > 0.5 && e->load[0] > 0.1 * e->cpus_online)
        warn(l, "load", "others are running: a load of %d.%02d on %u processors", (int)e->load[0],
             (int)(e->load[0] * 100) % 100, e->cpus_online);
    if (e->cpus_allowed == 1)
        warn(l, "one-cpu", "one processor only: everything else runs in between");
    if (e->cgroup_cpus > 0 && e->cgroup_cpus < e->cpus_online)
        warn(l, "cgroup-limit", "the cgroup is stopped beyond %d.%02d of %u processors",
             (int)e->cgroup_cpus, (int)(e->cgroup_cpus * 100) % 100, e->cpus_online);
    if (*e->virtual_machine)
        warn(l, "virtual-machine", "a virtual machine (%s): its neighbours take time unseen",
             e->virtual_machine);
}

size_t pki_bench_warnings(const pki_bench_environment *e, const pki_bench_overhead *overhead,
                          pki_bench_warning warnings[PKI_BENCH_WARNINGS])
{
    list l = {warnings, 0};
    warn_of_builds(&l, e);
    warn_of_clocks(&l, e, overhead);
    warn_of_others(&l, e);
    return l.count;
}
