/* Spans of streams on the mock of the driver: what is recorded, in which order, at what cost. */
#include "document.h"
#include "gpu.h"

#include <errno.h>
#include <math.h>

#include "core/thin.h"

#include "failing_memory.h"
#include "gpu_per_thread.h"

static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_COMPUTE, "inner");
static pk_region other = PK_REGION("other");

static int start_traced(void **state)
{
    if (enter_folder(state))
        return -1;
    gpu->reset();
    the_context = gpu->context_create(1);
    the_stream = gpu->stream_create(the_context);
    return pk_start(pk_options(.backends = "cuda", .trace_path = "t.json"));
}

static int stop_traced(void **state)
{
    stop_gpu(state);
    return leave_folder(state);
}

static void spans_and_counts(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        pk_gpu_begin(&outer, the_stream);
        PK_GPU_SCOPE(inner, the_stream) {}
        span(&inner);
        pk_gpu_end(&outer, the_stream);
    }
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.begun, 300);
    assert_int_equal(c.recorded, 300);
    assert_int_equal(c.contexts, 1);
    assert_int_equal(spans_of(&outer), 100);
    assert_int_equal(spans_of(&inner), 200);
    assert_string_equal(words(), "");
}

static void unbalanced_and_strays(void **state)
{
    (void)state;
    pk_gpu_begin(&outer, the_stream);
    pk_gpu_begin(&inner, the_stream);
    pk_gpu_end(&outer, the_stream); /* closes inner, too */
    pk_gpu_end(&inner, the_stream);
    pk_gpu_begin(&other, the_stream); /* never ended */
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.begun, 3);
    assert_int_equal(c.recorded, 2);
    assert_int_equal(c.unbalanced, 1);
    assert_int_equal(c.stray_ends, 1);
    assert_int_equal(c.lost, 1);
    expect_words("open at pk_stop");
}

/* On the thread it is a thinned one, or a sampled one: its id is not where it usually is. */
static void regions_off_the_fast_path(void **state)
{
    static pk_region aside = PK_REGION("aside");
    (void)state;
    PK_SCOPE(aside) {
    }
    pki_thin_mark(&aside, pki_region_id(&aside), true);
    for (int i = 0; i < 10; i++)
        span(&aside);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 10);
    assert_int_equal(c.unbalanced + c.stray_ends + c.lost, 0);
    assert_int_equal(spans_of(&aside), 10);
}

static void deep(void **state)
{
    (void)state;
    for (int i = 0; i < 70; i++)
        pk_gpu_begin(&outer, the_stream);
    for (int i = 0; i < 70; i++)
        pk_gpu_end(&outer, the_stream);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.begun, 70);
    assert_int_equal(c.recorded, 64);
    assert_int_equal(c.dropped, 6);
}

static double number(const json_t *event, const char *key)
{
    return json_number_value(member(event, key));
}

/* Of each thread of each process, in the file's order: an outer one comes behind its inner ones. */
static void expect_nesting(const json_t *doc)
{
    size_t i, k;
    json_t *a, *b, *events = member(doc, "traceEvents");
    json_array_foreach(events, i, a)
    {
        if (strcmp(json_string_value(member(a, "ph")), "X") != 0)
            continue;
        json_array_foreach(events, k, b)
        {
            if (k <= i || strcmp(json_string_value(member(b, "ph")), "X") != 0 ||
                number(a, "tid") != number(b, "tid"))
                continue;
            double a0 = number(a, "ts"), a1 = a0 + number(a, "dur"), b0 = number(b, "ts");
            if (a1 > b0 + 0.0005 && a0 < b0 - 0.0005)
                fail_msg("span %zu cuts into span %zu: %f..%f, %f", i, k, a0, a1, b0);
        }
    }
}

