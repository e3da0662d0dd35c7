/* Buckets and quantiles of durations: over all 64 bits, and against exact ones. */
#include "stats/slot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw.h"
#include "valgrind.h"

#include "base/memory.h"

#define SAMPLES (is_slow() ? 20000u : 100000u)
#define HOUR 3600000000000ull

static double draw_unit(void)
{
    return ((double)(draw() >> 11) + 0.5) / 9007199254740992.0;
}

/* ---- one bucket ---- */

static void expect_near(uint64_t value)
{
    uint32_t bucket = pki_bucket(value);
    long double middle = (long double)pki_bucket_middle(bucket);
    assert_true(bucket < PK_STATS_BUCKETS);
    assert_true(fabsl(middle - (long double)value) <= (long double)value / 128);
    if (value < 128)
        assert_true(bucket == value && middle == (long double)value);
}

static void error_is_bounded_everywhere(void **state)
{
    (void)state;
    for (uint64_t v = 0; v < 100000; v++)
        expect_near(v);
    for (int shift = 0; shift < 64; shift++)
        for (uint64_t k = 0; k < 64; k++) {
            uint64_t first = (64 + k) << shift >> 6; /* where buckets begin, and their neighbours */
            expect_near(first);
            expect_near(first - (first > 0));
            expect_near(first + (first < UINT64_MAX));
        }
    random_state = 1;
    for (int i = 0; i < 1000000; i++)
        expect_near(draw() >> (draw() % 64));
    expect_near(UINT64_MAX);
    assert_int_equal(pki_bucket(UINT64_MAX), PK_STATS_BUCKETS - 1);
}

/* The largest value of bucket b and the smallest of b + 1 are neighbours: nothing is left out,
 * nothing overlaps. */
static void buckets_follow_each_other(void **state)
{
    uint64_t first = 0;
    (void)state;
    for (uint32_t b = 0; b < PK_STATS_BUCKETS; b++) {
        uint32_t shift = b < 128 ? 0 : (b >> 6) - 1;
        uint64_t last = first + (((uint64_t)1 << shift) - 1);
        assert_int_equal(pki_bucket(first), b);
        assert_int_equal(pki_bucket(last), b);
        double middle = pki_bucket_middle(b);
        assert_true(middle >= (double)first && middle <= (double)last);
        first = last + 1;
    }
    assert_int_equal(first, 0); /* all 2^64 values */
}

/* ---- distributions ---- */

#define ID 3

static pki_spans spans;
static pki_table table;
static pki_slot *slot;
static pk_stats *stats;
static uint64_t *samples;

static int open_table(void **state)
{
    (void)state;
    pki_owned file;
    if (!pki_mem_file(&file, "test") ||
        !pki_spans_map(&spans, &file, (size_t)16 << 20, sizeof(uint64_t), 0))
        return -1;
    stats = malloc(sizeof *stats);
    samples = malloc(SAMPLES * sizeof *samples);
    if (!stats || !samples)
        return -1;
    memset(&table, 0, sizeof table);
    slot = pki_table_add(&spans, &table, ID, PK_OTHER);
    random_state = 88172645463325252ull;
    return slot ? 0 : -1;
}

static int close_table(void **state)
{
    (void)state;
    pki_spans_unmap(&spans);
    free(stats);
    free(samples);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void take_stats(double unit_ns)
{
    pki_stats_begin(stats);
    pki_stats_add_slot(stats, slot);
    pki_stats_finish(stats, unit_ns);
}

/* The smallest rank whose share of the samples is q or more. */
static uint64_t exact_quantile(double q, size_t n)
{
    size_t about = (size_t)(q * (double)n), rank = about > 2 ? about - 2 : 1;
    while (rank < n && (double)rank / (double)n < q)
        rank++;
    return samples[rank - 1];
}

static void expect_quantiles(size_t n, double unit_ns)
{
    static const double quantiles[] = {0,   0.001, 0.01, 0.1,   0.25,   0.5, 0.75,
                                       0.9, 0.95,  0.99, 0.999, 0.9999, 1};
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        double exact = (double)exact_quantile(quantiles[i], n) * unit_ns;
        double got = (double)pk_stats_quantile(stats, quantiles[i]);
        double rounding = unit_ns == 1.0 ? 0 : 0.5; /* to whole nanoseconds */
        if (fabs(got - exact) > exact / 100 + rounding)
            fail_msg("p%g is %.0f, exact %.1f", 100 * quantiles[i], got, exact);
    }
}

