/* Spans and steps of streams on the mock of the driver: what is recorded, at what cost, and what
 * goes wrong. */
#include "document.h"
#include "../kit/rounds.h"
#include "failing_memory.h"
#include "gpu.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pk/nccl.h>

#include "backend/cuda/api.h"
#include "core/thin.h"
#include "session/activity.h"
#include "session/session.h"

/* ---- spans of streams on the mock of the driver ---- */

/* What is recorded, in which order, at what cost. */

static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_COMPUTE, "inner");
static pk_region gpu_spans_other = PK_REGION("other");

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
        {
            PK_GPU_SCOPE(inner, the_stream);
        }
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
    pk_gpu_begin(&gpu_spans_other, the_stream); /* never ended */
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
    {
        PK_REGION_SCOPE(aside);
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
    span(&gpu_spans_other);
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
    pk_region_begin(&gpu_spans_other);
    pk_gpu_begin(&outer, the_stream);
    sleep_ms(5);
    pk_gpu_end(&outer, the_stream);
    pk_region_end(&gpu_spans_other);
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
    span_of_this_thread(&gpu_spans_other); /* the same, and another stream */
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

/* Some rounds of the asker, between giving a lane up and having one for the stream. */
static void await_rounds(fake_call call)
{
    if (call != FAKE_STREAM_CTX && call != FAKE_STREAM_CTX_2)
        return;
    unsigned before = gpu->calls(FAKE_EXCHANGE_MODE);
    await(gpu->calls(FAKE_EXCHANGE_MODE) >= before + 6);
}

/* The stream gets the very lane that has been given up for its handle. */
static void a_lane_used_again(void **state)
{
    (void)state;
    span(&outer);
    await(counts_now().recorded == 1);
    CUcontext second = gpu->context_create(0);
    gpu->stream_again(the_stream, second);
    gpu->on_call(await_rounds);
    for (int i = 0; i < 3; i++)
        span(&outer);
    gpu->on_call(NULL);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.contexts, 2);
    assert_int_equal(c.begun, 4);
    assert_int_equal(c.recorded, 3);
    assert_int_equal(c.skipped, 1);
}

static const struct CMUnitTest gpu_spans_tests[] = {
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
    with_gpu(a_lane_used_again),
};

static int run_gpu_spans(int argc, char **argv)
{
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(gpu_spans_tests, NULL, NULL);
}

/* ---- steps by stream spans, on the mock of the driver ---- */

/* Done with once the device has passed all of theirs, and not before. */

static pk_region gpu_steps_outer = PK_REGION("outer"),
                 gpu_steps_inner = PK_REGION_OF(PK_COMPUTE, "inner");

static int start_reported(void **state)
{
    if (enter_folder(state))
        return -1;
    gpu->reset();
    the_context = gpu->context_create(1);
    the_stream = gpu->stream_create(the_context);
    return pk_start(pk_options(.backends = "cuda", .report_path = "r.json"));
}

static int stop_reported(void **state)
{
    stop_gpu(state);
    return leave_folder(state);
}

static void step(void)
{
    pk_gpu_begin(&gpu_steps_inner, the_stream);
    sleep_ms(2);
    pk_gpu_end(&gpu_steps_inner, the_stream);
    sleep_ms(1);
    pk_step(1);
}

/* In a step that has been over for long. */
static void tell_something_old(void)
{
    const pki_activity old = {.kind = PKI_ACTIVITY_SPAN, .name = "", .device = 1, .start = 1};
    pthread_mutex_lock(&pki_drain_lock);
    pki_activity_add(&old);
    pthread_mutex_unlock(&pki_drain_lock);
}

static int64_t late_of(const json_t *report)
{
    return json_integer_value(member(member(report, "activities"), "late"));
}

static int64_t of(const json_t *report, const char *figure, const char *what)
{
    const json_t *steps = member(json_array_get(member(report, "gpus"), 0), "per_step");
    return (int64_t)json_number_value(member(member(steps, figure), what));
}

