/* Distributions: tables of them, buckets and quantiles, and counters' values. */
#include "draw.h"
#include "valgrind.h"

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
#include "stats/tally.h"

/* ---- tables of distributions ---- */

/* Growth, overflowing buckets, merging, reuse, and no memory. */

static pki_spans spans;
static pki_table slots_a, slots_b;

static int open_spans(void **state)
{
    (void)state;
    pki_owned file;
    memset(&slots_a, 0, sizeof slots_a);
    memset(&slots_b, 0, sizeof slots_b);
    return pki_mem_file(&file, "test") &&
                   pki_spans_map(&spans, &file, (size_t)64 << 20, sizeof(uint64_t), 0)
               ? 0
               : -1;
}

static int close_spans(void **state)
{
    (void)state;
    pki_spans_unmap(&spans);
    return 0;
}

static pki_slot *add(pki_table *table, uint32_t id)
{
    pki_slot *slot = pki_table_add(&spans, table, id, PK_OTHER);
    assert_non_null(slot);
    return slot;
}

static uint64_t bucket_of(const pki_slot *slot, uint64_t value)
{
    return pki_slot_bucket(slot, pki_bucket(value));
}

static uint32_t *word_of(pki_slot *slot, uint64_t value)
{
    uint32_t bucket = pki_bucket(value);
    uint32_t *chunk = pki_follow(slot, slot->chunks[bucket / PKI_CHUNK_BUCKETS]);
    return &chunk[bucket % PKI_CHUNK_BUCKETS];
}

static void slots_by_id(void **state)
{
    (void)state;
    assert_null(pki_table_slot(&slots_a, 5));
    for (uint32_t id = 1; id < 3000; id += 7) {
        pki_slot *slot = add(&slots_a, id);
        assert_int_equal((uintptr_t)slot % PKI_LINE, 0);
        assert_int_equal(slot->id, id);
        assert_true(slot->count == 0 && slot->min == UINT64_MAX && slot->max == 0);
        pki_table_count(&spans, &slots_a, slot, id);
    }
    uint32_t seen = 0;
    for (const pki_slot *s = slots_a.first; s; s = pki_table_next(s))
        seen += s->count == 1 && s->max == s->id;
    assert_int_equal(seen, slots_a.used);
    assert_int_equal(slots_a.used, (3000 - 1 + 6) / 7);
    for (uint32_t id = 1; id < 3000; id++) /* growing has lost none */
        assert_true(id % 7 == 1 ? pki_table_slot(&slots_a, id)->sum == id
                                : !pki_table_slot(&slots_a, id));
    assert_ptr_equal(add(&slots_a, 8), pki_table_slot(&slots_a, 8));
    assert_non_null(add(&slots_a, 65535));
    assert_null(pki_table_slot(&slots_a, 65536));
}

/* design.md: a region pays only for the octaves that it touches. */
static void memory_of_a_typical_region(void **state)
{
    (void)state;
    pki_slot *slot = add(&slots_a, 3);
    char *before = slots_a.pool.spare;
    for (uint64_t v = 1000; v < 16000; v++)
        pki_table_count(&spans, &slots_a, slot, v);
    assert_int_equal(slots_a.pool.spare - before, 5 * (int)sizeof(pki_chunk));
    assert_true(sizeof(pki_slot) + 5 * sizeof(pki_chunk) <= 2048);
}

static void buckets_that_overflow(void **state)
{
    (void)state;
    pki_slot *slot = add(&slots_a, 3);
    pki_table_count(&spans, &slots_a, slot, 1000);
    *word_of(slot, 1000) = UINT32_MAX;
    assert_int_equal(slot->carry, 0);
    pki_table_count(&spans, &slots_a, slot, 1000);
    assert_int_equal(*word_of(slot, 1000), 0);
    assert_int_equal(bucket_of(slot, 1000), (uint64_t)1 << 32);
    pki_table_count(&spans, &slots_a, slot, 1000);
    assert_int_equal(bucket_of(slot, 1000), ((uint64_t)1 << 32) + 1);
    *word_of(slot, 1000) = UINT32_MAX;
    pki_table_count(&spans, &slots_a, slot, 1000);
    assert_int_equal(bucket_of(slot, 1000), (uint64_t)2 << 32);
    assert_int_equal(bucket_of(slot, 999999), 0);
}

