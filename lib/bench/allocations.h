/* lib/bench/allocations.h - allocations of the whole process while they are counted. They
 * are told us by whoever stands in front of malloc: PK_BENCH_COUNT_ALLOCATIONS in pk/bench.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Does anybody stand there? Tries it with one allocation. */
bool pki_bench_allocations_seen(void);

void pki_bench_allocations_start(void); /* from zero */
void pki_bench_allocations_stop(void);
void pki_bench_allocations_read(uint64_t *count, uint64_t *bytes);