static void expect_moments(size_t n, double unit_ns)
{
    long double above = 0, squares = 0; /* the smallest: exact enough in 64 bits, too (valgrind) */
    uint64_t whole = 0;
    for (size_t i = 0; i < n; i++) {
        above += (long double)(samples[i] - samples[0]);
        whole += samples[i];
    }
    above /= (long double)n;
    for (size_t i = 0; i < n; i++) {
        long double apart = (long double)(samples[i] - samples[0]) - above;
        squares += apart * apart;
    }
    long double mean = (long double)samples[0] + above;
    double stddev = (double)sqrtl(squares / (long double)n) * unit_ns;
    assert_int_equal(stats->count, n);
    assert_true(fabs(stats->stddev - stddev) <= stddev * 1e-9);
    assert_true(fabs(stats->mean - (double)mean * unit_ns) <= (double)mean * unit_ns * 1e-12);
    if (unit_ns == 1.0) {
        assert_int_equal(stats->sum, whole);
        assert_int_equal(stats->min, samples[0]);
        assert_int_equal(stats->max, samples[n - 1]);
    }
}

static void enter(size_t n)
{
    for (size_t i = 0; i < n; i++)
        pki_table_count(&spans, &table, slot, samples[i]);
}

static void expect_all(size_t n)
{
    enter(n);
    qsort(samples, n, sizeof *samples, by_value);
    take_stats(1.0);
    expect_moments(n, 1.0);
    expect_quantiles(n, 1.0);
    assert_int_equal(pk_stats_quantile(stats, 0), samples[0]);
    assert_int_equal(pk_stats_quantile(stats, 1), samples[n - 1]);
    take_stats(1 / 2.9);
    expect_moments(n, 1 / 2.9);
    expect_quantiles(n, 1 / 2.9);
    pki_slot_clear(slot, ID);
}

static void uniform(void **state)
{
    static const uint64_t tops[] = {10, 100, 1000, 1000000, HOUR};
    (void)state;
    for (size_t k = 0; k < sizeof tops / sizeof *tops; k++) {
        for (size_t i = 0; i < SAMPLES; i++)
            samples[i] = 1 + draw() % tops[k];
        expect_all(SAMPLES);
    }
}

static double draw_normal(void)
{
    return sqrt(-2 * log(draw_unit())) * cos(6.283185307179586 * draw_unit());
}

static void log_normal(void **state)
{
    static const double medians[] = {50, 3000, 1e6, 1e9};
    (void)state;
    for (size_t k = 0; k < sizeof medians / sizeof *medians; k++) {
        for (size_t i = 0; i < SAMPLES; i++)
            samples[i] = 1 + (uint64_t)(medians[k] * exp(draw_normal()));
        expect_all(SAMPLES);
    }
}

static void bimodal(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++)
        samples[i] = draw() % 100 < 95 ? 900 + draw() % 200 : 3000000000 + draw() % 900000000;
    expect_all(SAMPLES);
}

static void constant(void **state)
{
    static const uint64_t values[] = {1, 2, 127, 128, 129, 1000, 1000001, 59999999999, HOUR};
    (void)state;
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        for (size_t i = 0; i < SAMPLES; i++)
            samples[i] = values[k];
        expect_all(SAMPLES);
        assert_true(stats->stddev == 0);
        assert_int_equal(pk_stats_quantile(stats, 0.5),
                         llround((double)values[k] / 2.9)); /* never outside min .. max */
    }
}

