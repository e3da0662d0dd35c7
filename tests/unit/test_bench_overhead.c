/* What the harness takes to cost itself, found with loops and a clock that the test moves. */
#include "script_clock.h"

#include "bench/overhead.h"

/* ---- loops that take what a test says ---- */

enum { EMPTY = PKI_BENCH_LOOP_EMPTY, BESIDE = PKI_BENCH_LOOP_CHAIN };

static double cost[PKI_BENCH_LOOPS];     /* ns of an iteration */
static double unlucky[PKI_BENCH_PLACES]; /* more than that, in loops at this place */
static double interruption;              /* ns, in every seventh run */
static double swing; /* more than cost, in every other try: of what has a loop */
static unsigned runs;

static void run(unsigned loop, unsigned place, uint64_t turns)
{
    unsigned tries = runs / (PKI_BENCH_LOOPS * PKI_BENCH_PLACES);
    bool has_loop = loop != PKI_BENCH_CHAIN && loop != PKI_BENCH_CHAIN_IN_MEMORY;
    double each = cost[loop] + (has_loop ? unlucky[place] + swing * (tries % 2) : 0);
    runs++;
    pass(each * (double)turns + (runs % 7 == 0 ? interruption : 0));
}

#define RUN(loop, place)                                                                           \
    static void run_##loop##_##place(uint64_t turns)                                               \
    {                                                                                              \
        run(loop, place, turns);                                                                   \
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
        cost[i] = 4;
    cost[EMPTY] = 0.25;
    cost[PKI_BENCH_CALL_EMPTY] = 1.25;
    return start_script(state);
}

static pki_bench_overhead found(void)
{
    pki_bench_overhead o;
    pki_bench_overhead_measure(&o, &script_clock, &loops);
    close_to(o.clock, 20, 0);
    return o;
}

/* ---- what is found ---- */

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
    cost[EMPTY] = 1;
    cost[BESIDE] = 4.75;
    cost[PKI_BENCH_CALL_EMPTY] = 3;
    cost[PKI_BENCH_CALL_CHAIN] = 6.5;
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
    cost[BESIDE] = 4.125;
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
    cost[BESIDE] = 7;
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

/* ---- what is subtracted from a benchmark ---- */

static double each = 100; /* ns of an iteration */

static void constant(pk_bench_run *bench)
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
    pk_bench_result r = measured(constant, NULL);
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
        pk_bench_result r = measured(constant, NULL);
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
    pk_bench_result r = measured(constant, pk_bench_options(.iterations = 1, .max_samples = 20));
    close_to(r.median, 100, 1e-9);
    close_to(r.overhead, 20, 1e-9);
    pk_bench_result_release(&r);
    r = measured(constant,
                 pk_bench_options(.iterations = 1, .max_samples = 20, .clock = PK_BENCH_CLOCK_CPU));
    close_to(r.overhead, 40, 1e-9);
    pk_bench_result_release(&r);
}

/* As they came out too low: while the calibration ran, the empty loop took two cycles. */
static void short_work_is_not_shortened(void **state)
{
    (void)state;
    cost[EMPTY] = 0.62;
    each = 0.925; /* three additions */
    for (swing = 0; swing < 0.7; swing += 0.3) {
        engine.overhead = found();
        pk_bench_result r = measured(constant, NULL);
        close_to(r.median, 0.925, 0.001);
        pk_bench_result_release(&r);
    }
}

/* ---- the loop itself ---- */

/* However many copies of the body the compiler makes. A turn is long, so that few warm it up. */
static uint64_t turns;

static void counting_turns(pk_bench_run *bench)
{
    turns = 0;
    PK_BENCH_LOOP {
        __asm__ volatile("" : "+m"(turns));
        if (turns++ % 2)
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
        assert_int_equal(turns, n);
        pk_bench_result_release(&r);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_loop_beside_work_is_free),       TEST(what_it_adds_is_found),
        TEST(an_unlucky_place_changes_nothing), TEST(interruptions_change_nothing),
        TEST(disagreement_is_noticed),          TEST(at_most_the_empty_loop),
        TEST(the_real_ones_are_costs),          TEST(what_a_loop_adds),
        TEST(the_loop_is_subtracted),           TEST(an_empty_loop_is_not_subtracted),
        TEST(the_overhead_is_the_median_s),     TEST(a_reading_of_the_clock_is_overhead),
        TEST(short_work_is_not_shortened),      TEST(as_many_turns_as_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
