/* A GPU's samples: cold, long enough, enough of them; and its clock while they are taken. */
#include "kernel_clock.h"

/* ---- samples ---- */

static void cold_kernels(void **state)
{
    (void)state;
    struct pk_bench_options o = {.max_samples = 50, .cold = 1};
    unsigned fills = tally->fills;
    pk_bench_result r = run_with(o, 5000, 2000);
    close_to(r.median, 3000, 0.01); /* the fill is not in it */
    assert_int_equal(r.iterations, 1);
    assert_int_equal(r.bound, PK_BENCH_BOUND_LAUNCH);
    assert_true(tally->fills > fills + 50);
    assert_int_equal(tally->filled, 2 << 20); /* twice the mock's L2 */
    assert_string_equal(r.note, "a sample is 3.0 us, and known to 0.5 us (the events' steps)");
    pk_bench_result_release(&r);
}

static void the_precision_makes_the_sample(void **state)
{
    (void)state;
    struct pk_bench_options o = {.max_samples = 50, .precision = 0.0005};
    pk_bench_result r = run_with(o, 5000, 10000);
    assert_int_equal(r.iterations, 200); /* 2 x 0.5 us / 0.0005 */
    assert_string_equal(r.note, "");
    pk_bench_result_release(&r);
    o.precision = 0.0001;
    r = run_with(o, 5000, 2000);
    assert_int_equal(r.iterations, PKI_BENCH_QUEUED);
    assert_string_equal(r.note, "a sample is 1024.0 us, and known to 0.5 us (the events' steps)");
    pk_bench_result_release(&r);
}

static void the_stop_rule_is_the_processor_s(void **state)
{
    (void)state;
    pk_bench_result r = run_with((struct pk_bench_options){.size = 0}, 5000, 2000);
    assert_int_equal(r.stopped, PK_BENCH_STOP_PRECISE);
    assert_true(r.count >= 20 && r.at[r.count - 1] >= 90e6);
    pk_bench_result_release(&r);
}

/* ---- clocks ---- */

/* From 300 MHz, 6 MHz in each ms; kernels take as many cycles. */
static void clock_rises(void)
{
    unsigned mhz = (unsigned)fmin(300 + (script.now - 1e9) / 1e6 * 6, 1980);
    fake_set(nvml->device[0].sm_mhz, mhz);
    kernel.ns = 1980u * 10000 / mhz;
}

static void warm_when_the_clock_has_risen(void **state)
{
    (void)state;
    as_time_passes = clock_rises;
    struct pk_bench_options o = {.max_samples = 50, .max_warmup = 2000000000};
    pk_bench_result r = run_with(o, 5000, 66000);
    close_to(r.max, 10000, 25);
    assert_int_equal(r.warmup_steady, 1);
    assert_true(r.warmup_time >= 350000000);
    assert_int_equal(r.clock_low, 1980);
    assert_int_equal(r.clock_high, 1980);
    pk_bench_result_release(&r);
    assert_int_equal(nvml->inits, nvml->shutdowns);
}

static void warm_by_time_without_nvml(void **state)
{
    (void)state;
    nvml->device[0].uuid = "GPU-another";
    pk_bench_result r = run(5000, 2000);
    assert_true(r.warmup_time >= PKI_BENCH_CLOCKS_BLIND);
    assert_true(r.warmup_time < PKI_BENCH_CLOCKS_BLIND + 20000000);
    assert_int_equal(r.clock_high, 0);
    assert_string_equal(r.note, "");
    pk_bench_result_release(&r);
    assert_int_equal(nvml->inits, nvml->shutdowns);
}

#define HOT_FROM 1500e6
#define HOT_TO 1700e6

static void power_cap(void)
{
    bool hot = script.now >= HOT_FROM && script.now < HOT_TO;
    fake_set(nvml->device[0].reasons, hot ? 0x4 : 0);
    fake_set(nvml->device[0].sm_mhz, hot ? 1410 : 1980);
}

static void throttled_samples_are_marked(void **state)
{
    (void)state;
    as_time_passes = power_cap;
    struct pk_bench_options o = {.min_time = 1000000000, .max_time = 1000000000};
    pk_bench_result r = run_with(o, 5000, 20000);
    uint64_t marked = 0;
    double first = 1e9 + (double)r.warmup_time;
    for (uint64_t i = 0; i < r.count; i++) {
        double at = first + r.at[i], far = PKI_BENCH_CLOCKS_EVERY + 1e6;
        bool mark = r.marks[i] & PK_BENCH_MARK_THROTTLED;
        marked += mark;
        if (at >= HOT_FROM && at < HOT_TO)
            assert_true(mark);
        if (at < HOT_FROM - far || at > HOT_TO + far)
            assert_false(mark);
    }
    assert_true(marked > 0 && marked < r.count);
    assert_int_equal(r.throttled, marked);
    assert_int_equal(r.clock_low, 1410);
    assert_int_equal(r.clock_high, 1980);
    if (!strstr(r.note, "the GPU's clock was held down (the power cap)"))
        fail_msg("%s", r.note);
    pk_bench_result_release(&r);
}

int main(int argc, char **argv)
{
    if (!open_mocks(argc, argv))
        return 2;
    const struct CMUnitTest tests[] = {
        TEST(cold_kernels),
        TEST(the_precision_makes_the_sample),
        TEST(the_stop_rule_is_the_processor_s),
        TEST(warm_when_the_clock_has_risen),
        TEST(warm_by_time_without_nvml),
        TEST(throttled_samples_are_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
