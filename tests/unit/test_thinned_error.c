/* The errors that are stated of thinned regions are the errors: calls of many kinds, of which some
 * are timed as core/thin.h has it, and how often the figures of all lie where they are said to.
 */
#include "measure/thinned.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "stats/slot.h"
#include "valgrind.h"

static uint64_t chance = 88172645463325252u;

static double uniform(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (double)(chance >> 11) / 9007199254740992.0;
}

enum { CALLS = 30000 };
#define TRIALS (is_slow() ? 50 : 200)
static uint64_t calls[CALLS];
static pk_stats sample, all;

static void add(pk_stats *s, uint64_t ns, uint64_t weight)
{
    s->count += weight;
    s->sum += ns * weight;
    s->min = PKI_MIN(s->min, ns);
    s->max = PKI_MAX(s->max, ns);
    s->spare[0] += ns * ns * weight;
    s->spare[2] += weight * (weight - 1);
    s->untimed += weight - 1;
    s->buckets[pki_bucket(ns)] += weight;
}

static void draw(unsigned n)
{
    pki_stats_begin(&sample);
    pki_stats_begin(&all);
    for (int i = 0, last = -1, next = 0; i < CALLS; i++) {
        add(&all, calls[i], 1);
        if (i != next && i != CALLS - 1)
            continue;
        add(&sample, calls[i], (uint64_t)(i - last));
        last = i;
        next = i + 1 + (int)(uniform() * (2 * n - 1));
    }
    pki_stats_finish(&sample, 1);
    pki_stats_finish(&all, 1);
}

typedef struct hits {
    unsigned sum, p50, p99;
} hits;

static bool lies_in(double value, const double range[2])
{
    return value >= range[0] && value <= range[1];
}

static hits try(unsigned n, uint64_t (*duration)(int))
{
    hits h = {0, 0, 0};
    for (int t = 0; t < TRIALS; t++) {
        for (int i = 0; i < CALLS; i++)
            calls[i] = duration(i);
        draw(n);
        pki_region_thinned said = pki_region_thinned_of(&sample, 0, 0, 0);
        assert_int_equal(sample.count, CALLS);
        h.sum += fabs((double)sample.sum - (double)all.sum) <= 1.96 * said.sum_error;
        h.p50 += lies_in((double)pk_stats_quantile(&all, 0.5), said.p50);
        h.p99 += lies_in((double)pk_stats_quantile(&all, 0.99), said.p99);
    }
    return h;
}

static uint64_t with_a_tail(int i)
{
    double u = uniform();
    (void)i;
    return (uint64_t)(200 + 100 / (u + 0.01));
}

/* A loop's rhythm, which a fixed distance of 16 would never see. */
static uint64_t in_turns(int i)
{
    return (uint64_t)(i % 16 == 0 ? 4000 : 100 + 10 * (i % 16)) + (uint64_t)(uniform() * 20);
}

static void errors_are_what_is_said(void **state)
{
    static uint64_t (*const durations[])(int) = {with_a_tail, in_turns};
    static const unsigned distances[] = {8, 16, 50};
    (void)state;
    for (size_t d = 0; d < 2; d++)
        for (size_t n = 0; n < 3; n++) {
            hits h = try(distances[n], durations[d]);
            assert_true(h.sum >= TRIALS * 0.88);
            assert_true(h.p50 >= TRIALS * 0.88);
            assert_true(h.p99 >= TRIALS * 0.88);
        }
}

/* What a clock of steps makes of a duration that begins anywhere in one. */
static uint64_t in_steps(double ns, double step)
{
    double start = uniform() * step;
    return (uint64_t)(floor((start + ns) / step) * step);
}

static double usual_call(int i)
{
    return 18 + 6 * uniform() + (i % 40 == 0 ? 40 : 0);
}

static int hits_of(const pki_region_thinned *said)
{
    return lies_in((double)pk_stats_quantile(&all, 0.5), said->p50) +
           lies_in((double)pk_stats_quantile(&all, 0.9), said->p90) +
           lies_in((double)pk_stats_quantile(&all, 0.99), said->p99);
}

/* Each timed call takes some nanoseconds more where few of them are timed, and a step of the clock
 * may lie between. */
static void the_clock_s_step_is_in_the_range(void **state)
{
    const double step = 10, more = 4;
    int with = 0, without = 0;
    (void)state;
    for (int t = 0; t < TRIALS; t++) {
        pki_stats_begin(&all);
        pki_stats_begin(&sample);
        for (int i = 0; i < CALLS; i++)
            add(&all, in_steps(usual_call(i), step), 1);
        for (int i = 0; i < CALLS / 20; i++)
            add(&sample, in_steps(usual_call(i) + more, step), 20);
        pki_stats_finish(&sample, 1);
        pki_stats_finish(&all, 1);
        const pki_region_thinned coarse = pki_region_thinned_of(&sample, 0, step, 0),
                                 fine = pki_region_thinned_of(&sample, 0, 1, 0);
        with += hits_of(&coarse);
        without += hits_of(&fine);
    }
    assert_true(with >= 3 * TRIALS * 0.95);
    assert_true(without < with);
}

/* What timing takes may be in a timed call, or have hidden behind it. */
static void what_timing_takes_is_in_the_range(void **state)
{
    (void)state;
    pki_stats_begin(&sample);
    for (int i = 0; i < 1000; i++)
        add(&sample, 100, 20);
    pki_stats_finish(&sample, 1);
    const pki_region_thinned t = pki_region_thinned_of(&sample, 0, 1, 20);
    assert_true(t.call_error >= 20 && t.call_error <= 60);
    assert_true(t.p50[0] <= 100 - t.call_error && t.p50[1] >= 100 + t.call_error);
    assert_true(pki_thinned_sum_range(&t, sample.count) >= 20000 * t.call_error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(errors_are_what_is_said),
                                       cmocka_unit_test(the_clock_s_step_is_in_the_range),
                                       cmocka_unit_test(what_timing_takes_is_in_the_range)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