static json_t *stop_and_load(void)
{
    assert_int_equal(pk_stop(), PK_OK);
    return load_document("r.json");
}

static void every_step_and_no_late_span(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++)
        step();
    json_t *report = stop_and_load();
    int64_t steady = 30 - json_integer_value(member(member(report, "steps"), "warmup"));
    assert_int_equal(late_of(report), 0);
    assert_int_equal(of(report, "step", "count"), steady);
    assert_true(of(report, "busy", "min") >= 1900000); /* each has its span */
    assert_int_equal(of(report, "busy", "sum") + of(report, "idle", "sum"),
                     of(report, "step", "sum"));
    json_decref(report);
}

static void done_with_in_time(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        step();
    sleep_ms(20);
    pk_flush(); /* takes the spans */
    tell_something_old();
    json_t *report = stop_and_load();
    assert_int_equal(late_of(report), 1);
    json_decref(report);
}

/* A span that is open holds up the steps that it is in. */
static void not_before_the_span_around(void **state)
{
    (void)state;
    pk_gpu_begin(&gpu_steps_outer, the_stream);
    for (int i = 0; i < 10; i++)
        step();
    sleep_ms(20);
    pk_flush();
    tell_something_old();
    pk_gpu_end(&gpu_steps_outer, the_stream);
    json_t *report = stop_and_load();
    assert_int_equal(late_of(report), 0);
    assert_true(of(report, "busy", "min") > of(report, "step", "min") * 99 / 100);
    json_decref(report);
}

/* Nor one that the device has not come to. */
static void not_before_the_device(void **state)
{
    (void)state;
    step();
    gpu->hold(true);
    for (int i = 0; i < 10; i++)
        step();
    pk_flush();
    gpu->hold(false);
    json_t *report = stop_and_load();
    assert_int_equal(late_of(report), 0);
    json_decref(report);
}

/* -- collectives beside spans -- */

static int gpu_steps_start_traced(void **state)
{
    if (enter_folder(state))
        return -1;
    gpu->reset();
    the_context = gpu->context_create(1);
    the_stream = gpu->stream_create(the_context);
    return pk_start(pk_options(.backends = "cuda", .report_path = "r.json", .trace_path = "t.json",
                               .warmup_steps = 1));
}

typedef struct times {
    int64_t start, end; /* ns */
} times;

static times times_of(const json_t *event)
{
    int64_t start = llround(1000 * json_number_value(member(event, "ts")));
    return (times){start, start + llround(1000 * json_number_value(member(event, "dur")))};
}

static times both(times a, times b)
{
    times c = {a.start > b.start ? a.start : b.start, a.end < b.end ? a.end : b.end};
    c.end = c.end > c.start ? c.end : c.start;
    return c;
}

/* All of that category, but for the warm-up's step. */
static size_t take(const json_t *trace, const char *cat, times list[16])
{
    size_t i, n = 0;
    json_t *event;
    json_array_foreach(member(trace, "traceEvents"), i, event)
    {
        const char *c = json_string_value(json_object_get(event, "cat"));
        const char *name = json_string_value(member(event, "name"));
        if (c && strcmp(c, cat) == 0 && strcmp(name, "ProfilerStep#0") != 0 && n < 16)
            list[n++] = times_of(event);
    }
    return n;
}

static void overlap(CUstream other, pk_comm *comm)
{
    pk_gpu_begin(&gpu_steps_inner, the_stream);
    sleep_ms(1);
    pk_nccl_begin(comm, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 100, -1, other);
    sleep_ms(1);
    pk_gpu_end(&gpu_steps_inner, the_stream);
    sleep_ms(1);
    pk_nccl_end(comm, other, 0);
    pk_step(1);
}

