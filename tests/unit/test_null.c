/* NULL to every public function that does not say that it may not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <pk/bench.h>
#include <pk/comm.h>
#include <pk/gpu.h>
#include <pk/pk.h>

#include "bench/drive.h"

static pk_region work = PK_REGION("work");

static void control_calls_answer(void **state)
{
    (void)state;
    pk_backend_info info = {.size = sizeof info};
    assert_int_equal(pk_get_counts(NULL), PK_EINVAL);
    assert_int_equal(pk_get_gpu_counts(NULL), PK_EINVAL);
    assert_int_equal(pk_backend_status(NULL, &info), PK_ENOENT);
    assert_int_equal(pk_backend_status("cuda", NULL), PK_EINVAL);
    pk_thread_set_name(NULL);
}

static void statistics_answer(void **state)
{
    static pk_stats stats;
    (void)state;
    assert_int_equal(pk_region_stats(NULL, &stats), PK_EINVAL);
    assert_int_equal(pk_region_stats(&work, NULL), PK_EINVAL);
    assert_int_equal(pk_region_gpu_stats(NULL, &stats), PK_EINVAL);
    assert_int_equal(pk_region_gpu_stats(&work, NULL), PK_EINVAL);
    assert_int_equal(pk_step_stats(NULL), PK_EINVAL);
    assert_int_equal(pk_stats_quantile(NULL, 0.5), 0);
}

static void names_are_made_up(void **state)
{
    (void)state;
    assert_string_equal(pk_region_named(NULL)->name, "(unnamed)");
    assert_string_equal(pk_region_named_of(PK_IO, NULL)->name, "(unnamed)");
    assert_string_equal(pk_counter_named(NULL, NULL)->name, "(unnamed)");
    assert_string_equal(pk_region_variant(NULL, NULL, 3)->name, "(unnamed)[value=3]");
    assert_string_equal(pk_region_variant(&work, NULL, 3)->name, "work[value=3]");
}

static void communicators_do_without(void **state)
{
    (void)state;
    pk_comm_request none = pk_comm_start(NULL, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 1, -1);
    assert_null(none.comm);
    pk_comm_finish(&none, 0);
    pk_comm_finish(NULL, 0);
    pk_comm_correct(NULL, 0, 0);
    pk_comm_set_peers(NULL, NULL, 0);
    pk_comm_destroy(NULL);
    pk_region_begin(&work);
    pk_comm_call(&work, NULL, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 1, -1);
    pk_region_end(&work);
    pk_comm_destroy(pk_comm_create(NULL, NULL, 0, 0, 1));
}

static void benchmarks_answer(void **state)
{
    pk_bench_result result;
    (void)state;
    assert_int_equal(pk_bench(NULL, NULL, NULL, NULL, &result), PK_EINVAL);
    assert_int_equal(pk_bench_add(NULL, NULL, NULL), PK_EINVAL);
    assert_int_equal(pk_bench_open_(0, NULL), PK_EINVAL);
    assert_int_equal(pk_bench_take_(NULL, 1, NULL), PK_EINVAL);
    pk_bench_close_(NULL);
    pk_bench_result_release(NULL);
}

static int start(void **state)
{
    (void)state;
    return pk_start(pk_options(.backends = "none"));
}

static int stop(void **state)
{
    (void)state;
    return pk_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_calls_answer), cmocka_unit_test(statistics_answer),
        cmocka_unit_test(names_are_made_up),    cmocka_unit_test(communicators_do_without),
        cmocka_unit_test(benchmarks_answer),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