/* As many of each octave: from the smallest to the largest that there is. */
static void all_octaves(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++)
        samples[i] = draw() >> (12 + draw() % 52);
    expect_all(SAMPLES);
    for (size_t i = 0; i < 9; i++)
        samples[i] = draw() >> 4; /* squares and sums beyond 64 bits */
    expect_all(9);
}

/* Close together and far from zero: what a difference of two large sums would get wrong. */
static void small_deviation(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++)
        samples[i] = HOUR + (i & 1);
    expect_all(SAMPLES);
    assert_true(fabs(stats->stddev - 0.5 / 2.9) < 1e-9);
}

/* Two samples whose distance is known: every carry and borrow of the wide sums. */
static void two_samples(void **state)
{
    (void)state;
    for (int shift = 2; shift < 62; shift++)
        for (int i = 0; i < 100; i++) {
            uint64_t x = draw() >> shift, apart = (uint64_t)1 << draw() % 32;
            pki_slot other;
            pki_slot_clear(slot, ID);
            pki_slot_clear(&other, ID);
            other.count = 1;
            pki_slot_add_moments(&other, x + apart);
            pki_table_count(&spans, &table, slot, x);
            pki_stats_begin(stats);
            pki_stats_add_slot(stats, slot);
            pki_stats_add_slot(stats, &other);
            pki_stats_finish(stats, 1.0);
            assert_true(stats->stddev == (double)apart / 2 && stats->sum == 2 * x + apart);
        }
}

static void few_samples(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 40; n++) {
        for (size_t i = 0; i < n; i++)
            samples[i] = i + 1;
        enter(n);
        take_stats(1.0);
        for (unsigned percent = 0; percent <= 100; percent++) {
            uint64_t rank = (percent * n + 99) / 100;
            assert_int_equal(pk_stats_quantile(stats, percent / 100.0), rank ? rank : 1);
        }
        pki_slot_clear(slot, ID);
    }
}

static void odd_questions(void **state)
{
    (void)state;
    take_stats(1.0);
    assert_true(stats->count == 0 && stats->min == 0 && stats->max == 0 && stats->mean == 0 &&
                stats->stddev == 0);
    assert_int_equal(pk_stats_quantile(stats, 0.5), 0);
    samples[0] = 5;
    samples[1] = 7;
    enter(2);
    take_stats(1.0);
    assert_int_equal(pk_stats_quantile(stats, -1), 5);
    assert_int_equal(pk_stats_quantile(stats, 2), 7);
    assert_int_equal(pk_stats_quantile(stats, (double)NAN), 5);
    assert_int_equal(pk_stats_quantile(stats, (double)INFINITY), 7);
    pki_stats_hand_out(stats);
    for (int i = 0; i < 4; i++)
        assert_int_equal(stats->spare[i], 0);
    assert_int_equal(pk_stats_quantile(stats, 0.5), 5); /* without knowing which octaves */
}

/* What is used again looks as what is used first. */
static void used_again(void **state)
{
    pk_stats *first = malloc(sizeof *first);
    uint16_t used[PK_STATS_BUCKETS];
    (void)state;
    pki_stats_begin(stats);
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t bucket = i * 37 % PK_STATS_BUCKETS;
        pki_stats_again(stats);
        pki_stats_begin(first);
        assert_memory_equal(stats, first, sizeof *first);
        assert_int_equal(pki_stats_used(stats, used), 0);
        pki_stats_count(stats, bucket, 1);
        pki_stats_count(stats, PK_STATS_BUCKETS - 1, 3);
        assert_int_equal(pki_stats_used(stats, used), 2);
        assert_true(used[0] == bucket && used[1] == PK_STATS_BUCKETS - 1);
    }
    free(first);
}

#define on_table(test) cmocka_unit_test_setup_teardown(test, open_table, close_table)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_is_bounded_everywhere),
        cmocka_unit_test(buckets_follow_each_other),
        on_table(uniform),
        on_table(log_normal),
        on_table(bimodal),
        on_table(constant),
        on_table(all_octaves),
        on_table(small_deviation),
        on_table(two_samples),
        on_table(few_samples),
        on_table(odd_questions),
        on_table(used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
