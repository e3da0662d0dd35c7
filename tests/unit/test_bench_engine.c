/* How benchmarks are measured, on a clock that the test moves, and what the harness takes to cost
 * itself. */
#include "script_clock.h"

#include "bench/overhead.h"

/* ---- how benchmarks are measured, on a clock that the test moves ---- */

/* Calibration, warm-up, turns, the stop rule, and what is subtracted. */

static double cost = 100; /* ns of an iteration */

static void constant(pk_bench_run *bench)
{
    uint64_t n = pk_bench_begin(bench);
    pass(cost * (double)n);
    pk_bench_end(bench);
}

/* -- calibration -- */

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

/* -- warm-up -- */

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

/* -- enough -- */

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

/* -- turns -- */

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

/* -- bad luck -- */

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

static const struct CMUnitTest bench_engine_tests[] = {
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

/* ---- what the harness takes to cost itself ---- */

/* What the harness takes to cost itself, found with loops and a clock that the test moves. */

/* -- loops that take what a test says -- */

enum { EMPTY = PKI_BENCH_LOOP_EMPTY, BESIDE = PKI_BENCH_LOOP_CHAIN };

static double bench_overhead_cost[PKI_BENCH_LOOPS]; /* ns of an iteration */
static double unlucky[PKI_BENCH_PLACES];            /* more than that, in loops at this place */
static double interruption;                         /* ns, in every seventh run */
static double swing; /* more than cost, in every other try: of what has a loop */
static unsigned runs;

static void run(unsigned loop, unsigned place, uint64_t bench_overhead_turns)
{
    unsigned tries = runs / (PKI_BENCH_LOOPS * PKI_BENCH_PLACES);
    bool has_loop = loop != PKI_BENCH_CHAIN && loop != PKI_BENCH_CHAIN_IN_MEMORY;
    double each = bench_overhead_cost[loop] + (has_loop ? unlucky[place] + swing * (tries % 2) : 0);
    runs++;
    pass(each * (double)bench_overhead_turns + (runs % 7 == 0 ? interruption : 0));
}

#define RUN(loop, place)                                                                           \
    static void run_##loop##_##place(uint64_t bench_overhead_turns)                                \
    {                                                                                              \
        run(loop, place, bench_overhead_turns);                                                    \
    }
#define RUNS(loop) RUN(loop, 0) RUN(loop, 1) RUN(loop, 2) RUN(loop, 3)
RUNS(0)
RUNS(1)
RUNS(2)
RUNS(3)
RUNS(4)
RUNS(5)

#define PLACES(loop)                                                                               \
    {                                                                                              \
        run_##loop##_0, run_##loop##_1, run_##loop##_2, run_##loop##_3                             \
    }
static const pki_bench_loops loops = {
    {PLACES(0), PLACES(1), PLACES(2), PLACES(3), PLACES(4), PLACES(5)}};

static int start(void **state)
{
    runs = 0;
    interruption = swing = 0;
    memset(unlucky, 0, sizeof unlucky);
    for (int i = 0; i < PKI_BENCH_LOOPS; i++)
        bench_overhead_cost[i] = 4;
    bench_overhead_cost[EMPTY] = 0.25;
    bench_overhead_cost[PKI_BENCH_CALL_EMPTY] = 1.25;
    return start_script(state);
}

static pki_bench_overhead found(void)
{
    pki_bench_overhead o;
    pki_bench_overhead_measure(&o, &script_clock, &loops);
    close_to(o.clock, 20, 0);
    return o;
}

/* -- what is found -- */

static void a_loop_beside_work_is_free(void **state)
{
    (void)state;
    pki_bench_overhead o = found();
    close_to(o.loop, 0.25, 0.001);
    close_to(o.call, 1.25, 0.001);
    close_to(o.loop_beside, 0, 0.001);
    close_to(o.call_beside, 0, 0.001);
    close_to(o.unsure, 0, 0.001);
}

/* As where a processor does one thing after the other. */
static void what_it_adds_is_found(void **state)
{
    (void)state;
    bench_overhead_cost[EMPTY] = 1;
    bench_overhead_cost[BESIDE] = 4.75;
    bench_overhead_cost[PKI_BENCH_CALL_EMPTY] = 3;
    bench_overhead_cost[PKI_BENCH_CALL_CHAIN] = 6.5;
    pki_bench_overhead o = found();
    close_to(o.loop_beside, 0.75, 0.001);
    close_to(o.call_beside, 2.5, 0.001);
}

static void an_unlucky_place_changes_nothing(void **state)
{
    (void)state;
    for (int lucky = 0; lucky < PKI_BENCH_PLACES; lucky++) {
        for (int i = 0; i < PKI_BENCH_PLACES; i++)
            unlucky[i] = i == lucky ? 0 : 0.3;
        pki_bench_overhead o = found();
        close_to(o.loop, 0.25, 0.001);
        close_to(o.loop_beside, 0, 0.001);
        close_to(o.call_beside, 0, 0.001);
    }
}

static void interruptions_change_nothing(void **state)
{
    (void)state;
    bench_overhead_cost[BESIDE] = 4.125;
    interruption = 3e6;
    pki_bench_overhead o = found();
    close_to(o.loop, 0.25, 0.001);
    close_to(o.loop_beside, 0.125, 0.001);
    close_to(o.unsure, 0, 0.001);
}

/* A busy sibling that comes and goes: only what every try shows is subtracted, and it is said. */
static void disagreement_is_noticed(void **state)
{
    (void)state;
    swing = 0.5;
    pki_bench_overhead o = found();
    close_to(o.loop_beside, 0, 0.001);
    close_to(o.unsure, 0.5, 0.001);
    assert_true(o.unsure > PKI_BENCH_UNSURE);
}

/* Never more than the empty loop takes: else it is not the loop that costs it. */
static void at_most_the_empty_loop(void **state)
{
    (void)state;
    bench_overhead_cost[BESIDE] = 7;
    pki_bench_overhead o = found();
    close_to(o.loop_beside, 0.25, 0.001);
}

/* The library's own, on the real clock: whatever that finds, it is a cost. */
static void the_real_ones_are_costs(void **state)
{
    (void)state;
    pki_bench_overhead o;
    pki_bench_overhead_measure(&o, &pki_bench_system_clock, &pki_bench_own_loops);
    assert_true(o.loop >= o.loop_beside && o.loop_beside >= 0);
    assert_true(o.call >= o.call_beside && o.call_beside >= 0);
    assert_true(o.unsure >= 0 && isfinite(o.loop) && isfinite(o.call));
    for (int i = 0; i < PKI_BENCH_LOOPS; i++)
        for (int k = 0; k < PKI_BENCH_PLACES; k++)
            assert_non_null(pki_bench_own_loops.run[i][k]);
}

/* -- what is subtracted from a benchmark -- */

static double each = 100; /* ns of an iteration */

static void bench_overhead_constant(pk_bench_run *bench)
{
    uint64_t n = pk_bench_begin(bench);
    pass(each * (double)n);
    pk_bench_end(bench);
}

static void what_a_loop_adds(void **state)
{
    (void)state;
    close_to(pki_bench_subtract_loop(0.2, 0.3), 0, 0);
    close_to(pki_bench_subtract_loop(0.3, 0.3), 0, 0);
    close_to(pki_bench_subtract_loop(0.31, 0), 0.31, 0);
    close_to(pki_bench_subtract_loop(5, 0.3), 4.7, 1e-12);
}

static void the_loop_is_subtracted(void **state)
{
    (void)state;
    engine.overhead.loop = engine.overhead.loop_beside = 3;
    each = 13;
    pk_bench_result r = measured(bench_overhead_constant, NULL);
    close_to(r.median, 10, 0.01);
    close_to(r.overhead, 3 + 20.0 / (double)r.iterations, 0.001);
    pk_bench_result_release(&r);
}

/* Three additions of 0.31 ns. The empty loop was measured while it took two cycles, or even as long
 * as the work; beside the work it takes nothing. */
static void an_empty_loop_is_not_subtracted(void **state)
{
    (void)state;
    each = 0.925;
    for (double loop = 0.3; loop < 1.3; loop += 0.1) {
        engine.overhead.loop = engine.overhead.call = engine.overhead.call_beside = loop;
        pk_bench_result r = measured(bench_overhead_constant, NULL);
        close_to(r.median, 0.925, 0.001);
        close_to(r.overhead, 0, 0.001);
        pk_bench_result_release(&r);
    }
}

/* Every third sample is shorter than the loop. */
static unsigned sample_number;

static void sometimes_nothing(pk_bench_run *bench)
{
    uint64_t n = pk_bench_begin(bench);
    pass((sample_number++ % 3 ? 13 : 1) * (double)n);
    pk_bench_end(bench);
}

static void the_overhead_is_the_median_s(void **state)
{
    (void)state;
    engine.overhead.loop = engine.overhead.loop_beside = 3;
    for (uint32_t samples = 30; samples < 33; samples++) { /* one of them ends on a short one */
        pk_bench_result r = measured(sometimes_nothing,
                                     pk_bench_options(.iterations = 1000, .min_samples = samples,
                                                      .max_samples = samples, .precision = 1e-9));
        assert_int_equal(r.count, samples);
        close_to(r.median, 10, 1e-9);
        close_to(r.overhead, 3.02, 1e-9); /* and a reading of 20 ns for a thousand iterations */
        pk_bench_result_release(&r);
    }
}

static void a_reading_of_the_clock_is_overhead(void **state)
{
    (void)state;
    each = 100;
    pk_bench_result r =
        measured(bench_overhead_constant, pk_bench_options(.iterations = 1, .max_samples = 20));
    close_to(r.median, 100, 1e-9);
    close_to(r.overhead, 20, 1e-9);
    pk_bench_result_release(&r);
    r = measured(bench_overhead_constant,
                 pk_bench_options(.iterations = 1, .max_samples = 20, .clock = PK_BENCH_CLOCK_CPU));
    close_to(r.overhead, 40, 1e-9);
    pk_bench_result_release(&r);
}

/* As they came out too low: while the calibration ran, the empty loop took two cycles. */
static void short_work_is_not_shortened(void **state)
{
    (void)state;
    bench_overhead_cost[EMPTY] = 0.62;
    each = 0.925; /* three additions */
    for (swing = 0; swing < 0.7; swing += 0.3) {
        engine.overhead = found();
        pk_bench_result r = measured(bench_overhead_constant, NULL);
        close_to(r.median, 0.925, 0.001);
        pk_bench_result_release(&r);
    }
}

/* -- the loop itself -- */

/* However many copies of the body the compiler makes. A turn is long, so that few warm it up. */
static uint64_t bench_overhead_turns;

static void counting_turns(pk_bench_run *bench)
{
    bench_overhead_turns = 0;
    PK_BENCH_LOOP {
        __asm__ volatile("" : "+m"(bench_overhead_turns));
        if (bench_overhead_turns++ % 2)
            continue;
        pass(10000);
    }
}

static void as_many_turns_as_told(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 20; n++) {
        pk_bench_result r =
            measured(counting_turns, pk_bench_options(.iterations = n, .max_samples = 20));
        assert_int_equal(bench_overhead_turns, n);
        pk_bench_result_release(&r);
    }
}

