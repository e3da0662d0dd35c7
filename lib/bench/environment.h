/* lib/bench/environment.h - the machine that benchmarks ran on, and what about it spoils
 * measurements */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/overhead.h"

/* ---- the processor's caches, as the kernel lists them ---- */

#define PKI_BENCH_CACHES 8

typedef struct pki_bench_cache {
    char type[16];           /* "Data", "Instruction", "Unified" */
    unsigned level, sharing; /* processors that share one */
    size_t bytes;
} pki_bench_cache;

/* Of those that hold data; 0: unknown. */
size_t pki_bench_largest_cache(void);

/* ---- the machine that benchmarks ran on, and what about it spoils measurements ---- */

/* Text that is not known is "", numbers are 0; on and off are "on", "off" or "unknown". */
typedef struct pki_bench_environment {
    char host[64], cpu[128], architecture[32];
    uint32_t cpus_online, cpus_allowed, numa_nodes;
    double mhz; /* nominal */
    pki_bench_cache caches[PKI_BENCH_CACHES];
    size_t cache_count;
    char governor[32], turbo[8], smt[8], aslr[8];
    double load[3];
    double cgroup_cpus; /* 0: no limit */
    uint64_t cgroup_memory_bytes;
    char container[32], virtual_machine[64];
    char kernel[96], libc[32], clock_source[32];
    char gpu[96], driver[96];
    char compiler[96], flags[192];     /* of the benchmarks */
    bool optimized, library_optimized; /* the benchmarks, perfkit */
    bool sanitized;
} pki_bench_environment;

/* Looks at the system; `root` stands before every path ("" for this machine). The build is not
 * filled in. */
void pki_bench_environment_read(pki_bench_environment *e, const char *root);

/* The same on the same kind of machine. */
uint64_t pki_bench_fingerprint(const pki_bench_environment *e);

#define PKI_BENCH_WARNINGS 16
typedef struct pki_bench_warning {
    const char *name;
    char text[160];
} pki_bench_warning;

/* How many. */
size_t pki_bench_warnings(const pki_bench_environment *e, const pki_bench_overhead *overhead,
                          pki_bench_warning warnings[PKI_BENCH_WARNINGS]);
