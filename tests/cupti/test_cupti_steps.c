/* Steps that CUPTI measures: which ones they are, and that none is done with before CUPTI has told
 * all of it. */
#include "scene.h"

#include <math.h>
#include <time.h>

static pk_region forward = PK_REGION("forward");

static void nap(void)
{
    struct timespec t = {0, 2000000};
    nanosleep(&t, NULL);
}

static void step(void)
{
    pk_region_begin(&forward);
    launch(.kernel = "one", .ns = 50000);
    launch(.kernel = "two", .ns = 5000);
    pk_region_end(&forward);
    nap();
    fake->finish();
    pk_step(1);
}

static const json_t *report_of(const json_t *doc)
{
    return member(doc, "perfkitReport");
}

static const json_t *figure(const json_t *doc, const char *name)
{
    const json_t *gpu = json_array_get(member(report_of(doc), "gpus"), 0);
    return member(member(gpu, "per_step"), name);
}

static int64_t of(const json_t *object, const char *key)
{
    return json_integer_value(member(object, key));
}

static void all_steps(void **state)
{
    (void)state;
    start_cupti(.report_path = "run.report.json");
    for (int i = 0; i < 30; i++) {
        step();
        if (i % 7 == 0)
            assert_int_equal(pk_flush(), PK_OK);
    }
    json_t *doc = stop_and_load();
    assert_int_equal(of(member(report_of(doc), "activities"), "late"), 0);
    assert_true(
        json_is_true(member(json_array_get(member(report_of(doc), "gpus"), 0), "measured")));
    /* All but the warm-up: CUPTI came amid the first one. */
    int64_t steady = 30 - of(member(report_of(doc), "steps"), "warmup");
    assert_int_equal(of(figure(doc, "kernels"), "count"), steady);
    assert_int_equal(of(figure(doc, "kernels"), "sum"), 2 * steady);
    assert_int_equal(of(figure(doc, "short_kernels"), "sum"), steady);
    const json_t *kernel = json_array_get(member(report_of(doc), "kernels"), 0);
    assert_string_equal(json_string_value(member(kernel, "name")), "one");
    assert_string_equal(json_string_value(member(kernel, "region")), "forward");
    json_decref(doc);
}

static void a_window_of_steps(void **state)
{
    (void)state;
    assert_int_equal(pk_start(pk_options(.trace_path = "run.json", .report_path = "run.report.json",
                                         .cupti_steps = "200-204")),
                     PK_OK);
    for (int i = 0; i < 240; i++)
        step();
    json_t *doc = stop_and_load();
    assert_int_equal(of(member(report_of(doc), "activities"), "late"), 0);
    assert_int_equal(of(figure(doc, "kernels"), "count"), 5);
    assert_int_equal(of(figure(doc, "kernels"), "sum"), 10);
    assert_int_equal(of(figure(doc, "step"), "count"), 5);
    json_decref(doc);
}

static void wait_for_late_records(void **state)
{
    (void)state;
    start_cupti(.report_path = "run.report.json");
    for (int i = 0; i < 10; i++) {
        launch(.kernel = "one");
        nap();
        pk_step(1);
    }
    assert_int_equal(pk_flush(), PK_OK); /* the steps are known, their kernels have not ended */
    fake->finish();
    json_t *doc = stop_and_load();
    assert_int_equal(json_array_size(member(report_of(doc), "kernels")), 1);
    json_decref(doc);
}

/* From when till when, in ns. */
typedef struct times {
    int64_t start, end;
} times;

static times times_of(const json_t *event)
{
    int64_t start = llround(1000 * json_number_value(member(event, "ts")));
    return (times){start, start + llround(1000 * json_number_value(member(event, "dur")))};
}

static int64_t common(times a, times b)
{
    int64_t start = a.start > b.start ? a.start : b.start, end = a.end < b.end ? a.end : b.end;
    return end > start ? end - start : 0;
}

/* One while a kernel runs on another stream, as far as the machine lets it, and one after that. */
static void collectives_beside_kernels(void **state)
{
    (void)state;
    start_cupti(.report_path = "run.report.json");
    launch(.kernel = "first");
    fake->finish();
    pk_step(1);
    launch(.kernel = "gemm", .ns = 20000000);
    launch(.kernel = "ncclDevKernel_AllReduce", .stream = 20, .ns = 4000000);
    launch(.kernel = "ncclDevKernel_AllGather", .stream = 20, .ns = 3000000, .delay = 30000000);
    fake->finish();
    for (int i = 0; i < 20; i++)
        nap();
    pk_step(1);
    json_t *doc = stop_and_load();
    times gemm = times_of(the_event(doc, "kernel", "gemm"));
    times one = times_of(the_event(doc, "kernel", "ncclDevKernel_AllReduce"));
    times two = times_of(the_event(doc, "kernel", "ncclDevKernel_AllGather"));
    times step = times_of(the_event(doc, "user_annotation", "ProfilerStep#1"));
    int64_t hidden = common(one, gemm) + common(two, gemm);
    assert_int_equal(common(one, step) + common(two, step),
                     one.end - one.start + two.end - two.start);
    assert_int_equal(of(figure(doc, "comm"), "sum"), 7000000);
    assert_int_equal(of(figure(doc, "comm_hidden"), "sum"), hidden);
    assert_int_equal(of(figure(doc, "comm_exposed"), "sum"), 7000000 - hidden);
    json_decref(doc);
}

#define with_fake(test) cmocka_unit_test_setup_teardown(test, reset_fake, stop_and_leave)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        with_fake(all_steps),
        with_fake(a_window_of_steps),
        with_fake(wait_for_late_records),
        with_fake(collectives_beside_kernels),
    };
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