static void overflow_in_a_merge(void **state)
{
    (void)state;
    pki_slot *from = add(&slots_a, 3), *to = add(&slots_b, 3);
    pki_table_count(&spans, &slots_a, from, 77);
    pki_table_count(&spans, &slots_b, to, 77);
    *word_of(from, 77) = 3000000000u;
    *word_of(to, 77) = 2000000000u;
    pki_slot_merge(&spans, &slots_b.pool, to, from);
    assert_int_equal(bucket_of(to, 77), 5000000000u);
    pki_slot_merge(&spans, &slots_b.pool, to, to); /* with a carry of its own */
    assert_int_equal(bucket_of(to, 77), 10000000000u);
    pki_slot_merge(&spans, &slots_a.pool, from, to);
    assert_int_equal(bucket_of(from, 77), 13000000000u);
}

static uint32_t slots_random_state = 1;

static uint64_t slots_draw(void)
{
    slots_random_state = slots_random_state * 1664525u + 1013904223u;
    uint64_t high = slots_random_state;
    slots_random_state = slots_random_state * 1664525u + 1013904223u;
    return (high << 32 | slots_random_state) >> (slots_random_state >> 8) % 50;
}

/* Two tables merged are one table that has seen everything. */
static void merged_is_the_same_as_one(void **state)
{
    static pk_stats one, merged;
    pki_table whole = {0};
    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint32_t id = 3 + (uint32_t)(slots_draw() % 40);
        uint64_t value = slots_draw();
        pki_table *part = i % 3 ? &slots_a : &slots_b;
        pki_slot *slot = add(part, id), *whole_slot = add(&whole, id);
        pki_table_count(&spans, part, slot, value);
        pki_table_count(&spans, &whole, whole_slot, value);
        slot->self += value / 2, whole_slot->self += value / 2;
        slot->bytes += value, whole_slot->bytes += value;
        slot->flops++, whole_slot->flops++;
    }
    pki_table_merge(&spans, &slots_b, &slots_a);
    assert_int_equal(slots_b.used, whole.used);
    for (const pki_slot *s = whole.first; s; s = pki_table_next(s)) {
        pki_stats_begin(&one);
        pki_stats_add_slot(&one, s);
        pki_stats_finish(&one, 1.0);
        pki_stats_begin(&merged);
        pki_stats_add_slot(&merged, pki_table_slot(&slots_b, s->id));
        pki_stats_finish(&merged, 1.0);
        assert_true(one.count > 0);
        assert_memory_equal(&one, &merged, sizeof one);
    }
}

static void squares_beyond_64_bits(void **state)
{
    (void)state;
    pki_table_count(&spans, &slots_a, add(&slots_a, 3), 4000000000u);
    pki_table_count(&spans, &slots_b, add(&slots_b, 3), 4000000000u);
    pki_table_merge(&spans, &slots_b, &slots_a);
    pki_slot *slot = pki_table_slot(&slots_b, 3);
    assert_int_equal(slot->squares_high, 1);
    assert_int_equal(slot->squares_low, 2 * 16000000000000000000u); /* modulo 2^64 */
}

static void an_empty_table_adds_nothing(void **state)
{
    (void)state;
    pki_table_count(&spans, &slots_a, add(&slots_a, 3), 100);
    pki_table_merge(&spans, &slots_a, &slots_b);
    pki_table_merge(&spans, &slots_b, &slots_a);
    pki_slot *slot = pki_table_slot(&slots_b, 3);
    assert_true(slot->count == 1 && slot->min_before == 100 && slot->max_before == 100);
}

/* 100,000 short threads in bounded memory: what a table has taken it takes again. */
static void reset_and_reuse(void **state)
{
    uint64_t used = 0;
    (void)state;
    pki_table_reset(&spans, &slots_a); /* of an empty one */
    for (int round = 0; round < 50; round++) {
        for (uint32_t id = 1; id < 400; id++) {
            pki_slot *slot = add(&slots_a, id);
            assert_true(slot->count == 0 && slot->sum == 0 && slot->min == UINT64_MAX &&
                        slot->carry == 0);
            pki_table_count(&spans, &slots_a, slot, (uint64_t)id << round % 30);
            assert_int_equal(bucket_of(slot, (uint64_t)id << round % 30), 1);
        }
        assert_int_equal(slots_a.used, 399);
        used = round == 0 ? *spans.used : used;
        assert_int_equal(*spans.used, used);
        pki_table_reset(&spans, &slots_a);
        assert_null(pki_table_slot(&slots_a, 1));
        assert_null(slots_a.first);
    }
}

static void take_the_rest(void)
{
    for (size_t bytes = (size_t)1 << 25; bytes >= PKI_PAGE; bytes /= 2)
        while (pki_spans_claim(&spans, bytes))
            ;
}

