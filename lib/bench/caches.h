/* lib/bench/caches.h - the processor's caches, as the kernel lists them. */
#pragma once

#include <stddef.h>

#define PKI_BENCH_CACHES 8

typedef struct pki_bench_cache {
    char type[16];           /* "Data", "Instruction", "Unified" */
    unsigned level, sharing; /* processors that share one */
    size_t bytes;
} pki_bench_cache;

/* Of the first processor; how many. */
size_t pki_bench_caches(pki_bench_cache caches[PKI_BENCH_CACHES]);

/* Numbers in a list of the kernel's: 5 in "0-3,8". */
unsigned pki_bench_processors_in(const char *list);

/* Of those that hold data; 0: unknown. */
size_t pki_bench_largest_cache(void);