/* What was run is what is shown: durations to the float's step, order as on the stream. */
static void times_are_the_devices(void **state)
{
    uint64_t stamps[6];
    (void)state;
    gpu->hold(true);
    pk_gpu_begin(&outer, the_stream);
    span(&inner);
    pk_gpu_end(&outer, the_stream);
    span(&other);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(gpu->run(the_stream, 1), 1);
        sleep_ms(3);
    }
    assert_int_equal(gpu->stamps(the_stream, stamps, 6), 6);
    gpu->hold(false);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 3);
    json_t *doc = load_document("t.json");
    const json_t *o = find_event(doc, "outer"), *i = find_event(doc, "inner");
    assert_true(fabs(number(o, "dur") * 1000 - (double)(stamps[3] - stamps[0])) < 2000);
    assert_true(fabs(number(i, "dur") * 1000 - (double)(stamps[2] - stamps[1])) < 2000);
    assert_true(number(o, "ts") < number(i, "ts"));
    assert_true(number(i, "ts") + number(i, "dur") < number(o, "ts") + number(o, "dur"));
    assert_true(number(find_event(doc, "other"), "ts") > number(o, "ts") + number(o, "dur"));
    expect_nesting(doc);
    json_decref(doc);
}

/* As the trace and the report show the same moment of the CPU. */
static void times_are_the_sessions(void **state)
{
    (void)state;
    sleep_ms(30);
    pk_region_begin(&other);
    pk_gpu_begin(&outer, the_stream);
    sleep_ms(5);
    pk_gpu_end(&outer, the_stream);
    pk_region_end(&other);
    sleep_ms(20);
    stop_and_count();
    json_t *doc = load_document("t.json");
    const json_t *cpu = find_event(doc, "other"), *span_ = find_event(doc, "outer");
    double doubt = number(member(span_, "args"), "uncertainty_ns") / 1000 + 1;
    assert_true(number(span_, "ts") >= number(cpu, "ts") - doubt);
    assert_true(number(span_, "ts") + number(span_, "dur") <=
                number(cpu, "ts") + number(cpu, "dur") + doubt);
    assert_string_equal(json_string_value(member(span_, "cat")), "gpu_user_annotation");
    assert_null(json_object_get(member(span_, "args"), "stream"));
    assert_int_equal(number(member(span_, "args"), "device"), 1);
    assert_string_equal(json_string_value(member(member(span_, "args"), "region")), "outer");
    json_decref(doc);
}

static const char *name_of_track(const json_t *doc, const char *what, const json_t *of)
{
    size_t i;
    json_t *event;
    json_array_foreach(member(doc, "traceEvents"), i, event)
    {
        if (strcmp(json_string_value(member(event, "name")), what) == 0 &&
            number(event, "pid") == number(of, "pid") &&
            (strcmp(what, "process_name") == 0 || number(event, "tid") == number(of, "tid")))
            return json_string_value(member(member(event, "args"), "name"));
    }
    fail_msg("no %s", what);
    return "";
}

static void tracks(void **state)
{
    (void)state;
    CUcontext second = gpu->context_create(0);
    gpu->context_current(the_context);
    span(&inner);
    pk_gpu_begin(&outer, NULL); /* the legacy stream of the current context */
    pk_gpu_end(&outer, NULL);
    gpu->context_current(second);
    span_of_this_thread(&other); /* the same, and another stream */
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.contexts, 2);
    assert_int_equal(c.recorded, 4);
    json_t *doc = load_document("t.json");
    const json_t *a = find_event(doc, "inner"), *b = find_event(doc, "outer");
    const json_t *d = find_event(doc, "other");
    assert_string_equal(name_of_track(doc, "process_name", a), "GPU 1");
    assert_string_equal(name_of_track(doc, "process_name", d), "GPU 0");
    assert_string_equal(name_of_track(doc, "thread_name", b), "default stream (spans)");
    assert_memory_equal(name_of_track(doc, "thread_name", a), "stream ", 7);
    assert_non_null(strstr(name_of_track(doc, "thread_name", d), "default stream of thread "));
    json_decref(doc);
}

