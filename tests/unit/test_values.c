/* Distributions of counters: doubles of either sign, from the smallest to the largest. */
#include "stats/tally.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "stats/buckets.h"
#include "stats/slot.h"
#include "valgrind.h"

#define SAMPLES (is_slow() ? 20000u : 100000u)

#define ID 3

static pki_spans spans;
static pki_table table;
static pki_values *values;
static pki_value_stats stats;
static double *samples;

static int open_values(void **state)
{
    (void)state;
    pki_owned file;
    if (!pki_mem_file(&file, "test") ||
        !pki_spans_map(&spans, &file, (size_t)16 << 20, sizeof(uint64_t), 0))
        return -1;
    samples = malloc(SAMPLES * sizeof *samples);
    memset(&table, 0, sizeof table);
    values = (pki_values *)pki_table_add(&spans, &table, ID, PKI_KIND_COUNTER);
    srand(1);
    return values && samples ? 0 : -1;
}

static int close_values(void **state)
{
    (void)state;
    pki_spans_unmap(&spans);
    pki_tally_finish(&stats.tally);
    free(samples);
    return 0;
}

/* What is in these values, and nothing else. */
static void read_values(const pki_values *from)
{
    pki_tally_finish(&stats.tally);
    memset(&stats, 0, sizeof stats);
    assert_true(pki_value_stats_add(&stats, from));
}

static void enter(size_t n)
{
    for (size_t i = 0; i < n; i++)
        pki_values_add(&spans, &table.pool, values, samples[i], i);
    read_values(values);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void expect_quantiles(size_t n)
{
    static const double quantiles[] = {0,    0.001, 0.01, 0.1,  0.25,  0.5,
                                       0.75, 0.9,   0.95, 0.99, 0.999, 1};
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        double exact = samples[pki_rank(quantiles[i], n) - 1];
        double got = pki_tally_quantile(&stats.tally, quantiles[i]);
        if (!(fabs(got - exact) <= fabs(exact) / 128))
            fail_msg("p%g is %g, exact %g", 100 * quantiles[i], got, exact);
    }
}

static void expect_all(size_t n)
{
    long double sum = 0, size = 0;
    enter(n);
    double last = samples[n - 1];
    for (size_t i = 0; i < n; i++)
        sum += (long double)samples[i], size += fabsl((long double)samples[i]);
    qsort(samples, n, sizeof *samples, by_value);
    assert_int_equal(stats.tally.moments.count, n);
    assert_true(stats.tally.moments.min == samples[0] &&
                stats.tally.moments.max == samples[n - 1] && stats.last == last);
    assert_true(fabs(pki_moments_sum(&stats.tally.moments) - (double)sum) <= (double)size * 1e-9);
    expect_quantiles(n);
    assert_true(pki_tally_quantile(&stats.tally, 0) == samples[0] &&
                pki_tally_quantile(&stats.tally, 1) == samples[n - 1]);
    pki_values_clear(values, ID);
}

static double draw_unit(void)
{
    return (rand() + 0.5) / ((double)RAND_MAX + 1);
}

static void uniform_of_either_sign(void **state)
{
    static const double scales[] = {1e-15, 1e-3, 1, 1e3, 1e9, 1e18};
    (void)state;
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
        for (size_t i = 0; i < SAMPLES; i++)
            samples[i] = (draw_unit() - 0.3) * scales[k];
        expect_all(SAMPLES);
    }
}

static void every_magnitude(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        for (size_t i = 0; i < SAMPLES; i++)
            samples[i] = sign * exp2(-64 + 127 * draw_unit());
        expect_all(SAMPLES);
    }
    for (size_t i = 0; i < SAMPLES; i++)
        samples[i] = (rand() % 2 ? 1 : -1) * exp2(-64 + 127 * draw_unit());
    expect_all(SAMPLES);
}

/* Where octaves begin, and the doubles next to them. */
static void borders(void **state)
{
    (void)state;
    for (int exponent = -64; exponent < 63; exponent++)
        for (int side = -1; side <= 1; side++)
            for (int sign = -1; sign <= 1; sign += 2) {
                double v = ldexp(1, exponent),
                       next = side < 0 ? nextafter(v, 0) : nextafter(v, INFINITY);
                v = sign * (side == 0 ? v : next);
                if (fabs(v) < ldexp(1, -64))
                    continue;
                samples[0] = samples[1] = samples[2] = v;
                samples[3] = 2 * v;
                expect_all(4);
            }
}

static void zeros(void **state)
{
    static const double some[] = {0.0, -0.0, 0.0, 3, -3, 0.0, -0.0};
    (void)state;
    memcpy(samples, some, sizeof some);
    expect_all(7);
    samples[0] = samples[1] = samples[2] = 0;
    expect_all(3);
}

static void constants(void **state)
{
    static const double some[] = {1, -1, 0.1, 1.0 / 3, 1e18, -1e-18, 12345.678};
    (void)state;
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        for (size_t i = 0; i < 1000; i++)
            samples[i] = some[k];
        expect_all(1000);
        assert_true(pki_tally_quantile(&stats.tally, 0.5) ==
                    some[k]); /* never outside min .. max */
    }
}

