/* Sessions and their traces: whole whenever somebody looks, whoever asks for them, and when the
 * disk is full. */
#include "document.h"
#include "lengthy.h"
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <pk/private.h>

#include "measure/overhead.h"
#include "session/session.h"
#include "session/trace/output.h"

/* ---- a session and its trace ---- */

/* Whole whenever somebody looks, and all that has been recorded at the end. */

static pk_region outer = PK_REGION_OF(PK_COMPUTE, "outer"), inner = PK_REGION("inner \"\xFF\"");
static pk_counter session_level = PK_COUNTER("level", "bytes");

static const char *trace_name;

static int start_trace(void **state)
{
    trace_name = "run.json";
    return enter_folder(state) ||
           pk_start(pk_options(.trace_path = trace_name, .backends = "none",
                               .tuning = kit_tuning("clock=%s,flush_ms=3600000", the_clock)));
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

/* -- the document -- */

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
    pk_thread_set_name("trai\"ner");
    record(1);
    pk_counter_set(&session_level, 1.5);
    pk_region_mark(&outer);
    pk_step(32);
    pk_step(32);
    {
        PK_REGION_SCOPE(*pk_region_variant(&outer, "seq", -4));
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
    assert_int_equal(pk_start(pk_options(.trace_path = "run.json.gz", .backends = "none",
                                         .tuning = kit_tuning("clock=%s", the_clock))),
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
        for (int k = 0; k < (i ? 500 : 4000); k++) {
            PK_REGION_SCOPE(lengthy);
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

/* -- trouble -- */

static void a_bound_on_its_size(void **state)
{
    (void)state;
    stop_and_count();
    assert_int_equal(pk_start(pk_options(.trace_path = "small.json", .backends = "none",
                                         .tuning = "trace_max_bytes=65536")),
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
                                         .backends = "none", .tuning = "ring_records=16M")),
                     PK_OK);
    record(100); /* no room for such a ring */
    assert_int_equal(pk_stop(), PK_ENOMEM);
    pk_counts counts = counts_now();
    assert_true(counts.dropped == 200 && counts.recorded == 0 && counts.begun == 200);
    json_decref(load_document("t.json"));
}

#define with_trace(test) cmocka_unit_test_setup_teardown(test, start_trace, stop_trace)

static const struct CMUnitTest session[] = {
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

/* ---- what whoever starts the program asks for ---- */

/* A session that the environment alone asked for, whose failures nobody looks at but stderr;
 * PK_OFF; PK_OVERRIDE. */

static char said[1024];

static pk_status by_mpi(const pk_options *options)
{
    return pk_start_asked_("PK_MPI_START", options);
}

static pk_status stop(const pk_options *options)
{
    (void)options;
    return pk_stop();
}

/* What the call says on stderr lands in `said`. */
static pk_status hear(pk_status (*call)(const pk_options *), const pk_options *options)
{
    int real = dup(STDERR_FILENO), file = open("said", O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDERR_FILENO);
    errno = 42;
    pk_status status = call(options);
    int kept = errno;
    dup2(real, STDERR_FILENO);
    ssize_t n = pread(file, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = 0;
    close(real);
    close(file);
    assert_int_equal(kept, 42);
    return status;
}

static pk_status start_asked(const pk_options *options)
{
    return hear(by_mpi, options);
}

static void why_it_cannot_start(void **state)
{
    (void)state;
    assert_int_equal(start_asked(pk_options(.trace_path = "missing/run.json")), PK_ENOENT);
    assert_ptr_equal(strstr(said, "perfkit: PK_MPI_START=1, but nothing is recorded: "), said);
    assert_non_null(strstr(said, "missing/run.json"));
    assert_non_null(strstr(said, ": No such file or directory (PK_ENOENT)\n"));
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
    setenv("PK_RING_RECORDS", "many", 1);
    assert_int_equal(start_asked(NULL), PK_EINVAL);
    assert_non_null(strstr(said, "PK_RING_RECORDS"));
    unsetenv("PK_RING_RECORDS");
}

static void once_in_a_job(void **state)
{
    (void)state;
    start_asked(pk_options(.trace_path = "missing/run.json", .rank = 1, .world_size = 2));
    assert_string_equal(said, "");
    start_asked(pk_options(.trace_path = "missing/run.json", .rank = 0, .world_size = 2));
    assert_non_null(strstr(said, "nothing is recorded"));
    setenv("PMI_RANK", "3", 1);
    setenv("PMI_SIZE", "4", 1);
    start_asked(pk_options(.trace_path = "missing/run.json"));
    assert_string_equal(said, "");
    setenv("PMI_RANK", "0", 1);
    start_asked(pk_options(.trace_path = "missing/run.json"));
    assert_non_null(strstr(said, "nothing is recorded"));
    unsetenv("PMI_RANK");
    unsetenv("PMI_SIZE");
}

static void what_is_logged_is_not_said_again(void **state)
{
    (void)state;
    setenv("PK_LOG", "stderr", 1);
    start_asked(pk_options(.trace_path = "missing/run.json"));
    unsetenv("PK_LOG");
    assert_non_null(strstr(said, "missing/run.json"));
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
}

static void silent_when_all_is_well(void **state)
{
    (void)state;
    assert_int_equal(start_asked(pk_options(.backends = "none")), PK_OK);
    assert_string_equal(said, "");
    assert_int_equal(start_asked(NULL), PK_EBUSY); /* the program's own session has it */
    assert_string_equal(said, "");
    assert_int_equal(pk_stop(), PK_OK);
}

/* -- a file that the environment asks for -- */

static void a_start_that_fails(void **state)
{
    (void)state;
    setenv("PK_TRACE_PATH", "missing/run.json", 1);
    assert_int_equal(hear(pk_start, NULL), PK_ENOENT);
    assert_ptr_equal(strstr(said, "perfkit: nothing is recorded: "), said);
    assert_non_null(strstr(said, "(PK_ENOENT)\n"));
    setenv("PK_LOG", "none", 1);
    assert_int_equal(hear(pk_start, NULL), PK_ENOENT);
    assert_string_equal(said, "");
    unsetenv("PK_LOG");
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
    assert_int_equal(hear(pk_start, NULL), PK_ENOENT);
    assert_string_equal(said, ""); /* one word of each host */
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
    unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    unsetenv("PK_TRACE_PATH");
    assert_int_equal(hear(pk_start, pk_options(.trace_path = "missing/run.json")), PK_ENOENT);
    assert_string_equal(said, ""); /* the code asked, and has its answer */
}

static void a_stop_that_fails(void **state)
{
    (void)state;
    mkdir("reports", 0700);
    setenv("PK_REPORT_PATH", "reports/run.txt", 1);
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    rmdir("reports");
    pk_step(1);
    assert_int_equal(hear(stop, NULL), PK_ENOENT);
    assert_non_null(strstr(said, "reports/run.txt"));
    unsetenv("PK_REPORT_PATH");
}

/* -- PK_OFF -- */

static void off(void **state)
{
    pk_counts counts = {.size = sizeof counts};
    (void)state;
    setenv("PK_OFF", "1", 1);
    assert_int_equal(pk_start(pk_options(.trace_path = "off.json", .tuning = "flush_ms=1")), PK_OK);
    assert_int_equal(access("off.json", F_OK), -1);
    pk_step(1);
    assert_int_equal(pk_capture("any", 1), PK_OK);
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    assert_int_equal(pk_stop(), PK_OK);
    setenv("PK_OFF", "yes", 1);
    assert_int_equal(pk_start(NULL), PK_EINVAL);
    setenv("PK_OFF", "0", 1);
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    setenv("PK_OFF", "1", 1);
    assert_int_equal(pk_start(NULL), PK_EBUSY); /* it does not end a session that is open */
    assert_int_equal(pk_stop(), PK_OK);
    unsetenv("PK_OFF");
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_stop(), PK_EOFF);
}

static const struct CMUnitTest asked_tests[] = {
    cmocka_unit_test(why_it_cannot_start),
    cmocka_unit_test(once_in_a_job),
    cmocka_unit_test(what_is_logged_is_not_said_again),
    cmocka_unit_test(silent_when_all_is_well),
    cmocka_unit_test(a_start_that_fails),
    cmocka_unit_test(a_stop_that_fails),
    cmocka_unit_test(off),
};

/* ---- a trace whose disk is full ---- */

/* The program goes on, what is missing is counted, and the document stays whole.
 *
 * The limit on file sizes stands in for the disk. It would be the end of the program, by a signal,
 * if anybody wrote beyond it. */

static pk_region region = PK_REGION("region");

static int session_disk_start_trace(void **state)
{
    return enter_folder(state) ||
           pk_start(pk_options(.trace_path = "run.json", .backends = "none",
                               .report_path = "report.txt",
                               .tuning = kit_tuning("clock=%s,flush_ms=3600000", the_clock)));
}

static int session_disk_stop_trace(void **state)
{
    limit_file_size(RLIM_INFINITY);
    pk_stop();
    return leave_folder(state);
}

static rlim_t size_of_trace(void)
{
    struct stat s;
    assert_int_equal(stat("run.json", &s), 0);
    return (rlim_t)s.st_size;
}

static void session_disk_record(int n)
{
    for (int i = 0; i < n; i++) {
        PK_REGION_SCOPE(region);
    }
}

static void expect_events(const char *path, size_t n)
{
    json_t *doc = load_document(path);
    assert_int_equal(count_events(doc, "X", NULL), n);
    json_decref(doc);
}

static void expect_full(pk_status status)
{
    assert_int_equal(status, PK_ENOSPC);
    assert_non_null(strstr(pk_error_message(), "run.json"));
}

static void full_until_the_end(void **state)
{
    (void)state;
    session_disk_record(100);
    assert_int_equal(pk_flush(), PK_OK);
    limit_file_size(size_of_trace() + 1000);
    session_disk_record(500);
    for (int i = 0; i < 3; i++) { /* each answers for itself */
        expect_full(pk_flush());
        expect_events("run.json", 100);
    }
    pk_counts counts = counts_now();
    assert_true(counts.written == 100 && counts.unwritten == 500 && counts.recorded == 600);
    expect_full(pk_stop());
    counts = counts_now();
    assert_true(counts.begun == 600 && counts.recorded == 600 && counts.dropped == 0);
    assert_true(counts.written == 100 && counts.unwritten == 500);
    assert_int_equal(count_of(&region), 600);
    expect_events("run.json", 100);
    json_t *doc = load_document("run.json");
    assert_true(count_in(doc, "written") == 100 && count_in(doc, "unwritten") == 500);
    json_decref(doc);
    assert_true(exists("run.json.arena")); /* which still has the rest: `pk recover` */
}

static void room_again(void **state)
{
    (void)state;
    session_disk_record(100);
    assert_int_equal(pk_flush(), PK_OK);
    limit_file_size(size_of_trace() + 10);
    session_disk_record(50);
    expect_full(pk_flush());
    limit_file_size(RLIM_INFINITY);
    session_disk_record(7);
    assert_int_equal(pk_flush(), PK_OK); /* all that was kept for better times */
    pk_counts counts = counts_now();
    assert_true(counts.written == 157 && counts.unwritten == 0);
    expect_events("run.json", 157);
    session_disk_record(5);
    do /* the collector takes them when it is time, and keeps them for the next write */
        counts = counts_now();
    while (counts.recorded < 162);
    assert_true(counts.written == 157 && counts.unwritten == 0);
    expect_full(pk_stop()); /* it was full once: that is said at the end, too */
    expect_events("run.json", 162);
    json_t *doc = load_document("run.json");
    assert_true(json_is_object(member(doc, "perfkitReport")));
    json_decref(doc);
}

/* More than a full buffer holds is given up and counted; statistics have it all. */
static void beyond_the_buffer(void **state)
{
    (void)state;
    limit_file_size(size_of_trace() + 10);
    for (int i = 0; i < 4; i++) {
        session_disk_record(5000);
        expect_full(pk_flush());
    }
    pk_counts counts = counts_now();
    assert_true(counts.recorded == 20000 && counts.dropped == 0);
    assert_true(counts.written == 0 && counts.unwritten == 20000);
    limit_file_size(RLIM_INFINITY);
    expect_full(pk_stop());
    counts = counts_now();
    assert_true(counts.written > 5000 && counts.unwritten > 5000);
    assert_int_equal(counts.written + counts.unwritten, 20000);
    expect_events("run.json", counts.written);
    assert_int_equal(count_of(&region), 20000);
}

static void no_room_from_the_start(void **state)
{
    (void)state;
    assert_int_equal(pk_stop(), PK_OK);
    unsigned before = count_files();
    limit_file_size(100);
    assert_int_equal(pk_start(pk_options(.trace_path = "new.json", .memory_bytes = 8 << 20)),
                     PK_ENOSPC);
    assert_int_equal(count_files(), before);
    limit_file_size((rlim_t)64 << 20); /* the usual amount of memory is no file of that size */
    assert_int_equal(pk_start(pk_options(.trace_path = "new.json")), PK_OK);
    session_disk_record(10);
    assert_int_equal(pk_stop(), PK_OK);
    limit_file_size(RLIM_INFINITY);
    expect_events("new.json", 10);
}

static void a_report_that_finds_no_room(void **state)
{
    (void)state;
    session_disk_record(10);
    assert_int_equal(pk_flush(), PK_OK);
    limit_file_size(200);
    assert_int_equal(pk_stop(), PK_ENOSPC);
    limit_file_size(RLIM_INFINITY);
    assert_false(exists("report.txt")); /* rather none than a part of one */
    expect_events("run.json", 10);
}

static void a_program_that_goes_elsewhere(void **state)
{
    (void)state;
    session_disk_record(10);
    assert_int_equal(chdir("/"), 0);
    session_disk_record(10);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(chdir(the_folder), 0);
    assert_int_equal(count_files(), 2);
    assert_true(exists("report.txt"));
    expect_events("run.json", 20);
}

/* The folder is taken away under the running program. */
static void a_folder_that_vanishes(void **state)
{
    (void)state;
    session_disk_record(10);
    assert_int_equal(leave_folder(NULL), 0);
    session_disk_record(10);
    assert_int_equal(pk_flush(), PK_EIO); /* the file is open, and has no name any more */
    assert_int_equal(pk_stop(), PK_EIO);
    assert_non_null(strstr(pk_error_message(), "run.json"));
    assert_int_equal(count_of(&region), 20);
    assert_int_equal(enter_folder(NULL), 0);
}

#define session_disk_with_trace(test)                                                              \
    cmocka_unit_test_setup_teardown(test, session_disk_start_trace, session_disk_stop_trace)

static const struct CMUnitTest session_disk_tests[] = {
    session_disk_with_trace(full_until_the_end),
    session_disk_with_trace(room_again),
    session_disk_with_trace(beyond_the_buffer),
    session_disk_with_trace(no_room_from_the_start),
    session_disk_with_trace(a_report_that_finds_no_room),
    session_disk_with_trace(a_program_that_goes_elsewhere),
    session_disk_with_trace(a_folder_that_vanishes),
};

/* ---- a trace that loses its name while it is written, and a disk that stays full ---- */

/* Said by the next flush and by the stop, counted, and soon over.
 *
 * Built with the linker's --wrap: while `full` is set no write finds room, and each is counted. */

static char heard[4000];
static bool full;
static unsigned refused;

ssize_t __real_pwritev64(int fd, const struct iovec *pieces, int count, off_t at);
ssize_t __wrap_pwritev64(int fd, const struct iovec *pieces, int count, off_t at);

ssize_t __wrap_pwritev64(int fd, const struct iovec *pieces, int count, off_t at)
{
    if (!full)
        return __real_pwritev64(fd, pieces, count, at);
    __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
    errno = ENOSPC;
    return -1;
}

static void listen(void *user, pk_log_level level, const char *message)
{
    (void)user, (void)level;
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s\n", message);
}

static void start(const char *trace)
{
    heard[0] = 0;
    assert_int_equal(
        pk_start(pk_options(.trace_path = trace, .report_path = "report.json", .backends = "none",
                            .log = listen, .tuning = "ring_records=262144,flush_ms=3600000")),
        PK_OK);
}

static int stop_anyway(void **state)
{
    full = false;
    pk_stop();
    return leave_folder(state);
}

static void record_region(pk_region *of, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        PK_REGION_SCOPE(*of);
    }
}

static void trace_lost_record(unsigned n)
{
    record_region(&region, n);
}

static void expect_lost(pk_status status, uint64_t events)
{
    assert_int_equal(status, PK_EIO);
    assert_non_null(strstr(pk_error_message(), "deleted or replaced while it was written"));
    pk_counts counts = counts_now();
    assert_int_equal(counts.recorded, events);
    assert_int_equal(counts.written, 0);
    assert_int_equal(counts.unwritten, events);
}

static unsigned times_heard(const char *words)
{
    unsigned n = 0;
    for (const char *at = heard; (at = strstr(at, words)); at++)
        n++;
    return n;
}

/* -- a name that is lost -- */

static void deleted(const char *path)
{
    start(path);
    trace_lost_record(10);
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(unlink(path), 0);
    trace_lost_record(5);
    expect_lost(pk_flush(), 15);
    trace_lost_record(5);
    expect_lost(pk_flush(), 20);
    trace_lost_record(7);
    expect_lost(pk_stop(), 27);
    assert_int_equal(times_heard("the events are lost"), 1);
    assert_int_equal(count_of(&region), 27); /* statistics have them all */
    json_t *report = load_document("report.json"), *counts = member(report, "counts");
    assert_int_equal(json_integer_value(member(counts, "written")), 0);
    assert_int_equal(json_integer_value(member(counts, "unwritten")), 27);
    json_decref(report);
    assert_int_equal(unlink("report.json"), 0);
    assert_int_equal(count_files(), 0); /* no arena of a trace that there is not */
}

static void a_deleted_trace(void **state)
{
    (void)state;
    deleted("run.json");
    deleted("run.json.gz");
}

static void a_replaced_trace(void **state)
{
    (void)state;
    start("run.json");
    trace_lost_record(10);
    write_file("other", "somebody else's");
    assert_int_equal(rename("other", "run.json"), 0);
    trace_lost_record(5);
    expect_lost(pk_flush(), 15);
    expect_lost(pk_stop(), 15);
    char *text = read_file("run.json", NULL);
    assert_string_equal(text, "somebody else's");
    free(text);
}

static void noticed_at_the_stop(void **state)
{
    (void)state;
    start("run.json");
    trace_lost_record(10);
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(unlink("run.json"), 0);
    trace_lost_record(10);
    expect_lost(pk_stop(), 20);
    assert_int_equal(times_heard("the events are lost"), 1);
}

/* Nothing is lost: it is said, and the trace goes on where it is. The program may have gone
 * elsewhere itself. */
static void a_moved_trace(void **state)
{
    (void)state;
    start("run.json");
    trace_lost_record(10);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(pk_flush(), PK_OK);
    assert_string_equal(heard, "");
    assert_int_equal(chdir(the_folder), 0);
    assert_int_equal(rename("run.json", "moved.json"), 0);
    trace_lost_record(5);
    assert_int_equal(pk_flush(), PK_OK);
    trace_lost_record(5);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(times_heard("moved or renamed"), 1);
    pk_counts counts = counts_now();
    assert_true(counts.written == 20 && counts.unwritten == 0);
    json_t *doc = load_document("moved.json");
    assert_int_equal(count_events(doc, "X", NULL), 20);
    assert_true(json_is_object(member(doc, "perfkitReport")));
    json_decref(doc);
}

/* -- a disk that stays full -- */

/* The span holds three thousand such events; what does not fit into it asks the disk once in a
 * round, not for each event. The collector's rounds are 39 ms apart. */
static void a_full_disk(const char *path)
{
    const unsigned events = 10000;
    start(path);
    full = true;
    refused = 0;
    for (int i = 0; i < 3; i++) {
        record_region(&lengthy, events);
        assert_int_equal(pk_flush(), PK_ENOSPC);
    }
    pk_counts counts = counts_now();
    assert_int_equal(counts.recorded + counts.dropped, 3 * events);
    assert_int_equal(counts.written, 0);
    assert_int_equal(counts.unwritten, counts.recorded);
    assert_int_equal(pk_stop(), PK_ENOSPC);
    full = false;
    assert_in_range(refused, 3, events / 10);
    assert_int_equal(count_of(&lengthy), 3 * events);
}

static void a_disk_that_stays_full(void **state)
{
    (void)state;
    a_full_disk("run.json");
    a_full_disk("other.json.gz");
}

static void no_room_for_the_first_thread(void **state)
{
    (void)state;
    assert_int_equal(
        pk_start(pk_options(.memory_bytes = 4 << 20, .backends = "none",
                            .tuning = kit_tuning("ring_records=1M,clock=%s", the_clock))),
        PK_OK);
    trace_lost_record(100);
    assert_int_equal(pk_stop(), PK_ENOMEM);
    assert_non_null(strstr(pk_error_message(), "nothing could be recorded"));
    assert_non_null(strstr(pk_error_message(), "100 regions"));
    assert_int_equal(
        pk_start(pk_options(.memory_bytes = 4 << 20, .backends = "none",
                            .tuning = kit_tuning("ring_records=1M,clock=%s", the_clock))),
        PK_OK);
    assert_int_equal(pk_stop(), PK_OK); /* a program that records nothing misses nothing */
}

#define in_session(test) cmocka_unit_test_setup_teardown(test, enter_folder, stop_anyway)

static const struct CMUnitTest trace_lost_tests[] = {
    in_session(a_deleted_trace),        in_session(a_replaced_trace),
    in_session(noticed_at_the_stop),    in_session(a_moved_trace),
    in_session(a_disk_that_stays_full), in_session(no_room_for_the_first_thread),
};

int main(void)
{
    int failed = both_clocks(session);
    failed += cmocka_run_group_tests(asked_tests, enter_folder, leave_folder);
    failed += cmocka_run_group_tests(session_disk_tests, NULL, NULL);
    failed += both_clocks(trace_lost_tests);
    return failed;
}