static void hidden_and_exposed(void **state)
{
    (void)state;
    CUstream other = gpu->stream_create(the_context);
    pk_comm *comm = pk_comm_create("NCCL", "dp", 1, 0, 2);
    for (int i = 0; i < 6; i++)
        overlap(other, comm);
    json_t *report = stop_and_load(), *trace = load_document("t.json");
    times steps[16], spans[16], comms[16];
    size_t step_count = take(trace, "user_annotation", steps);
    size_t span_count = take(trace, "gpu_user_annotation", spans);
    size_t comm_count = take(trace, "collective", comms);
    int64_t in_flight = 0, hidden = 0;
    assert_true(step_count == 5 && span_count == 6 && comm_count == 6);
    for (size_t i = 0; i < step_count; i++)
        for (size_t k = 0; k < comm_count; k++) {
            times c = both(comms[k], steps[i]);
            in_flight += c.end - c.start;
            for (size_t j = 0; j < span_count; j++)
                hidden += both(c, spans[j]).end - both(c, spans[j]).start;
        }
    assert_true(hidden > 0 && hidden < in_flight);
    assert_int_equal(of(report, "comm", "sum"), in_flight);
    assert_int_equal(of(report, "comm_hidden", "sum"), hidden);
    assert_int_equal(of(report, "comm_exposed", "sum"), in_flight - hidden);
    json_decref(report);
    json_decref(trace);
}

static const struct CMUnitTest gpu_steps_tests[] = {
    cmocka_unit_test_setup_teardown(every_step_and_no_late_span, start_reported, stop_reported),
    cmocka_unit_test_setup_teardown(done_with_in_time, start_reported, stop_reported),
    cmocka_unit_test_setup_teardown(not_before_the_span_around, start_reported, stop_reported),
    cmocka_unit_test_setup_teardown(not_before_the_device, start_reported, stop_reported),
    cmocka_unit_test_setup_teardown(hidden_and_exposed, gpu_steps_start_traced, stop_reported),
};

static int run_gpu_steps(int argc, char **argv)
{
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(gpu_steps_tests, NULL, NULL);
}

/* ---- a device that is shared or saturated ---- */

/* All work comes late, the anchors' too. Where a span is said to lie is off by no more than the
 * uncertainty that is stated with it. */

enum { SPANS = 200 };

static pk_region work = PK_REGION("work");
static uint64_t stamps[2 * SPANS];

static double gpu_lag_number(const json_t *object, const char *key)
{
    return json_number_value(member(object, key));
}

static int start_late(void **state)
{
    uint64_t gpu_lag_late = *(const uint64_t *)*state;
    if (enter_folder(state))
        return -1;
    gpu->reset();
    gpu->clock(1 + 30e-6);
    gpu->lag(gpu_lag_late);
    the_context = gpu->context_create(0);
    the_stream = gpu->stream_create(the_context);
    return pk_start(pk_options(.backends = "cuda", .trace_path = "t.json"));
}

static int stop_late(void **state)
{
    stop_gpu(state);
    return leave_folder(state);
}

/* Ends of a span, of the session's time, and the truth. */
static double off_by(double said, double base, uint64_t stamp)
{
    return fabs(said - ((double)gpu->host_ns(stamp) - base));
}

