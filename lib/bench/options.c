/* Options of a benchmark: checked, and made whole. bench/case.h, pk/bench.h. */
#include "bench/case.h"

#include "base/compiler.h"
#include "bench/fail.h"

#include <math.h>
#include <string.h>

#define OLDEST_SIZE 16 /* up to `cold` */

static bool tail_is_zero(const struct pk_bench_options *given, size_t known)
{
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = known; i < given->size; i++)
        if (bytes[i])
            return false;
    return true;
}

static pk_status copy(struct pk_bench_options *whole, const struct pk_bench_options *given)
{
    memset(whole, 0, sizeof *whole);
    if (!given)
        return PK_OK;
    if (given->size < OLDEST_SIZE)
        return pki_bench_fail(PK_EINVAL,
                              "pk_bench_options.size is not set (use pk_bench_options(...))");
    if (given->size > sizeof *whole && !tail_is_zero(given, sizeof *whole))
        return pki_bench_fail(PK_EINVAL, "an option of a newer perfkit is set in pk_bench_options");
    memcpy(whole, given, PKI_MIN((size_t)given->size, sizeof *whole));
    whole->size = sizeof *whole;
    return PK_OK;
}

static bool share(double value, double below)
{
    return value == 0 || (value > 0 && value < below);
}

static pk_status check(const struct pk_bench_options *o)
{
    if (o->clock > PK_BENCH_CLOCK_GPU)
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.clock is none of pk_bench_clock");
    if (o->threads > PKI_BENCH_THREADS_MOST)
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.threads is above %d",
                              PKI_BENCH_THREADS_MOST);
    if (!share(o->precision, 1))
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.precision is not between 0 and 1");
    if (!share(o->confidence, 1) || (o->confidence > 0 && o->confidence < 0.5))
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.confidence is not between 0.5 and 1");
    if (o->max_time && o->max_time < o->min_time)
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.max_time is below min_time");
    if (o->max_samples && o->max_samples < o->min_samples)
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.max_samples is below min_samples");
    if (o->clock == PK_BENCH_CLOCK_GPU && o->threads > 1)
        return pki_bench_fail(PK_EINVAL, "a benchmark on a GPU's stream has one thread");
    if (o->cold && o->iterations > 1)
        return pki_bench_fail(PK_EINVAL, "with pk_bench_options.cold a sample is one iteration");
    return PK_OK;
}

#define DEFAULT(field, value) (o->field = o->field > 0 ? o->field : (value))
#define MS 1000000u

static void fill(struct pk_bench_options *o)
{
    DEFAULT(threads, 1);
    DEFAULT(precision, 0.01);
    DEFAULT(confidence, 0.95);
    DEFAULT(min_time, PKI_MIN(100 * MS, o->max_time ? o->max_time : UINT64_MAX));
    DEFAULT(max_time, PKI_MAX(2000 * MS, o->min_time));
    DEFAULT(min_samples, PKI_MIN(20, o->max_samples ? o->max_samples : UINT32_MAX));
    DEFAULT(max_samples, PKI_MAX(100000, o->min_samples));
    DEFAULT(max_warmup, 500 * MS);
    DEFAULT(seed, 1);
    if (o->cold)
        o->iterations = 1;
}

pk_status pki_bench_options_fill(struct pk_bench_options *whole,
                                 const struct pk_bench_options *given)
{
    pk_status status = copy(whole, given);
    if (status == PK_OK)
        status = check(whole);
    if (status == PK_OK)
        fill(whole);
    return status;
}