/* Beyond the octaves that there are, only min and max are told apart, and nothing breaks. */
static void out_of_range(void **state)
{
    static const double some[] = {DBL_MAX,  -DBL_MAX, DBL_MIN, -DBL_MIN,
                                  4.9e-324, 1e300,    1e-300,  1e19};
    (void)state;
    memcpy(samples, some, sizeof some);
    enter(8);
    assert_int_equal(stats.tally.moments.count, 8);
    assert_true(stats.tally.moments.min == -DBL_MAX && stats.tally.moments.max == DBL_MAX &&
                stats.last == 1e19);
    double last = -DBL_MAX;
    for (double q = 0; q <= 1; q += 0.125) {
        double now = pki_tally_quantile(&stats.tally, q);
        assert_true(isfinite(now) && now >= last);
        last = now;
    }
    pki_values_clear(values, ID);
    samples[0] = samples[1] = 1e-30;
    enter(2);
    assert_true(pki_tally_quantile(&stats.tally, 0.5) == 1e-30);
}

static void buckets_count_every_value(void **state)
{
    uint64_t total = 0;
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++)
        samples[i] = (draw_unit() - 0.5) * exp2(200 * (draw_unit() - 0.5));
    enter(SAMPLES);
    for (size_t i = 0; i < stats.tally.used; i++)
        total += stats.tally.buckets[i].count;
    assert_int_equal(total, SAMPLES);
}

static void none(void **state)
{
    (void)state;
    enter(0);
    assert_true(stats.tally.moments.count == 0 && stats.tally.moments.min == 0 &&
                stats.tally.moments.max == 0 && pki_moments_sum(&stats.tally.moments) == 0);
    assert_true(pki_tally_quantile(&stats.tally, 0.5) == 0);
}

/* Values of several threads: the last one is the latest, whoever is added last. */
static void merged(void **state)
{
    pki_table other = {0};
    (void)state;
    pki_values *more = (pki_values *)pki_table_add(&spans, &other, ID, PKI_KIND_COUNTER);
    for (int i = 0; i < 1000; i++) {
        pki_values_add(&spans, &table.pool, values, i, 100 + (uint64_t)i);
        pki_values_add(&spans, &other.pool, more, -i, (uint64_t)i);
    }
    pki_table_merge(&spans, &table, &other);
    read_values(values);
    assert_true(stats.tally.moments.count == 2000 && pki_moments_sum(&stats.tally.moments) == 0 &&
                stats.tally.moments.min == -999 && stats.tally.moments.max == 999);
    assert_true(stats.last == 999 && stats.last_ticks == 1099);
    assert_true(fabs(pki_tally_quantile(&stats.tally, 0.25) + 500) < 5);
    assert_true(fabs(pki_tally_quantile(&stats.tally, 0.75) - 500) < 5);
    pki_value_stats_add(&stats, more); /* the same, by reading: counted again, last unchanged */
    assert_true(stats.tally.moments.count == 3000 && stats.last == 999 &&
                stats.tally.moments.min == -999);
    pki_values_clear(more, ID);
    pki_value_stats_add(&stats, more);
    assert_true(stats.tally.moments.count == 3000 && stats.tally.moments.min == -999 &&
                stats.tally.moments.max == 999);
}

static double near_8e10(size_t i)
{
    return i & 1 ? 8e10 + 1000 : 8e10 - 1000;
}

static double late_loss(size_t i)
{
    return 3e-4 + 1e-12 * (double)(i * 7919 % 1000);
}

static double of_either_sign(size_t i)
{
    (void)i;
    return (draw_unit() - 0.4) * exp2(40 * (draw_unit() - 0.5));
}

static void expect_same(const pki_dist *a, const pki_dist *b)
{
    assert_true(a->count == b->count && a->sum == b->sum && a->min == b->min && a->max == b->max);
    assert_true(a->mean == b->mean && a->stddev == b->stddev);
    assert_true(a->p50 == b->p50 && a->p90 == b->p90 && a->p95 == b->p95 && a->p99 == b->p99);
}

/* What is kept while recording, by two threads, and what is rebuilt from the trace of it. */
static void live_and_rebuilt(void **state)
{
    static double (*const value_of[])(size_t) = {near_8e10, late_loss, of_either_sign};
    static const size_t sizes[] = {1, 2, 10, 100, 20000};
    (void)state;
    for (size_t k = 0; k < 3; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            pki_table other = {0};
            pki_tally tally = {0};
            pki_values *more = (pki_values *)pki_table_add(&spans, &other, ID, PKI_KIND_COUNTER);
            for (size_t i = 0; i < sizes[s]; i++) {
                double value = value_of[k](i);
                pki_values_add(&spans, &table.pool, i % 3 ? values : more, value, i);
                assert_true(pki_tally_add(&tally, value, 1));
            }
            read_values(values);
            pki_value_stats_add(&stats, more);
            pki_dist live = pki_tally_dist(&stats.tally), rebuilt = pki_tally_dist(&tally);
            expect_same(&live, &rebuilt);
            if (k == 0 && sizes[s] > 1)
                assert_true(live.stddev == 1000 && live.mean == 8e10);
            pki_tally_finish(&tally);
            pki_values_clear(values, ID);
        }
}

#define on_values(test) cmocka_unit_test_setup_teardown(test, open_values, close_values)

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_values(uniform_of_either_sign),
        on_values(every_magnitude),
        on_values(borders),
        on_values(zeros),
        on_values(constants),
        on_values(out_of_range),
        on_values(buckets_count_every_value),
        on_values(none),
        on_values(merged),
        on_values(live_and_rebuilt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