static void within_what_is_stated(void **state)
{
    (void)state;
    for (int i = 0; i < SPANS; i++) {
        span(&work);
        sleep_ms(1 + (unsigned)i % 3);
    }
    await(counts_now().recorded + counts_now().lost == SPANS);
    assert_int_equal(gpu->stamps(the_stream, stamps, 2 * SPANS), 2 * SPANS);
    assert_int_equal(stop_and_count().recorded, SPANS);
    json_t *doc = load_document("t.json"), *event;
    const json_t *clock = member(member(doc, "metadata"), "clock");
    double base = gpu_lag_number(clock, "base_monotonic_ns"), widest = 0, error = 0;
    size_t i, n = 0;
    json_array_foreach(member(doc, "traceEvents"), i, event)
    {
        const json_t *stated = json_object_get(json_object_get(event, "args"), "uncertainty_ns");
        if (!stated)
            continue;
        double most = json_number_value(stated), start = gpu_lag_number(event, "ts") * 1e3;
        double begun = off_by(start, base, stamps[2 * n]);
        double ended = off_by(start + gpu_lag_number(event, "dur") * 1e3, base, stamps[2 * n + 1]);
        if (begun > most || ended > most)
            fail_msg("span %zu: off by %.0f and %.0f ns, stated %.0f", n, begun, ended, most);
        widest = fmax(widest, most);
        error = fmax(error, fmax(begun, ended));
        n++;
    }
    assert_int_equal(n, SPANS);
    print_message("at most %.0f ns off, at most %.0f stated\n", error, widest);
    json_decref(doc);
}

static uint64_t lags[] = {0, 50000, 300000, 1000000, 10000000, 100000000};

#define gpu_lag_late(n)                                                                            \
    {                                                                                              \
        "work comes late: " #n, within_what_is_stated, start_late, stop_late, &lags[n]             \
    }

static const struct CMUnitTest gpu_lag_tests[] = {gpu_lag_late(0), gpu_lag_late(1),
                                                  gpu_lag_late(2), gpu_lag_late(3),
                                                  gpu_lag_late(4), gpu_lag_late(5)};

static int run_gpu_lag(int argc, char **argv)
{
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(gpu_lag_tests, NULL, NULL);
}

/* ---- what goes wrong with a device, on the mock of the driver ---- */

/* Each span is counted once, and there are words for it. */

static pk_region gpu_errors_outer = PK_REGION("outer"), gpu_errors_inner = PK_REGION("inner");

static void a_poisoned_context(void **state)
{
    (void)state;
    CUcontext second = gpu->context_create(1);
    CUstream healthy = gpu->stream_create(second);
    span(&gpu_errors_outer);
    await(counts_now().recorded == 1);
    gpu->hold(true);
    span(&gpu_errors_outer);
    pk_gpu_begin(&gpu_errors_inner, the_stream);
    gpu->context_poison(the_context, CUDA_ERROR_ILLEGAL_ADDRESS);
    await(counts_now().lost == 1);
    gpu->count_anew();
    pk_gpu_end(&gpu_errors_inner, the_stream);
    for (int i = 0; i < 10; i++)
        span(&gpu_errors_outer);
    assert_int_equal(gpu->calls(FAKE_EVENT_RECORD), 0); /* nothing is asked of it any more */
    gpu->hold(false);
    for (int i = 0; i < 10; i++) {
        PK_GPU_SCOPE(gpu_errors_inner, healthy);
    }
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 11);
    assert_int_equal(c.lost, 2);
    assert_int_equal(c.skipped, 10);
    expect_words("nothing works in a context any more");
    expect_words("CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    assert_int_equal(pk_start(pk_options(.backends = "cuda")), PK_OK); /* nor in the next session */
    span(&gpu_errors_outer);
    assert_int_equal(stop_and_count().skipped, 1);
}

static void found_while_recording(void **state)
{
    (void)state;
    gpu->let_fail(FAKE_EVENT_RECORD, 1, 1, CUDA_ERROR_LAUNCH_FAILED);
    span(&gpu_errors_outer); /* its end tells */
    span(&gpu_errors_outer);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.lost, 1);
    assert_int_equal(c.skipped, 1);
    expect_words("(719)");
}

static void a_context_that_is_destroyed(void **state)
{
    (void)state;
    span(&gpu_errors_outer);
    await(counts_now().recorded == 1);
    gpu->hold(true);
    span(&gpu_errors_outer);
    span(&gpu_errors_outer);
    gpu->context_destroy(the_context);
    await(counts_now().lost == 2);
    expect_words("destroyed");
    CUcontext next = gpu->context_create(0);
    gpu->hold(false);
    gpu->stream_again(the_stream, next);
    span(&gpu_errors_inner);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 2);
    assert_int_equal(c.contexts, 2);
}

