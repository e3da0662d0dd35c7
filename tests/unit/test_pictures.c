/* What a report's pictures are made of: shapes of distributions, counters over time, devices over
 * the steps. */
#include "stats/slot.h"
#include "measure/device/series.h"
#include "stats/series.h"
#include "measure/timeline.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- histograms ---- */

static void check_whole(const pki_histogram *h, uint64_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < h->count; i++) {
        assert_true(h->buckets[i].from < h->buckets[i].to);
        assert_true(i == 0 || h->buckets[i - 1].to <= h->buckets[i].from);
        assert_true(h->buckets[i].count > 0);
        sum += h->buckets[i].count;
    }
    assert_int_equal(sum, count);
    assert_in_range(h->count, count ? 1 : 0, PKI_HISTOGRAM_MOST);
}

static uint64_t between(const double *values, size_t count, const pki_histogram_bucket *b)
{
    uint64_t inside = 0;
    for (size_t i = 0; i < count; i++)
        inside += values[i] >= b->from && values[i] < b->to;
    return inside;
}

/* From nanoseconds to seconds: six octaves of them must share a bucket. */
static void a_tally_with_everything(void **state)
{
    static double values[20000];
    pki_tally tally = {0};
    pki_histogram h;
    (void)state;
    for (size_t i = 0; i < 20000; i++) {
        values[i] = floor(exp((double)(i * 7919 % 20000) / 20000 * 20));
        assert_true(pki_tally_add(&tally, values[i], 1));
    }
    assert_true(pki_histogram_of_tally(&tally, &h));
    check_whole(&h, 20000);
    for (size_t i = 0; i < h.count; i++)
        assert_int_equal(h.buckets[i].count, between(values, 20000, &h.buckets[i]));
    pki_histogram_finish(&h);
    pki_tally_finish(&tally);
}

static void narrow_ones_stay_fine(void **state)
{
    pki_tally tally = {0};
    pki_histogram h;
    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_true(pki_tally_add(&tally, 1e6 + 1e2 * i, 1)); /* 10 % wide */
    assert_true(pki_histogram_of_tally(&tally, &h));
    check_whole(&h, 1000);
    assert_in_range(h.count, 6, 14);
    assert_true(h.buckets[0].to - h.buckets[0].from < 1e6 / 50);
    pki_histogram_finish(&h);
    pki_tally_finish(&tally);
}

static void none_and_one_and_signs(void **state)
{
    pki_tally tally = {0};
    pki_histogram h;
    (void)state;
    assert_true(pki_histogram_of_tally(&tally, &h));
    check_whole(&h, 0);
    assert_null(h.buckets);
    static const double values[] = {-3e6, -2, 0, 0, 2, 3e6};
    for (size_t i = 0; i < 6; i++)
        assert_true(pki_tally_add(&tally, values[i], 1));
    assert_true(pki_histogram_of_tally(&tally, &h));
    uint64_t sum = 0;
    for (size_t i = 0; i < h.count; i++)
        sum += h.buckets[i].count;
    assert_int_equal(sum, 6);
    assert_true(h.buckets[0].from <= -3e6 && h.buckets[0].to > -3e6);
    assert_true(h.buckets[h.count - 1].from <= 3e6 && h.buckets[h.count - 1].to > 3e6);
    pki_histogram_finish(&h);
    pki_tally_finish(&tally);
}

/* Bounds are those of the buckets that were kept. */
static void whole_nanoseconds(void **state)
{
    pki_tally times = {0};
    pki_histogram h;
    (void)state;
    assert_true(pki_tally_count(&times, 5, 2));
    assert_true(pki_tally_count(&times, pki_bucket(400000), 40));
    assert_true(pki_tally_count(&times, pki_bucket(1 << 30), 1));
    assert_true(pki_histogram_of_times(&times, &h));
    check_whole(&h, 43);
    assert_int_equal(h.count, 3);
    assert_true(h.buckets[0].from == 5 && h.buckets[0].to == 6);
    assert_true(h.buckets[1].from <= 400000 && h.buckets[1].to > 400000);
    assert_true(h.buckets[1].to - h.buckets[1].from <= 400000 / 64.0 + 1);
    assert_true(h.buckets[2].from == 1 << 30);
    pki_histogram_finish(&h);
    pki_tally_finish(&times);
}

static void all_buckets_at_once(void **state)
{
    pki_tally times = {0};
    pki_histogram h;
    (void)state;
    for (uint32_t i = 0; i < PK_STATS_BUCKETS; i++)
        assert_true(pki_tally_count(&times, i, 1));
    assert_true(pki_histogram_of_times(&times, &h));
    check_whole(&h, PK_STATS_BUCKETS);
    assert_true(h.buckets[0].from == 0);
    pki_histogram_finish(&h);
    pki_tally_finish(&times);
}

