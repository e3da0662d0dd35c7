/* How benchmarks are measured, on a clock that the test moves: calibration, warm-up, turns, the
 * stop rule, and what is subtracted. */
#include "script_clock.h"

static double cost = 100; /* ns of an iteration */

static void constant(pk_bench_run *bench)
{
    uint64_t n = pk_bench_begin(bench);
    pass(cost * (double)n);
    pk_bench_end(bench);
}

/* ---- calibration ---- */

static void a_sample_is_long_enough(void **state)
{
    (void)state;
    cost = 100;
    pk_bench_result r = measured(constant, NULL);
    assert_int_equal(r.iterations, 2000); /* 200 us */
    close_to(r.median, 100, 0.02);
    close_to(r.cpu, 100, 0.02);
    assert_int_equal(r.stopped, PK_BENCH_STOP_PRECISE);
    pk_bench_result_release(&r);
}

static void a_coarse_clock_makes_samples_longer(void **state)
{
    (void)state;
    script.step = engine.overhead.step = 10000;
    pk_bench_result r = measured(constant, NULL);
    assert_in_range(r.iterations, 99000, 101000); /* 10 ms: a thousand steps */
    close_to(r.median, 100, 0.1);
    pk_bench_result_release(&r);
}

static void iterations_can_be_given(void **state)
{
    (void)state;
    pk_bench_result r = measured(constant, pk_bench_options(.iterations = 7, .min_time = 1000000));
    assert_int_equal(r.iterations, 7);
    close_to(r.median, 100, 1e-9);
    pk_bench_result_release(&r);
    r = measured(constant, pk_bench_options(.sample_time = 50000));
    assert_int_equal(r.iterations, 500);
    pk_bench_result_release(&r);
}

static void a_slow_iteration_is_a_sample(void **state)
{
    (void)state;
    cost = 3e8;
    pk_bench_result r = measured(constant, NULL);
    cost = 100;
    assert_int_equal(r.iterations, 1);
    assert_int_equal(r.stopped, PK_BENCH_STOP_TIME); /* 2 s: 20 samples would take 6 */
    assert_in_range(r.count, 7, 8);
    close_to(r.median, 3e8, 1);
    pk_bench_result_release(&r);
}

static void free_things_end(void **state)
{
    (void)state;
    cost = 0;
    pk_bench_result r = measured(constant, pk_bench_options(.max_samples = 50));
    cost = 100;
    assert_true(r.iterations == PKI_BENCH_ITERATIONS_MOST);
    close_to(r.median, 0, 1e-9);
    pk_bench_result_release(&r);
}

/* ---- warm-up ---- */

static unsigned calls;
static double first_cost, factor, last_cost;

/* Each call is faster than the one before, by a factor, down to last_cost. */
static void warming(pk_bench_run *bench)
{
    uint64_t n = pk_bench_begin(bench);
    pass((double)n * fmax(first_cost * pow(factor, calls++), last_cost));
    pk_bench_end(bench);
}

static void warms_up_until_steady(void **state)
{
    (void)state;
    calls = 0;
    first_cost = 400;
    factor = 0.97;
    last_cost = 100;
    pk_bench_result r = measured(warming, NULL);
    assert_int_equal(r.warmup_steady, 1);
    assert_true(r.warmup_time >= PKI_BENCH_WARM_LEAST);
    close_to(r.samples[0], 100, 4);
    close_to(r.median, 100, 0.02);
    assert_in_range(r.iterations, 1900, 2100);
    pk_bench_result_release(&r);
}

static void gives_warming_up(void **state)
{
    (void)state;
    calls = 0;
    first_cost = 1e5;
    factor = 0.99; /* for ever */
    last_cost = 0;
    struct pk_bench_options o = {.size = sizeof o, .max_warmup = 50000000, .max_samples = 50};
    pk_bench_result r = measured(warming, &o);
    assert_int_equal(r.warmup_steady, 0);
    assert_in_range(r.warmup_time, 50000000, 52000000);
    assert_true(r.count >= 20);
    pk_bench_result_release(&r);
}

/* ---- enough ---- */

static pki_random chance = {1};
static double noise; /* a share of the cost, either way */

