/* lib/bench/registry.h - the benchmarks of this process, one instance per combination of
 * parameters. Instances are made at the first look after their registration and stay for ever. */
#pragma once

#include "bench/case.h"

#define PKI_BENCH_VALUES_MOST 4096        /* of an axis */
#define PKI_BENCH_COMBINATIONS_MOST 65536 /* of a benchmark */

typedef struct pki_bench_instance {
    const pk_bench_entry *entry;
    size_t family, member; /* number of the benchmark, of the combination within it */
    char *name;
    uint32_t threads; /* 0: as the options say */
    pki_bench_arguments arguments;
} pki_bench_instance;

/* How many there are, all expanded. PK_ENOMEM, or PK_EINVAL for parameters that are none. */
pk_status pki_bench_instances(size_t *count);

/* NULL beyond the last one. The pointer stays valid. */
const pki_bench_instance *pki_bench_instance_at(size_t index);

/* The case of an instance. Fields of `over` that are not zero win over the benchmark's own options;
 * NULL: none. */
pk_status pki_bench_instance_case(const pki_bench_instance *instance,
                                  const pki_bench_engine *engine,
                                  const struct pk_bench_options *over, pki_bench_case *c);
