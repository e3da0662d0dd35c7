/* A trace that loses its name while it is written, and a disk that stays full: said by the next
 * flush and by the stop, counted, and soon over.
 *
 * Built with the linker's --wrap: while `full` is set no write finds room, and each is counted.
 */
#include "document.h"
#include "lengthy.h"
#include "session.h"

#include <errno.h>
#include <sys/uio.h>

static pk_region region = PK_REGION("region");
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
    assert_int_equal(pk_start(pk_options(.trace_path = trace, .report_path = "report.json",
                                         .ring_records = 1 << 18, .backends = "none",
                                         .flush_ms = 3600000, .log = listen)),
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
    for (unsigned i = 0; i < n; i++)
        PK_SCOPE(*of) {
        }
}

static void record(unsigned n)
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

/* ---- a name that is lost ---- */

static void deleted(const char *path)
{
    start(path);
    record(10);
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(unlink(path), 0);
    record(5);
    expect_lost(pk_flush(), 15);
    record(5);
    expect_lost(pk_flush(), 20);
    record(7);
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
    record(10);
    write_file("other", "somebody else's");
    assert_int_equal(rename("other", "run.json"), 0);
    record(5);
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
    record(10);
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(unlink("run.json"), 0);
    record(10);
    expect_lost(pk_stop(), 20);
    assert_int_equal(times_heard("the events are lost"), 1);
}

/* Nothing is lost: it is said, and the trace goes on where it is. The program may have gone
 * elsewhere itself. */
static void a_moved_trace(void **state)
{
    (void)state;
    start("run.json");
    record(10);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(pk_flush(), PK_OK);
    assert_string_equal(heard, "");
    assert_int_equal(chdir(the_folder), 0);
    assert_int_equal(rename("run.json", "moved.json"), 0);
    record(5);
    assert_int_equal(pk_flush(), PK_OK);
    record(5);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(times_heard("moved or renamed"), 1);
    pk_counts counts = counts_now();
    assert_true(counts.written == 20 && counts.unwritten == 0);
    json_t *doc = load_document("moved.json");
    assert_int_equal(count_events(doc, "X", NULL), 20);
    assert_true(json_is_object(member(doc, "perfkitReport")));
    json_decref(doc);
}

/* ---- a disk that stays full ---- */

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
    assert_int_equal(pk_start(pk_options(.memory_bytes = 4 << 20, .ring_records = 1 << 20,
                                         .backends = "none", .clock = the_clock)),
                     PK_OK);
    record(100);
    assert_int_equal(pk_stop(), PK_ENOMEM);
    assert_non_null(strstr(pk_error_message(), "nothing could be recorded"));
    assert_non_null(strstr(pk_error_message(), "100 regions"));
    assert_int_equal(pk_start(pk_options(.memory_bytes = 4 << 20, .ring_records = 1 << 20,
                                         .backends = "none", .clock = the_clock)),
                     PK_OK);
    assert_int_equal(pk_stop(), PK_OK); /* a program that records nothing misses nothing */
}

#define in_session(test) cmocka_unit_test_setup_teardown(test, enter_folder, stop_anyway)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_session(a_deleted_trace),        in_session(a_replaced_trace),
        in_session(noticed_at_the_stop),    in_session(a_moved_trace),
        in_session(a_disk_that_stays_full), in_session(no_room_for_the_first_thread),
    };
    return both_clocks(tests);
}
