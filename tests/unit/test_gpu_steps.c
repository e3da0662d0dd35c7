/* Steps by stream spans, on the mock of the driver: done with once the device has passed all of
 * theirs, and not before. */
#include "document.h"
#include "gpu.h"

#include <math.h>

#include "session/activity.h"
#include "session/session.h"

static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_COMPUTE, "inner");

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
    pk_gpu_begin(&inner, the_stream);
    sleep_ms(2);
    pk_gpu_end(&inner, the_stream);
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
    pk_gpu_begin(&outer, the_stream);
    for (int i = 0; i < 10; i++)
        step();
    sleep_ms(20);
    pk_flush();
    tell_something_old();
    pk_gpu_end(&outer, the_stream);
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

/* ---- collectives beside spans ---- */

static int start_traced(void **state)
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
    pk_gpu_begin(&inner, the_stream);
    sleep_ms(1);
    pk_nccl_begin(comm, PK_OP_ALL_REDUCE, PK_TYPE_FLOAT32, 100, -1, other);
    sleep_ms(1);
    pk_gpu_end(&inner, the_stream);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_step_and_no_late_span, start_reported, stop_reported),
        cmocka_unit_test_setup_teardown(done_with_in_time, start_reported, stop_reported),
        cmocka_unit_test_setup_teardown(not_before_the_span_around, start_reported, stop_reported),
        cmocka_unit_test_setup_teardown(not_before_the_device, start_reported, stop_reported),
        cmocka_unit_test_setup_teardown(hidden_and_exposed, start_traced, stop_reported),
    };
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