/* Counts stay exact where there is no memory for buckets, and no slot is half made. */
static void without_room(void **state)
{
    uint32_t id = 3;
    (void)state;
    pki_slot *slot = add(&slots_a, id);
    take_the_rest();
    while (pki_table_add(&spans, &slots_a, id + 1, PK_OTHER))
        id++;
    assert_true(id > 3 && slots_a.used == id - 2);
    assert_null(pki_table_slot(&slots_a, id + 1));
    for (uint64_t v = 1; v; v <<= 1) /* more octaves than the rest of the span has room for */
        pki_table_count(&spans, &slots_a, slot, v);
    assert_int_equal(slot->count, 64);
    assert_int_equal(slot->sum, UINT64_MAX);
    assert_int_equal(slot->max, (uint64_t)1 << 63);
    assert_null(pki_table_add(&spans, &slots_b, 3, PK_OTHER));
    pki_table_merge(&spans, &slots_b, &slots_a);
    assert_int_equal(slots_b.used, 0);
    pki_table_reset(&spans, &slots_a); /* and there is room again */
    assert_non_null(pki_table_add(&spans, &slots_a, 3, PK_OTHER));
}

static void overflow_without_room(void **state)
{
    (void)state;
    pki_slot *slot = add(&slots_a, 3);
    pki_table_count(&spans, &slots_a, slot, 50);
    take_the_rest();
    while (pki_table_add(&spans, &slots_a, slots_a.used + 3, PK_OTHER))
        ;
    *word_of(slot, 50) = UINT32_MAX;
    pki_table_count(&spans, &slots_a, slot, 50);
    assert_int_equal(slot->count, 2);
    assert_int_equal(slot->sum, 100);
}

#define on_spans(test) cmocka_unit_test_setup_teardown(test, open_spans, close_spans)

static const struct CMUnitTest slots_tests[] = {
    on_spans(slots_by_id),
    on_spans(memory_of_a_typical_region),
    on_spans(buckets_that_overflow),
    on_spans(overflow_in_a_merge),
    on_spans(merged_is_the_same_as_one),
    on_spans(squares_beyond_64_bits),
    on_spans(an_empty_table_adds_nothing),
    on_spans(reset_and_reuse),
    on_spans(without_room),
    on_spans(overflow_without_room),
};

/* ---- buckets and quantiles of durations ---- */

/* Over all 64 bits, and against exact ones. */

#define SAMPLES (is_slow() ? 20000u : 100000u)
#define HOUR 3600000000000ull

static double draw_unit(void)
{
    return ((double)(draw() >> 11) + 0.5) / 9007199254740992.0;
}

/* -- one bucket -- */

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

/* -- distributions -- */

#define ID 3

static pki_spans hist_spans;
static pki_table table;
static pki_slot *slot;
static pk_stats *stats;
static uint64_t *samples;

static int open_table(void **state)
{
    (void)state;
    pki_owned file;
    if (!pki_mem_file(&file, "test") ||
        !pki_spans_map(&hist_spans, &file, (size_t)16 << 20, sizeof(uint64_t), 0))
        return -1;
    stats = malloc(sizeof *stats);
    samples = malloc(SAMPLES * sizeof *samples);
    if (!stats || !samples)
        return -1;
    memset(&table, 0, sizeof table);
    slot = pki_table_add(&hist_spans, &table, ID, PK_OTHER);
    random_state = 88172645463325252ull;
    return slot ? 0 : -1;
}