/* Exactly two records, two questions about captures, nothing else; no memory, errno as it was. */
static void what_a_span_costs(void **state)
{
    (void)state;
    span(&outer);
    gpu->hold(true);
    sleep_ms(50); /* the collector has anchored, and has nothing to ask about for a while */
    gpu->count_anew();
    errno = 77;
    memory_fails_after(0);
    for (int i = 0; i < 30; i++) /* fewer than half a batch: the collector makes no more */
        span(&outer);
    bool allocated = memory_has_failed();
    memory_fails_after(-1);
    assert_false(allocated);
    assert_int_equal(errno, 77);
    assert_int_equal(gpu->calls(FAKE_IS_CAPTURING), 60);
    assert_in_range(gpu->calls(FAKE_EVENT_RECORD), 60, 60 + 12); /* anchors of the collector */
    assert_int_equal(gpu->calls(FAKE_EVENT_CREATE), 0);
    assert_int_equal(gpu->calls(FAKE_STREAM_CTX), 0);
    gpu->hold(false);
    assert_int_equal(stop_and_count().recorded, 31);
}

/* The pool is bounded, and so is each lane's ring: what finds no room is dropped, and counted. */
static void more_than_there_is_room_for(void **state)
{
    (void)state;
    gpu->hold(true);
    for (int i = 0; i < 6000; i++)
        span(&outer);
    pk_gpu_counts now = counts_now();
    assert_int_equal(now.begun, 6000);
    assert_int_equal(now.dropped, 6000 - 4096);
    expect_words("too many were in flight");
    gpu->hold(false);
    await(counts_now().recorded == 4096);
    span(&outer); /* and goes on */
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 4097);
    assert_in_range(c.pairs, 4096, 8192 + 64);
}

static void pairs_are_used_again(void **state)
{
    (void)state;
    uint64_t others = counts_now().pairs; /* of the contexts of other tests */
    for (uint64_t i = 0; i < 20; i++) {
        for (int k = 0; k < 50; k++)
            span(&outer);
        await(counts_now().recorded == (i + 1) * 50);
    }
    assert_in_range(stop_and_count().pairs - others, 50, 192);
}

static void the_device_never_gets_there(void **state)
{
    (void)state;
    span(&inner);
    await(counts_now().recorded == 1);
    gpu->hold(true);
    for (int i = 0; i < 10; i++)
        span(&outer);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 1);
    assert_int_equal(c.lost, 10);
    expect_words("had not reached their end");
    gpu->hold(false);
    assert_int_equal(pk_start(pk_options(.backends = "cuda")), PK_OK);
    for (int i = 0; i < 10; i++)
        span(&outer); /* the same pairs again */
    c = stop_and_count();
    assert_int_equal(c.recorded, 10);
    assert_int_equal(c.begun, 10);
}

/* A begin of one session and its end in the next: the one is lost, the other a stray. */
static void over_a_stop(void **state)
{
    (void)state;
    pk_gpu_begin(&outer, the_stream);
    assert_int_equal(stop_and_count().lost, 1);
    pk_gpu_end(&outer, the_stream); /* off */
    assert_int_equal(pk_start(pk_options(.backends = "cuda")), PK_OK);
    pk_gpu_end(&outer, the_stream);
    span(&outer);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 1);
    assert_int_equal(c.begun, 1);
}

static void handle_used_again(void **state)
{
    (void)state;
    span(&outer);
    CUcontext second = gpu->context_create(0);
    gpu->stream_again(the_stream, second); /* the same handle, in another context */
    for (int i = 0; i < 1000; i++)
        span(&outer);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.contexts, 2);
    assert_int_equal(c.begun, 1001);
    assert_int_equal(c.skipped, 1); /* the one that told */
    assert_int_equal(c.lost, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        with_gpu(spans_and_counts),
        with_gpu(unbalanced_and_strays),
        with_gpu(regions_off_the_fast_path),
        with_gpu(deep),
        cmocka_unit_test_setup_teardown(times_are_the_devices, start_traced, stop_traced),
        cmocka_unit_test_setup_teardown(times_are_the_sessions, start_traced, stop_traced),
        cmocka_unit_test_setup_teardown(tracks, start_traced, stop_traced),
        with_gpu(what_a_span_costs),
        with_gpu(more_than_there_is_room_for),
        with_gpu(pairs_are_used_again),
        with_gpu(the_device_never_gets_there),
        with_gpu(over_a_stop),
        with_gpu(handle_used_again),
    };
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
