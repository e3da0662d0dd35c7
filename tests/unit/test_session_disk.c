/* A trace whose disk is full: the program goes on, what is missing is counted, and the document
 * stays whole.
 *
 * The limit on file sizes stands in for the disk. It would be the end of the program, by a signal,
 * if anybody wrote beyond it.
 */
#include "document.h"
#include "session.h"

static pk_region region = PK_REGION("region");

static int start_trace(void **state)
{
    return enter_folder(state) ||
           pk_start(pk_options(.trace_path = "run.json", .clock = the_clock, .backends = "none",
                               .flush_ms = 3600000, .report_path = "report.txt"));
}

static int stop_trace(void **state)
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

static void record(int n)
{
    for (int i = 0; i < n; i++)
        PK_SCOPE(region) {
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
    record(100);
    assert_int_equal(pk_flush(), PK_OK);
    limit_file_size(size_of_trace() + 1000);
    record(500);
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
    record(100);
    assert_int_equal(pk_flush(), PK_OK);
    limit_file_size(size_of_trace() + 10);
    record(50);
    expect_full(pk_flush());
    limit_file_size(RLIM_INFINITY);
    record(7);
    assert_int_equal(pk_flush(), PK_OK); /* all that was kept for better times */
    pk_counts counts = counts_now();
    assert_true(counts.written == 157 && counts.unwritten == 0);
    expect_events("run.json", 157);
    record(5);
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
        record(5000);
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
    record(10);
    assert_int_equal(pk_stop(), PK_OK);
    limit_file_size(RLIM_INFINITY);
    expect_events("new.json", 10);
}

static void a_report_that_finds_no_room(void **state)
{
    (void)state;
    record(10);
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
    record(10);
    assert_int_equal(chdir("/"), 0);
    record(10);
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
    record(10);
    assert_int_equal(leave_folder(NULL), 0);
    record(10);
    assert_int_equal(pk_flush(), PK_EIO); /* the file is open, and has no name any more */
    assert_int_equal(pk_stop(), PK_EIO);
    assert_non_null(strstr(pk_error_message(), "run.json"));
    assert_int_equal(count_of(&region), 20);
    assert_int_equal(enter_folder(NULL), 0);
}

#define with_trace(test) cmocka_unit_test_setup_teardown(test, start_trace, stop_trace)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_trace(full_until_the_end),          with_trace(room_again),
        with_trace(beyond_the_buffer),           with_trace(no_room_from_the_start),
        with_trace(a_report_that_finds_no_room), with_trace(a_program_that_goes_elsewhere),
        with_trace(a_folder_that_vanishes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