/* ---- timelines ---- */

static void check_points(const pki_counter_row *row, uint64_t samples)
{
    uint64_t sum = 0;
    assert_in_range(row->point_count, samples > 0, PKI_TIMELINE_MOST);
    for (size_t i = 0; i < row->point_count; i++) {
        const pki_counter_point *p = &row->points[i];
        assert_true(p->samples > 0 && p->min <= p->mean && p->mean <= p->max);
        assert_true(i == 0 || p[-1].start < p->start);
        sum += p->samples;
    }
    assert_int_equal(sum, samples);
}

/* In any order, the same picture. */
static void order_does_not_matter(void **state)
{
    pki_timeline forward = {0}, mixed = {0};
    pki_counter_row a = {0}, b = {0};
    (void)state;
    for (uint64_t i = 0; i < 10007; i++) {
        uint64_t k = i * 5003 % 10007;
        assert_true(pki_timeline_add(&forward, 1000000 * i, (double)(i % 100)));
        assert_true(pki_timeline_add(&mixed, 1000000 * k, (double)(k % 100)));
    }
    assert_true(pki_timeline_fill(&forward, &a) && pki_timeline_fill(&mixed, &b));
    check_points(&a, 10007);
    assert_int_equal(a.point_count, b.point_count);
    assert_memory_equal(a.points, b.points, a.point_count * sizeof *a.points);
    assert_in_range(a.point_count, PKI_TIMELINE_MOST / 2, PKI_TIMELINE_MOST);
    assert_true(a.points[0].start == 0 && a.points[0].min == 0);
    free(a.points);
    free(b.points);
    pki_series_finish(&forward.parts);
    pki_series_finish(&mixed.parts);
}

static void few_samples_are_each_there(void **state)
{
    pki_timeline t = {0};
    pki_counter_row row = {0};
    (void)state;
    for (uint64_t i = 0; i < 20; i++)
        assert_true(pki_timeline_add(&t, 5000000000 + 100000000 * i, -1.5 * (double)i));
    assert_false(pki_timeline_add(&t, 1, NAN));
    assert_false(pki_timeline_add(&t, 1, INFINITY));
    assert_true(pki_timeline_fill(&t, &row));
    check_points(&row, 20);
    assert_int_equal(row.point_count, 20);
    assert_true(row.points[19].start == 6900000000 && row.points[19].max == -28.5);
    free(row.points);
    pki_series_finish(&t.parts);
}

static void the_end_of_time(void **state)
{
    pki_timeline t = {0};
    pki_counter_row row = {0};
    (void)state;
    assert_true(pki_timeline_fill(&t, &row));
    assert_null(row.points);
    assert_true(pki_timeline_add(&t, UINT64_MAX, 1));
    assert_true(pki_timeline_add(&t, 0, 2));
    assert_true(pki_timeline_fill(&t, &row));
    check_points(&row, 2);
    free(row.points);
    pki_series_finish(&t.parts);
}

/* ---- devices ---- */

static void a_device_stays_bounded_and_whole(void **state)
{
    pki_series series = {0};
    pki_gpu_row row = {0};
    uint64_t steps = 0, busy = 0, longest = 0;
    (void)state;
    for (uint64_t i = 0; i < 100003; i++) {
        pki_gpu_series_row step = {
            .index = 1000 + i, .steps = 1, .step = 10, .busy = i % 10, .longest_gap = i % 7};
        assert_true(pki_device_series_add(&series, &step));
    }
    assert_true(pki_device_series_fill(&series, &row));
    assert_in_range(row.series_count, PKI_DEVICE_SERIES_MOST / 4, PKI_DEVICE_SERIES_MOST);
    for (size_t i = 0; i < row.series_count; i++) {
        assert_int_equal(row.series[i].index, 1000 + steps);
        assert_int_equal(row.series[i].step, 10 * row.series[i].steps);
        steps += row.series[i].steps;
        busy += row.series[i].busy;
        longest = row.series[i].longest_gap > longest ? row.series[i].longest_gap : longest;
    }
    assert_int_equal(steps, 100003);
    assert_int_equal(busy, 10000 * 45 + 3);
    assert_int_equal(longest, 6);
    free(row.series);
    pki_series_finish(&series);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tally_with_everything),
        cmocka_unit_test(narrow_ones_stay_fine),
        cmocka_unit_test(none_and_one_and_signs),
        cmocka_unit_test(whole_nanoseconds),
        cmocka_unit_test(all_buckets_at_once),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(few_samples_are_each_there),
        cmocka_unit_test(the_end_of_time),
        cmocka_unit_test(a_device_stays_bounded_and_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