static void noisy(pk_bench_run *bench)
{
    double even = (double)(pki_random_next(&chance) >> 11) / 9007199254740992.0;
    uint64_t n = pk_bench_begin(bench);
    pass(cost * (double)n * (1 + noise * (2 * even - 1)));
    pk_bench_end(bench);
}

static void stops_when_precise(void **state)
{
    (void)state;
    noise = 0.2;
    pk_bench_result r =
        measured(noisy, pk_bench_options(.precision = 0.01, .max_time = 100000000000));
    assert_int_equal(r.stopped, PK_BENCH_STOP_PRECISE);
    assert_true((r.high - r.low) / 2 / r.median < 0.013);
    size_t rough = r.count;
    pk_bench_result_release(&r);
    r = measured(noisy, pk_bench_options(.precision = 0.0025, .max_time = 100000000000));
    assert_int_equal(r.stopped, PK_BENCH_STOP_PRECISE);
    assert_in_range(r.count, 6 * rough, 40 * rough); /* 16 times, in theory; the first is at least
                                                        min_time's 500 */
    close_to(r.median, 100, 1);
    pk_bench_result_release(&r);
}

static void stops_by_its_bounds(void **state)
{
    (void)state;
    noise = 0.5;
    pk_bench_result r = measured(noisy, pk_bench_options(.precision = 1e-6, .max_time = 200000000));
    assert_int_equal(r.stopped, PK_BENCH_STOP_TIME);
    assert_in_range(r.count, 700, 1400); /* 200 us each, as far as the warm-up could tell */
    pk_bench_result_release(&r);
    r = measured(noisy, pk_bench_options(.precision = 1e-6, .max_samples = 33));
    assert_int_equal(r.stopped, PK_BENCH_STOP_SAMPLES);
    assert_int_equal(r.count, 33);
    pk_bench_result_release(&r);
    r = measured(constant, pk_bench_options(.min_time = 300000000));
    assert_int_equal(r.stopped, PK_BENCH_STOP_PRECISE);
    assert_in_range(r.count, 1490, 1510);
    pk_bench_result_release(&r);
    r = measured(constant, pk_bench_options(.min_time = 1, .min_samples = 123));
    assert_in_range(r.count, 123, 124);
    pk_bench_result_release(&r);
}

/* Samples that hang together say less: more of them are taken. */
static double wander;

static void wandering(pk_bench_run *bench)
{
    double even = (double)(pki_random_next(&chance) >> 11) / 9007199254740992.0;
    uint64_t n = pk_bench_begin(bench);
    wander = 0.95 * wander + 0.31 * noise * (2 * even - 1);
    pass(cost * (double)n * (1 + wander));
    pk_bench_end(bench);
}

static void dependent_samples_take_longer(void **state)
{
    (void)state;
    noise = 0.2;
    struct pk_bench_options o = {.size = sizeof o, .precision = 0.01, .max_time = 100000000000};
    pk_bench_result free_ones = measured(noisy, &o), bound = measured(wandering, &o);
    assert_true(bound.count > 3 * free_ones.count);
    assert_true(bound.block > 1 && bound.autocorrelation > 0.8);
    pk_bench_result_release(&free_ones);
    pk_bench_result_release(&bound);
}

/* ---- turns ---- */

static double speed(void)
{
    return 1 + (script.now - 1e9) / 1e9; /* becomes slower by 100 % in a second */
}

static void drifting(pk_bench_run *bench)
{
    uint64_t n = pk_bench_begin(bench);
    pass(cost * speed() * (double)n);
    pk_bench_end(bench);
}

static double ratio_of_twins(bool together)
{
    struct pk_bench_options o = {.size = sizeof o, .min_time = 400000000, .max_time = 400000000};
    script.now = 1e9;
    pki_bench_case twins[2] = {make("a", drifting, &o), make("b", drifting, &o)};
    run_together(twins, 2, together);
    pk_bench_result a = result_of(&twins[0]), b = result_of(&twins[1]);
    double ratio = b.median / a.median;
    assert_int_equal(a.verdict, PK_BENCH_VERDICT_DRIFTING);
    pk_bench_result_release(&a);
    pk_bench_result_release(&b);
    return ratio;
}

static void drift_hits_all_alike(void **state)
{
    (void)state;
    close_to(ratio_of_twins(true), 1, 0.02);
    assert_true(ratio_of_twins(false) > 1.2); /* the test can fail */
}