/* Its events are those of the primary context. */
static void a_stream_of_a_green_context(void **state)
{
    (void)state;
    CUstream before = the_stream;
    the_stream = gpu->stream_green(the_context);
    span(&gpu_errors_outer);
    await(counts_now().recorded == 1);
    the_stream = before;
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 1);
    assert_int_equal(c.skipped, 0);
}

/* What has been read is the device's no more: whoever destroys its context meets no call of ours.
 */
static void nothing_unread_asks_nothing(void **state)
{
    (void)state;
    span(&gpu_errors_outer);
    await(counts_now().recorded == 1);
    gpu->count_anew();
    for (int i = 0; i < 20; i++)
        assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(gpu->calls(FAKE_CTX_API_VERSION), 0);
    assert_int_equal(gpu->calls(FAKE_EVENT_QUERY), 0);
    assert_int_equal(stop_and_count().recorded, 1);
}

static void destroyed_before_the_stop(void **state)
{
    (void)state;
    gpu->hold(true);
    span(&gpu_errors_outer);
    gpu->context_destroy(the_context);
    assert_int_equal(stop_and_count().lost, 1);
}

static void no_context(void **state)
{
    (void)state;
    gpu->context_current(NULL);
    pk_gpu_begin(&gpu_errors_outer, NULL);
    pk_gpu_end(&gpu_errors_outer, NULL);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.begun, 1);
    assert_int_equal(c.skipped, 1);
    expect_words("no context");
}

static void single_failures(void **state)
{
    (void)state;
    pk_stop(); /* the collector records events, too, and would meet what is to fail here */
    assert_int_equal(pk_start(pk_options(.backends = "cuda")), PK_OK);
    kit_end_collector();
    span(&gpu_errors_outer);
    gpu->let_fail(FAKE_EVENT_RECORD, 0, 1, CUDA_ERROR_INVALID_HANDLE);
    span(&gpu_errors_outer); /* its begin */
    gpu->let_fail(FAKE_EVENT_RECORD, 1, 1, CUDA_ERROR_INVALID_HANDLE);
    span(&gpu_errors_outer); /* its end */
    gpu->let_fail(FAKE_IS_CAPTURING, 0, 1, CUDA_ERROR_UNKNOWN);
    span(&gpu_errors_outer);
    span(&gpu_errors_outer);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 2);
    assert_int_equal(c.skipped, 3);
    expect_words("a driver call failed");
}

/* An event that answers neither yes nor not yet is lost, and nothing behind it. */
static void events_that_fail(void **state)
{
    (void)state;
    gpu->hold(true);
    span(&gpu_errors_inner);
    span(&gpu_errors_outer);
    gpu->let_fail(FAKE_EVENT_ELAPSED, 1, 1, CUDA_ERROR_UNKNOWN);
    sleep_ms(20);
    gpu->hold(false);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded + c.lost, 2);
    assert_true(c.recorded >= 1);
}

static void no_events(void **state)
{
    (void)state;
    gpu->let_fail(FAKE_EVENT_CREATE, 0, 1, CUDA_ERROR_OUT_OF_MEMORY);
    span(&gpu_errors_outer);
    await((span(&gpu_errors_outer), counts_now().recorded > 0)); /* tried again, once in a round */
    assert_true(stop_and_count().dropped >= 1);
    expect_words("no pair of events");
}

static void no_memory(void **state)
{
    (void)state;
    memory_fails_after(0);
    span(&gpu_errors_outer);
    memory_fails_after(-1);
    await((span(&gpu_errors_outer), counts_now().recorded > 0)); /* tried again, once in a round */
    assert_true(stop_and_count().dropped >= 1);
}

