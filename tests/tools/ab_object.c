/* ab_object.c - a build for `pk bench-ab` whose times are made up: what pk/bench.h drives
 * benchmarks by, and no clock. -DTIME=ns of an iteration; -DALONE: has a benchmark more; -DBROKEN:
 * dies amid a launch; -DBEFORE: has the names of before there was a libpkbench.
 */
#ifdef BEFORE
#define pk_bench_instance_count_ pk_bench_list
#define pk_bench_instance_name_ pk_bench_list_name
#define pk_bench_open_ pk_bench_open
#define pk_bench_take_ pk_bench_take
#define pk_bench_close_ pk_bench_close
#endif

#include "bench/drive.h"

#include <stdlib.h>

#ifndef TIME
#define TIME 100.0
#endif
#ifdef ALONE
#define COUNT 4
#else
#define COUNT 3
#endif

static const char *const names[] = {"steady", "skipped", "scattered", "alone"};
static unsigned taken;

struct pki_bench_handle {
    size_t index;
};

size_t pk_bench_instance_count_(void)
{
    return COUNT;
}

const char *pk_bench_instance_name_(size_t index)
{
    return index < COUNT ? names[index] : NULL;
}

const char *pk_error_message(void)
{
    return "not on this machine";
}

pk_status pk_bench_open_(size_t index, pki_bench_handle **handle)
{
    *handle = index == 1 ? NULL : malloc(sizeof **handle);
    if (*handle)
        (*handle)->index = index;
    return *handle ? PK_OK : PK_ENOTSUP;
}

/* Every seventh batch is hit by a burst, and "scattered" has luck of its own in each batch. */
pk_status pk_bench_take_(pki_bench_handle *handle, uint64_t iterations, pki_bench_sample *sample)
{
    double each = (double)(TIME);
#ifdef BROKEN
    abort();
#endif
    taken++;
    if (taken % 7 == 0)
        each *= 10;
    if (handle->index == 2)
        each *= 1 + (double)((uintptr_t)&taken / 4096 * 2654435761u % 1000) / 1000;
    sample->iterations = iterations ? iterations : 50;
    sample->wall = sample->cpu = sample->time = each * (double)sample->iterations;
    return PK_OK;
}

void pk_bench_close_(pki_bench_handle *handle)
{
    free(handle);
}