static char order[4096];
static size_t turns;

static void note_a(pk_bench_run *bench)
{
    order[turns++ % sizeof order] = 'a';
    constant(bench);
}

static void note_b(pk_bench_run *bench)
{
    order[turns++ % sizeof order] = 'b';
    constant(bench);
}

static void note_c(pk_bench_run *bench)
{
    order[turns++ % sizeof order] = 'c';
    constant(bench);
}

static void record_order(uint64_t seed, char *out)
{
    struct pk_bench_options o = {.size = sizeof o, .max_samples = 100};
    pki_bench_case cases[3] = {make("a", note_a, &o), make("b", note_b, &o), make("c", note_c, &o)};
    turns = 0;
    memset(order, 0, sizeof order);
    assert_int_equal(pki_bench_run_rounds(cases, 3, true, seed, NULL, NULL), PK_OK);
    memcpy(out, order, sizeof order);
    for (int i = 0; i < 3; i++)
        pki_bench_case_finish(&cases[i]);
}

static void the_seed_draws_the_order(void **state)
{
    (void)state;
    static char first[sizeof order], again[sizeof order], other[sizeof order];
    record_order(1, first);
    record_order(1, again);
    record_order(2, other);
    assert_memory_equal(first, again, sizeof order);
    assert_memory_not_equal(first, other, sizeof order);
}

/* ---- bad luck ---- */

static bool small_machine;

static void too_small(pk_bench_run *bench)
{
    if (small_machine)
        pk_bench_give_up(bench, PK_BENCH_OUTCOME_SKIPPED, "a small machine");
    constant(bench);
}

static void one_that_is_skipped_keeps_nobody(void **state)
{
    (void)state;
    small_machine = true;
    pki_bench_case cases[2] = {make("a", too_small, NULL), make("b", constant, NULL)};
    run_together(cases, 2, true);
    pk_bench_result a = result_of(&cases[0]), b = result_of(&cases[1]);
    assert_int_equal(a.outcome, PK_BENCH_OUTCOME_SKIPPED);
    assert_int_equal(a.count, 0);
    assert_string_equal(a.reason, "a small machine");
    assert_null(a.samples);
    assert_int_equal(b.outcome, PK_BENCH_OUTCOME_MEASURED);
    close_to(b.median, 100, 0.02);
    pk_bench_result_release(&b);
}

static void options_are_checked(void **state)
{
    (void)state;
    struct pk_bench_options whole;
    const struct pk_bench_options bad[] = {
        {.size = 8},
        {.size = sizeof *bad, .clock = 4},
        {.size = sizeof *bad, .threads = 5000},
        {.size = sizeof *bad, .precision = 1},
        {.size = sizeof *bad, .precision = -0.1},
        {.size = sizeof *bad, .precision = NAN},
        {.size = sizeof *bad, .confidence = 0.3},
        {.size = sizeof *bad, .min_time = 10, .max_time = 5},
        {.size = sizeof *bad, .min_samples = 10, .max_samples = 5},
        {.size = sizeof *bad, .clock = PK_BENCH_CLOCK_GPU, .threads = 2},
        {.size = sizeof *bad, .cold = 1, .iterations = 2},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (pki_bench_options_fill(&whole, &bad[i]) != PK_EINVAL)
            fail_msg("options %zu are taken", i);
    struct {
        struct pk_bench_options o;
        uint64_t newer;
    } later = {{.size = sizeof later}, 0};
    assert_int_equal(pki_bench_options_fill(&whole, &later.o), PK_OK);
    later.newer = 1;
    assert_int_equal(pki_bench_options_fill(&whole, &later.o), PK_EINVAL);
}

#define TEST(name) cmocka_unit_test_setup(name, start_script)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sample_is_long_enough),
        TEST(a_coarse_clock_makes_samples_longer),
        TEST(iterations_can_be_given),
        TEST(a_slow_iteration_is_a_sample),
        TEST(free_things_end),
        TEST(warms_up_until_steady),
        TEST(gives_warming_up),
        TEST(stops_when_precise),
        TEST(stops_by_its_bounds),
        TEST(dependent_samples_take_longer),
        TEST(drift_hits_all_alike),
        TEST(the_seed_draws_the_order),
        TEST(one_that_is_skipped_keeps_nobody),
        TEST(options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