static void no_anchor(void **state)
{
    (void)state;
    gpu->let_fail(FAKE_STREAM_CREATE, 0, 1, CUDA_ERROR_OUT_OF_MEMORY);
    span(&gpu_errors_outer);
    sleep_ms(30);
    assert_int_equal(stop_and_count().lost, 1);
    assert_int_equal(pk_start(pk_options(.backends = "cuda")), PK_OK);
    span(&gpu_errors_outer);
    assert_int_equal(stop_and_count().recorded, 1);
}

static void *finish_late(void *arg)
{
    sleep_ms(30);
    gpu->hold(false);
    return arg;
}

static void the_stop_waits_a_little(void **state)
{
    pthread_t late;
    (void)state;
    gpu->hold(true);
    for (int i = 0; i < 20; i++)
        span(&gpu_errors_outer);
    assert_int_equal(pthread_create(&late, NULL, finish_late, NULL), 0);
    assert_int_equal(stop_and_count().recorded, 20);
    pthread_join(late, NULL);
}

/* The child cannot use CUDA, and does not: no call of the driver's, nothing of the parent's freed.
 */
static void fork_amid_spans(void **state)
{
    int status;
    (void)state;
    if (strstr(SANITIZERS, "thread"))
        skip(); /* it loses its threads in the child */
    if (getenv("PK_TEST_QEMU"))
        skip(); /* qemu-user dies of threads that a fork's child starts */
    pk_gpu_begin(&gpu_errors_outer, the_stream);
    span(&gpu_errors_inner);
    pid_t child = fork();
    if (child == 0) {
        gpu->count_anew();
        pk_gpu_end(&gpu_errors_outer, the_stream);
        int bad = pk_start(pk_options(.backends = "cuda")) != PK_OK;
        pk_gpu_begin(&gpu_errors_outer, the_stream);
        pk_gpu_end(&gpu_errors_outer, the_stream);
        bad |= strstr(words(), "forked") ? 0 : 2;
        pk_gpu_counts c = {.size = sizeof c};
        bad |= pk_get_gpu_counts(&c) || c.begun ? 4 : 0;
        bad |= pk_stop() ? 8 : 0;
        bad |= gpu->calls(FAKE_EVENT_RECORD) || gpu->calls(FAKE_EVENT_QUERY) ? 16 : 0;
        _exit(bad);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pk_gpu_end(&gpu_errors_outer, the_stream);
    assert_int_equal(stop_and_count().recorded, 2);
}

static void which_errors_stay(void **state)
{
    static const int stay[] = {3, 4, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719};
    (void)state;
    unsigned count = 0;
    for (int code = 0; code < 1000; code++)
        count += pki_cuda_is_sticky((CUresult)code);
    assert_int_equal(count, sizeof stay / sizeof *stay);
    for (size_t i = 0; i < sizeof stay / sizeof *stay; i++)
        assert_true(pki_cuda_is_sticky((CUresult)stay[i]));
}

static const struct CMUnitTest gpu_errors_tests[] = {
    with_gpu(a_poisoned_context),
    with_gpu(found_while_recording),
    with_gpu(a_context_that_is_destroyed),
    with_gpu(a_stream_of_a_green_context),
    with_gpu(nothing_unread_asks_nothing),
    with_gpu(destroyed_before_the_stop),
    with_gpu(no_context),
    with_gpu(single_failures),
    with_gpu(events_that_fail),
    with_gpu(no_events),
    with_gpu(no_memory),
    with_gpu(no_anchor),
    with_gpu(the_stop_waits_a_little),
    with_gpu(fork_amid_spans),
    cmocka_unit_test(which_errors_stay),
};

static int run_gpu_errors(int argc, char **argv)
{
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(gpu_errors_tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    int failed = run_gpu_spans(argc, argv);
    failed += run_gpu_steps(argc, argv);
    failed += run_gpu_lag(argc, argv);
    failed += run_gpu_errors(argc, argv);
    return failed;
}