static int close_table(void **state)
{
    (void)state;
    pki_spans_unmap(&hist_spans);
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
        pki_table_count(&hist_spans, &table, slot, samples[i]);
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
            pki_table_count(&hist_spans, &table, slot, x);
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

static const struct CMUnitTest hist_tests[] = {
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

/* ---- distributions of counters ---- */

/* Doubles of either sign, from the smallest to the largest. */

static pki_spans values_spans;
static pki_table values_table;
static pki_values *values;
static pki_value_stats values_stats;
static double *values_samples;

static int open_values(void **state)
{
    (void)state;
    pki_owned file;
    if (!pki_mem_file(&file, "test") ||
        !pki_spans_map(&values_spans, &file, (size_t)16 << 20, sizeof(uint64_t), 0))
        return -1;
    values_samples = malloc(SAMPLES * sizeof *values_samples);
    memset(&values_table, 0, sizeof values_table);
    values = (pki_values *)pki_table_add(&values_spans, &values_table, ID, PKI_KIND_COUNTER);
    srand(1);
    return values && values_samples ? 0 : -1;
}

static int close_values(void **state)
{
    (void)state;
    pki_spans_unmap(&values_spans);
    pki_tally_finish(&values_stats.tally);
    free(values_samples);
    return 0;
}

/* What is in these values, and nothing else. */
static void read_values(const pki_values *from)
{
    pki_tally_finish(&values_stats.tally);
    memset(&values_stats, 0, sizeof values_stats);
    assert_true(pki_value_stats_add(&values_stats, from));
}

static void values_enter(size_t n)
{
    for (size_t i = 0; i < n; i++)
        pki_values_add(&values_spans, &values_table.pool, values, values_samples[i], i);
    read_values(values);
}

static int values_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void values_expect_quantiles(size_t n)
{
    static const double quantiles[] = {0,    0.001, 0.01, 0.1,  0.25,  0.5,
                                       0.75, 0.9,   0.95, 0.99, 0.999, 1};
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        double exact = values_samples[pki_rank(quantiles[i], n) - 1];
        double got = pki_tally_quantile(&values_stats.tally, quantiles[i]);
        if (!(fabs(got - exact) <= fabs(exact) / 128))
            fail_msg("p%g is %g, exact %g", 100 * quantiles[i], got, exact);
    }
}

static void values_expect_all(size_t n)
{
    long double sum = 0, size = 0;
    values_enter(n);
    double last = values_samples[n - 1];
    for (size_t i = 0; i < n; i++)
        sum += (long double)values_samples[i], size += fabsl((long double)values_samples[i]);
    qsort(values_samples, n, sizeof *values_samples, values_by_value);
    assert_int_equal(values_stats.tally.moments.count, n);
    assert_true(values_stats.tally.moments.min == values_samples[0] &&
                values_stats.tally.moments.max == values_samples[n - 1] &&
                values_stats.last == last);
    assert_true(fabs(pki_moments_sum(&values_stats.tally.moments) - (double)sum) <=
                (double)size * 1e-9);
    values_expect_quantiles(n);
    assert_true(pki_tally_quantile(&values_stats.tally, 0) == values_samples[0] &&
                pki_tally_quantile(&values_stats.tally, 1) == values_samples[n - 1]);
    pki_values_clear(values, ID);
}

static double values_draw_unit(void)
{
    return (rand() + 0.5) / ((double)RAND_MAX + 1);
}

static void uniform_of_either_sign(void **state)
{
    static const double scales[] = {1e-15, 1e-3, 1, 1e3, 1e9, 1e18};
    (void)state;
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
        for (size_t i = 0; i < SAMPLES; i++)
            values_samples[i] = (values_draw_unit() - 0.3) * scales[k];
        values_expect_all(SAMPLES);
    }
}

static void every_magnitude(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        for (size_t i = 0; i < SAMPLES; i++)
            values_samples[i] = sign * exp2(-64 + 127 * values_draw_unit());
        values_expect_all(SAMPLES);
    }
    for (size_t i = 0; i < SAMPLES; i++)
        values_samples[i] = (rand() % 2 ? 1 : -1) * exp2(-64 + 127 * values_draw_unit());
    values_expect_all(SAMPLES);
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
                values_samples[0] = values_samples[1] = values_samples[2] = v;
                values_samples[3] = 2 * v;
                values_expect_all(4);
            }
}

static void zeros(void **state)
{
    static const double some[] = {0.0, -0.0, 0.0, 3, -3, 0.0, -0.0};
    (void)state;
    memcpy(values_samples, some, sizeof some);
    values_expect_all(7);
    values_samples[0] = values_samples[1] = values_samples[2] = 0;
    values_expect_all(3);
}

static void constants(void **state)
{
    static const double some[] = {1, -1, 0.1, 1.0 / 3, 1e18, -1e-18, 12345.678};
    (void)state;
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        for (size_t i = 0; i < 1000; i++)
            values_samples[i] = some[k];
        values_expect_all(1000);
        assert_true(pki_tally_quantile(&values_stats.tally, 0.5) ==
                    some[k]); /* never outside min .. max */
    }
}