#define BENCH_OVERHEAD_TEST(name) cmocka_unit_test_setup(name, start)

static const struct CMUnitTest bench_overhead_tests[] = {
    BENCH_OVERHEAD_TEST(a_loop_beside_work_is_free),
    BENCH_OVERHEAD_TEST(what_it_adds_is_found),
    BENCH_OVERHEAD_TEST(an_unlucky_place_changes_nothing),
    BENCH_OVERHEAD_TEST(interruptions_change_nothing),
    BENCH_OVERHEAD_TEST(disagreement_is_noticed),
    BENCH_OVERHEAD_TEST(at_most_the_empty_loop),
    BENCH_OVERHEAD_TEST(the_real_ones_are_costs),
    BENCH_OVERHEAD_TEST(what_a_loop_adds),
    BENCH_OVERHEAD_TEST(the_loop_is_subtracted),
    BENCH_OVERHEAD_TEST(an_empty_loop_is_not_subtracted),
    BENCH_OVERHEAD_TEST(the_overhead_is_the_median_s),
    BENCH_OVERHEAD_TEST(a_reading_of_the_clock_is_overhead),
    BENCH_OVERHEAD_TEST(short_work_is_not_shortened),
    BENCH_OVERHEAD_TEST(as_many_turns_as_told),
};

int main(void)
{
    int failed = cmocka_run_group_tests(bench_engine_tests, NULL, NULL);
    failed += cmocka_run_group_tests(bench_overhead_tests, NULL, NULL);
    return failed;
}
