/* A session and its trace: whole whenever somebody looks, and all that has been recorded at the
 * end. */
#include "document.h"
#include "lengthy.h"
#include "session.h"

#include "measure/overhead.h"
#include "session/session.h"
#include "session/trace/output.h"

static pk_region outer = PK_REGION_OF(PK_COMPUTE, "outer"), inner = PK_REGION("inner \"\xFF\"");
static pk_counter level = PK_COUNTER("level", "bytes");

static const char *trace_name;

static int start_trace(void **state)
{
    trace_name = "run.json";
    return enter_folder(state) || pk_start(pk_options(.trace_path = trace_name, .clock = the_clock,
                                                      .backends = "none", .flush_ms = 3600000));
}

static int stop_trace(void **state)
{
    pk_stop();
    return leave_folder(state);
}

static void record(int n)
{
    for (int i = 0; i < n; i++) {
        pk_region_begin(&outer);
        pk_region_begin(&inner);
        pk_region_add(&inner, 10, 20);
        pk_region_end(&inner);
        pk_region_end(&outer);
    }
}

/* ---- the document ---- */

static void whole_after_every_flush(void **state)
{
    (void)state;
    json_t *doc = load_document(trace_name); /* before anything has been recorded, too */
    assert_int_equal(count_events(doc, "X", NULL), 0);
    json_decref(doc);
    for (int i = 1; i <= 20; i++) {
        record(i);
        assert_int_equal(pk_flush(), PK_OK);
        doc = load_document(trace_name);
        assert_int_equal(count_events(doc, "X", "outer"), i * (i + 1) / 2);
        assert_int_equal(count_events(doc, "X", "inner \"\xEF\xBF\xBD\""), i * (i + 1) / 2);
        assert_true(json_is_false(member(member(doc, "metadata"), "complete")));
        json_decref(doc);
    }
    assert_true(exists("run.json.arena"));
    pk_counts counts = stop_and_count();
    assert_int_equal(counts.written, counts.recorded);
    assert_false(exists("run.json.arena"));
    assert_int_equal(count_files(), 1);
}

static void what_the_stop_adds(void **state)
{
    (void)state;
    record(5);
    pk_region_begin(&outer); /* left open */
    pk_counts counts = stop_and_count();
    json_t *doc = load_document(trace_name);
    assert_true(json_is_true(member(member(doc, "metadata"), "complete")));
    assert_true(json_is_object(member(doc, "perfkitReport")));
    assert_true(count_in(doc, "begun") == 11 && count_in(doc, "recorded") == 11 &&
                count_in(doc, "written") == 11);
    assert_true(count_in(doc, "unbalanced") == 1 && count_in(doc, "dropped") == 0 &&
                count_in(doc, "threads") == 1);
    assert_int_equal(counts.trace_bytes > 1000, 1);
    assert_int_equal(count_events(doc, "X", NULL), 11);
    json_decref(doc);
}

static double cost_in(const json_t *doc, const char *name)
{
    return json_number_value(member(member(member(doc, "perfkitReport"), "overhead"), name));
}

/* But for the six digits of the file. */
static bool is_about(double a, double b)
{
    return a >= b * (1 - 1e-5) && a <= b * (1 + 1e-5);
}

/* The calling thread has formatted what pk_flush and pk_stop found, and that is in the figure. */
static void the_cost_is_all_of_it(void **state)
{
    (void)state;
    record(2000);
    assert_int_equal(pk_flush(), PK_OK);
    pk_counts counts = stop_and_count();
    json_t *doc = load_document(trace_name), *run = member(member(doc, "perfkitReport"), "run");
    double parts = cost_in(doc, "recording") + cost_in(doc, "collector") + cost_in(doc, "callers") +
                   cost_in(doc, "captures") + cost_in(doc, "readings") + cost_in(doc, "backends");
    double regions = cost_in(doc, "region_ns") * (double)(counts.begun + counts.points);
    double cpu = json_number_value(member(run, "cpu"));
    assert_true(cost_in(doc, "callers") > 0 && regions > 0);
    assert_true(is_about(cost_in(doc, "recording"), regions));
    assert_true(is_about(cost_in(doc, "total"), parts));
    assert_true(is_about(cost_in(doc, "share"), parts / cpu));
    json_decref(doc);
}

