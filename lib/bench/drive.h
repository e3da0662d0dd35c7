/* lib/bench/drive.h - benchmarks driven from outside, one sample of another build after each of
 * this one's. For `pk bench-ab`, which finds these functions in the builds that it loads, and for
 * what measures perfkit itself: libpkbench.so exports them, but they are no part of its interface.
 */
#pragma once

#include <pk/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many benchmarks are registered, each combination of parameters counted, and the name of each
 * in order of registration: "sum/n:1024", valid as long as the module is loaded. NULL beyond the
 * last one, or without memory. */
PK_API size_t pk_bench_instance_count_(void);
PK_API const char *pk_bench_instance_name_(size_t index);

typedef struct pki_bench_sample {
    double wall, cpu, time; /* ns of the whole sample, overhead subtracted; time: what counts */
    uint64_t iterations;    /* of each thread */
} pki_bench_sample;

typedef struct pki_bench_handle pki_bench_handle;

/* Set-up and threads of one of them; close tears down. iterations 0: as many as sample_time takes,
 * found at the first call after open by running it. PK_ENOTSUP: skipped; pk_error_message() has the
 * reason. A handle belongs to one thread at a time. */
PK_API pk_status pk_bench_open_(size_t index, pki_bench_handle **handle);
PK_API pk_status pk_bench_take_(pki_bench_handle *handle, uint64_t iterations,
                                pki_bench_sample *sample);
PK_API void pk_bench_close_(pki_bench_handle *handle);

#ifdef __cplusplus
}
#endif