/* Beyond the octaves that there are, only min and max are told apart, and nothing breaks. */
static void out_of_range(void **state)
{
    static const double some[] = {DBL_MAX,  -DBL_MAX, DBL_MIN, -DBL_MIN,
                                  4.9e-324, 1e300,    1e-300,  1e19};
    (void)state;
    memcpy(values_samples, some, sizeof some);
    values_enter(8);
    assert_int_equal(values_stats.tally.moments.count, 8);
    assert_true(values_stats.tally.moments.min == -DBL_MAX &&
                values_stats.tally.moments.max == DBL_MAX && values_stats.last == 1e19);
    double last = -DBL_MAX;
    for (double q = 0; q <= 1; q += 0.125) {
        double now = pki_tally_quantile(&values_stats.tally, q);
        assert_true(isfinite(now) && now >= last);
        last = now;
    }
    pki_values_clear(values, ID);
    values_samples[0] = values_samples[1] = 1e-30;
    values_enter(2);
    assert_true(pki_tally_quantile(&values_stats.tally, 0.5) == 1e-30);
}

static void buckets_count_every_value(void **state)
{
    uint64_t total = 0;
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++)
        values_samples[i] = (values_draw_unit() - 0.5) * exp2(200 * (values_draw_unit() - 0.5));
    values_enter(SAMPLES);
    for (size_t i = 0; i < values_stats.tally.used; i++)
        total += values_stats.tally.buckets[i].count;
    assert_int_equal(total, SAMPLES);
}

static void none(void **state)
{
    (void)state;
    values_enter(0);
    assert_true(values_stats.tally.moments.count == 0 && values_stats.tally.moments.min == 0 &&
                values_stats.tally.moments.max == 0 &&
                pki_moments_sum(&values_stats.tally.moments) == 0);
    assert_true(pki_tally_quantile(&values_stats.tally, 0.5) == 0);
}

/* Values of several threads: the last one is the latest, whoever is added last. */
static void merged(void **state)
{
    pki_table other = {0};
    (void)state;
    pki_values *more = (pki_values *)pki_table_add(&values_spans, &other, ID, PKI_KIND_COUNTER);
    for (int i = 0; i < 1000; i++) {
        pki_values_add(&values_spans, &values_table.pool, values, i, 100 + (uint64_t)i);
        pki_values_add(&values_spans, &other.pool, more, -i, (uint64_t)i);
    }
    pki_table_merge(&values_spans, &values_table, &other);
    read_values(values);
    assert_true(values_stats.tally.moments.count == 2000 &&
                pki_moments_sum(&values_stats.tally.moments) == 0 &&
                values_stats.tally.moments.min == -999 && values_stats.tally.moments.max == 999);
    assert_true(values_stats.last == 999 && values_stats.last_ticks == 1099);
    assert_true(fabs(pki_tally_quantile(&values_stats.tally, 0.25) + 500) < 5);
    assert_true(fabs(pki_tally_quantile(&values_stats.tally, 0.75) - 500) < 5);
    pki_value_stats_add(&values_stats,
                        more); /* the same, by reading: counted again, last unchanged */
    assert_true(values_stats.tally.moments.count == 3000 && values_stats.last == 999 &&
                values_stats.tally.moments.min == -999);
    pki_values_clear(more, ID);
    pki_value_stats_add(&values_stats, more);
    assert_true(values_stats.tally.moments.count == 3000 &&
                values_stats.tally.moments.min == -999 && values_stats.tally.moments.max == 999);
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
    return (values_draw_unit() - 0.4) * exp2(40 * (values_draw_unit() - 0.5));
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
            pki_values *more =
                (pki_values *)pki_table_add(&values_spans, &other, ID, PKI_KIND_COUNTER);
            for (size_t i = 0; i < sizes[s]; i++) {
                double value = value_of[k](i);
                pki_values_add(&values_spans, &values_table.pool, i % 3 ? values : more, value, i);
                assert_true(pki_tally_add(&tally, value, 1));
            }
            read_values(values);
            pki_value_stats_add(&values_stats, more);
            pki_dist live = pki_tally_dist(&values_stats.tally), rebuilt = pki_tally_dist(&tally);
            expect_same(&live, &rebuilt);
            if (k == 0 && sizes[s] > 1)
                assert_true(live.stddev == 1000 && live.mean == 8e10);
            pki_tally_finish(&tally);
            pki_values_clear(values, ID);
        }
}

#define on_values(test) cmocka_unit_test_setup_teardown(test, open_values, close_values)

static const struct CMUnitTest values_tests[] = {
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

int main(void)
{
    int failed = cmocka_run_group_tests(slots_tests, NULL, NULL);
    failed += cmocka_run_group_tests(hist_tests, NULL, NULL);
    failed += cmocka_run_group_tests(values_tests, NULL, NULL);
    return failed;
}