/* Where the kernel tells, it is known for as long as between two looks. */
static void what_the_loop_had_of_the_processors(void **state)
{
    char line[64];
    (void)state;
    if (!pki_read_line("/proc/self/schedstat", line, sizeof line))
        skip();
    pk_step(1);
    assert_int_equal(pk_flush(), PK_OK);
    for (uint64_t since = pki_monotonic_ns(); pki_monotonic_ns() - since < PKI_PROCESSOR_LEAST_NS;)
        ;
    pk_step(1);
    assert_int_equal(stop_and_count().steps, 2);
    json_t *doc = load_document(trace_name);
    const json_t *steps = member(member(doc, "perfkitReport"), "steps");
    json_int_t observed = json_integer_value(member(member(steps, "processor"), "observed"));
    assert_true(observed >= PKI_PROCESSOR_LEAST_NS);
    assert_int_equal(json_integer_value(
                         member(member(member(doc, "metadata"), "stepping_thread"), "observed_ns")),
                     observed);
    json_decref(doc);
}

/* A look at the start and one at the end, at least, without libpk_alloc. */
static void how_its_memory_went(void **state)
{
    (void)state;
    record(1);
    stop_and_count();
    json_t *doc = load_document(trace_name);
    const json_t *memory = member(member(doc, "perfkitReport"), "memory"), *row;
    double resident = json_number_value(member(memory, "resident"));
    json_int_t looks = json_integer_value(member(memory, "looks")), seen = 0;
    size_t i;
    assert_true(looks >= 2 && resident > 0);
    json_array_foreach(member(memory, "series"), i, row)
    {
        seen += json_integer_value(json_array_get(row, 1));
        assert_true(json_number_value(json_array_get(row, 2)) > 0);
        if (i + 1 == json_array_size(member(memory, "series")))
            assert_true(json_number_value(json_array_get(row, 4)) >= resident);
    }
    assert_int_equal(seen, looks);
    json_decref(doc);
}

static void every_kind_of_event(void **state)
{
    (void)state;
    pk_thread_name("trai\"ner");
    record(1);
    pk_counter_set(&level, 1.5);
    pk_region_mark(&outer);
    pk_step(32);
    pk_step(32);
    PK_SCOPE(*pk_region_variant(&outer, "seq", -4)) {
    }
    pk_counts counts = stop_and_count();
    assert_true(counts.points == 4 && counts.written == 3 + 4);
    json_t *doc = load_document(trace_name);
    const json_t *e = find_event(doc, "level");
    assert_string_equal(json_string_value(member(e, "ph")), "C");
    assert_true(json_number_value(member(member(e, "args"), "bytes")) == 1.5);
    assert_int_equal(count_events(doc, "i", "outer"), 1);
    assert_int_equal(
        count_events(doc, "X", "ProfilerStep#0") + count_events(doc, "X", "ProfilerStep#1"), 2);
    e = find_event(doc, "outer[seq=-4]");
    assert_int_equal(json_integer_value(member(member(e, "args"), "seq")), -4);
    e = find_event(doc, "inner \"\xEF\xBF\xBD\"");
    assert_int_equal(json_integer_value(member(member(e, "args"), "bytes")), 10);
    assert_int_equal(json_integer_value(member(member(e, "args"), "flops")), 20);
    assert_int_equal(count_events(doc, "M", "thread_name"), 2); /* and the steps' */
    json_decref(doc);
    char *text = read_file(trace_name, NULL);
    assert_non_null(strstr(text, "{\"name\":\"trai\\\"ner\"}"));
    free(text);
}

/* Times in the trace are the statistics': parents hold their children, and durations are the
 * same. */
static void times_hang_together(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    spend();
    record(1);
    spend();
    pk_region_end(&outer);
    const uint64_t longest = stats_of(&outer)->max;
    stop_and_count();
    json_t *doc = load_document(trace_name), *event;
    double end = 0, begin = 1e18;
    size_t i;
    json_array_foreach(member(doc, "traceEvents"), i, event)
    {
        if (strcmp(json_string_value(member(event, "ph")), "X") != 0)
            continue;
        double ts = json_real_value(member(event, "ts")),
               dur = json_real_value(member(event, "dur"));
        bool last = i + 1 == json_array_size(member(doc, "traceEvents")); /* inner ones first */
        assert_true(last ? ts <= begin && ts + dur >= end - 0.001 : dur > 0);
        begin = ts < begin ? ts : begin;
        end = ts + dur > end ? ts + dur : end;
        if (last)
            assert_true(dur * 1000 > (double)longest - 3 && dur * 1000 < (double)longest + 3);
    }
    json_decref(doc);
}

static void compressed(void **state)
{
    (void)state;
    stop_and_count();
    assert_int_equal(
        pk_start(pk_options(.trace_path = "run.json.gz", .clock = the_clock, .backends = "none")),
        PK_OK);
    for (int i = 1; i <= 5; i++) {
        record(100);
        assert_int_equal(pk_flush(), PK_OK);
        json_t *doc = load_document("run.json.gz");
        assert_int_equal(count_events(doc, "X", "outer"), i * 100);
        json_decref(doc);
    }
    pk_counts counts = stop_and_count();
    json_t *doc = load_document("run.json.gz");
    assert_int_equal(count_events(doc, "X", NULL), 1000);
    assert_true(json_is_object(member(doc, "perfkitReport")));
    json_decref(doc);
    struct stat s;
    assert_int_equal(stat("run.json.gz", &s), 0);
    assert_true((uint64_t)s.st_size < counts.trace_bytes / 4);
}

/* First more than fits into the buffer, so that it is written in between. */
static void a_long_trace(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < (i ? 500 : 4000); k++)
            PK_SCOPE(lengthy) {
            }
        assert_int_equal(pk_flush(), PK_OK);
    }
    pk_counts counts = stop_and_count();
    assert_true(counts.recorded == 5000 && counts.dropped == 0 && counts.written == 5000);
    assert_true(counts.trace_bytes > PKI_OUTPUT_BYTES * 5 / 4);
    json_t *doc = load_document(trace_name);
    assert_int_equal(count_events(doc, "X", NULL), 5000);
    json_decref(doc);
}

/* ---- trouble ---- */

static void a_bound_on_its_size(void **state)
{
    (void)state;
    stop_and_count();
    assert_int_equal(pk_start(pk_options(.trace_path = "small.json", .trace_max_bytes = 65536,
                                         .backends = "none")),
                     PK_OK);
    record(5000);
    assert_int_equal(pk_flush(), PK_OK);
    pk_counts counts = stop_and_count();
    assert_true(counts.written > 100 && counts.unwritten > 5000);
    assert_int_equal(counts.written + counts.unwritten, counts.recorded);
    json_t *doc = load_document("small.json");
    assert_int_equal(count_events(doc, "X", NULL), counts.written);
    json_decref(doc);
    char *events = read_file("small.json", NULL);
    assert_true(strstr(events, "\n]") - events <= 65536); /* the report comes behind */
    free(events);
    assert_int_equal(count_of(&outer), 5000);
}

static void expect_no_start(const char *path, pk_status status)
{
    unsigned before = count_files();
    pk_counts counts = {.size = sizeof counts};
    assert_int_equal(pk_start(pk_options(.trace_path = path, .backends = "none")), status);
    assert_non_null(strstr(pk_error_message(), path));
    assert_int_equal(count_files(), before);
    record(1); /* off */
    assert_int_equal(pk_stop(), PK_EOFF);
    assert_int_equal(pk_flush(), PK_EOFF);
    assert_int_equal(pk_get_counts(&counts), PK_OK); /* of the session before */
    assert_int_equal(counts.begun, 0);
}

static void places_where_no_trace_can_be(void **state)
{
    char long_name[300];
    (void)state;
    stop_and_count();
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    write_file("file", "");
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    expect_no_start("missing/run.json", PK_ENOENT);
    expect_no_start("folder", PK_EACCES);
    expect_no_start("folder/", PK_EACCES);
    expect_no_start("fifo", PK_EACCES);
    expect_no_start("file/run.json", PK_ENOENT);
    expect_no_start(long_name, PK_EIO);
    expect_no_start("/proc/run.json", PK_ENOENT);
}

static void too_little_memory_for_a_trace(void **state)
{
    (void)state;
    assert_int_equal(pk_start(pk_options(.trace_path = "other.json")), PK_EBUSY);
    assert_false(exists("other.json"));
    stop_and_count();
    assert_int_equal(pk_start(pk_options(.trace_path = "t.json", .memory_bytes = 4 << 20,
                                         .ring_records = 1 << 24, .backends = "none")),
                     PK_OK);
    record(100); /* no room for such a ring */
    assert_int_equal(pk_stop(), PK_ENOMEM);
    pk_counts counts = counts_now();
    assert_true(counts.dropped == 200 && counts.recorded == 0 && counts.begun == 200);
    json_decref(load_document("t.json"));
}

#define with_trace(test) cmocka_unit_test_setup_teardown(test, start_trace, stop_trace)

int main(void)
{
    const struct CMUnitTest session[] = {
        with_trace(whole_after_every_flush),
        with_trace(what_the_stop_adds),
        with_trace(the_cost_is_all_of_it),
        with_trace(what_the_loop_had_of_the_processors),
        with_trace(how_its_memory_went),
        with_trace(every_kind_of_event),
        with_trace(times_hang_together),
        with_trace(compressed),
        with_trace(a_long_trace),
        with_trace(a_bound_on_its_size),
        with_trace(places_where_no_trace_can_be),
        with_trace(too_little_memory_for_a_trace),
    };
    return both_clocks(session);
}
