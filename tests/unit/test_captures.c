/* Captures of a session, and their files on a full disk and without memory. */
#include "failing_memory.h"
#include "lengthy.h"

#include <errno.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "history/history.h"
#include "out/file.h"
#include "session/captures/capture_file.h"

#include "captures.h"

/* ---- captures of a session ---- */

/* Which files are there, what is in them, and what becomes of the program when they cannot be
 * written. */

static void by_number(void **state)
{
    (void)state;
    begin(.capture = "steps=5-7;steps=2;every=10;cycle=skip:11,wait:1,active:2,repeat:1");
    steps(20, 0);
    assert_int_equal(pk_stop(), PK_OK);
    expect_capture("run-0-5.json", "steps", 5, 7);
    expect_capture("run-0-2.json", "steps", 2, 2);
    expect_capture("run-0-10.json", "every", 10, 10);
    expect_capture("run-0-12.json", "cycle", 12, 13);
    assert_int_equal(count_files(), 4);
}

static void while_the_run_goes_on(void **state)
{
    (void)state;
    begin(.capture = "steps=5-7");
    steps(8, 0);
    for (unsigned i = 0; i < 5000 && !exists("run-0-5.json"); i++) {
        if (i % 250 == 249) /* 20 in all: the history, of 32, has the others for long enough */
            steps(1, 0);
        usleep(1000);
    }
    expect_capture("run-0-5.json", "steps", 5, 7);
    assert_int_equal(pk_stop(), PK_OK);
}

static void beside_a_trace_and_compressed(void **state)
{
    (void)state;
    begin(.capture = "steps=3-4", .trace_path = "t.json.gz", .history_steps = 10);
    steps(9, 0);
    assert_int_equal(pk_stop(), PK_OK);
    expect_capture("t-3.json.gz", "steps", 3, 4);
    json_t *d = load_document("t.json.gz");
    assert_int_equal(count_steps_from(d, 0, 8), 9);
    json_decref(d);
    assert_int_equal(count_files(), 2);
}

static void the_hour_is_full(void **state)
{
    (void)state;
    begin(.capture = "every=1", .tuning = "captures_per_hour=2");
    for (unsigned i = 0; i < 15; i++)
        steps(1, 0);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(count_files(), 2);
}

/* What does not fit is said, and the file is whole as far as it goes. */
static void larger_than_the_hour_has_bytes(void **state)
{
    (void)state;
    begin(.capture = "steps=0-9", .tuning = "capture_bytes_per_hour=1M");
    for (unsigned s = 0; s < 10; s++) {
        for (unsigned i = 0; i < 600; i++) {
            pk_region_begin(&lengthy);
            pk_region_end(&lengthy);
        }
        steps(1, 0);
    }
    assert_int_equal(pk_stop(), PK_OK);
    struct stat file;
    assert_int_equal(stat("run-0-0.json", &file), 0);
    assert_in_range(file.st_size, 900000, 1 << 20);
    json_t *d = load_document("run-0-0.json");
    assert_true(is_true(about(d), "full"));
    json_decref(d);
}

static void cut_by_the_end(void **state)
{
    (void)state;
    begin(.capture = "steps=5-30;cycle=skip:3,active:10");
    steps(8, 0);
    assert_int_equal(pk_stop(), PK_OK);
    expect_capture("run-0-5.json", "steps", 5, 7);
    expect_capture("run-0-3.json", "cycle", 3, 7);
    json_t *d = load_document("run-0-5.json");
    assert_true(is_true(about(d), "cut"));
    json_decref(d);
}

static void the_program_asks(void **state)
{
    (void)state;
    begin(.history_steps = 6);
    steps(20, 0);
    assert_int_equal(pk_capture("loss is \"NaN\"", 2), PK_OK);
    steps(9, 0);
    assert_int_equal(pk_capture(NULL, 1000), PK_OK); /* the run ends before */
    assert_int_equal(pk_stop(), PK_OK);
    /* All 20 were taken in one round: those that the history keeps are in it all the same. */
    json_t *d = load_document("run-0-14.json");
    assert_true(number(about(d), "first") == 14 && number(about(d), "last") == 21);
    assert_int_equal(count_steps_from(d, 14, 21), 8);
    assert_string_equal(json_string_value(member(about(d), "text")), "loss is \"NaN\"");
    assert_string_equal(json_string_value(member(about(d), "reason")), "call");
    assert_int_equal(count_step(d, 22), 0);
    json_decref(d);
    assert_int_equal(count_files(), 2);
}

static void the_program_asks_in_vain(void **state)
{
    (void)state;
    assert_int_equal(pk_capture("none", 0), PK_EOFF);
    begin(.capture = "");
    assert_int_equal(pk_capture("no history", 0), PK_EOFF);
    assert_int_equal(pk_stop(), PK_OK);
    begin(.history_steps = 6);
    assert_int_equal(pk_capture("too many", 10001), PK_EINVAL);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(count_files(), 0);
}

/* Also of the step that runs: where it hangs is what one wants to see. */
static void what_there_is_now(void **state)
{
    (void)state;
    begin(.history_steps = 6);
    steps(3, 0);
    pk_region_begin(&inner);
    pk_region_end(&inner);
    assert_int_equal(pk_capture("now", 0), PK_OK);
    assert_int_equal(pk_stop(), PK_OK);
    json_t *d = load_document("run-0-0.json");
    assert_true(number(about(d), "first") == 0 && number(about(d), "last") == 2);
    assert_int_equal(count_events(d, "X", "inner"), 3 * 3 + 1);
    json_decref(d);
}

static void without_steps(void **state)
{
    (void)state;
    begin(.history_steps = 6);
    pk_region_begin(&work);
    pk_region_end(&work);
    assert_int_equal(pk_capture("now", 0), PK_OK);
    assert_int_equal(pk_stop(), PK_OK);
    json_t *d = load_document("run-0-0.json");
    assert_int_equal(count_events(d, "X", "work"), 1);
    json_decref(d);
}

/* More were asked for than the history holds: what there is, and that there is no more. */
static void beginning_gone(void **state)
{
    (void)state;
    begin(.capture = "steps=0-3", .history_steps = 4, .tuning = "history_bytes=1M");
    for (unsigned s = 0; s < 4; s++) {
        for (unsigned i = 0; i < 10000; i++) {
            pk_region_begin(&work);
            pk_region_end(&work);
        }
        steps(1, 0);
    }
    assert_int_equal(pk_stop(), PK_OK);
    if (is_slow()) { /* to parse thirty thousand events takes valgrind seconds */
        size_t n;
        char *text = read_unpacked("run-0-0.json", &n), *step = strstr(text, "\"ProfilerStep#3\"");
        assert_non_null(strstr(text, "\"beginning_gone\":true"));
        assert_true(step && !strstr(step + 1, "\"ProfilerStep#3\""));
        free(text);
    } else {
        json_t *d = load_document("run-0-0.json");
        assert_true(is_true(about(d), "beginning_gone"));
        assert_int_equal(count_step(d, 3), 1);
        json_decref(d);
    }
}

static unsigned complaints;

static void listen(void *user, pk_log_level level, const char *message)
{
    (void)user;
    complaints += level == PK_LOG_ERROR && strstr(message, "goes on without it") != NULL;
}

static void nowhere_to_go(void **state)
{
    (void)state;
    complaints = 0;
    begin(.capture = "every=1", .capture_path = "none/%s.json", .log = listen);
    for (unsigned i = 0; i < 20; i++)
        steps(1, 0);
    assert_int_equal(pk_stop(), PK_ENOENT);
    assert_non_null(strstr(pk_error_message(), "could not be written"));
    assert_int_equal(complaints, 1);
    assert_int_equal(count_files(), 0);
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    assert_int_equal(pk_stop(), PK_OK); /* the next session knows nothing of it */
}

static void options_that_make_no_sense(void **state)
{
    (void)state;
    assert_int_equal(pk_start(pk_options(.capture = "slow")), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "capture"));
    assert_int_equal(pk_start(pk_options(.capture = "steps=1-9", .history_steps = 8)), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "history_steps"));
    assert_int_equal(pk_start(pk_options(.capture = "every=1", .capture_path = "c.json")),
                     PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "%s"));
    assert_int_equal(pk_start(pk_options(.capture = "every=1", .capture_path = "c-%s-%x.json")),
                     PK_EINVAL);
    assert_int_equal(count_files(), 0);
}

/* Names with a % in them, a folder that is left, and a step that is captured twice. */
static void names(void **state)
{
    (void)state;
    begin(.capture = "steps=2;steps=2-3", .capture_path = "100%%-%s.json", .history_steps = 20);
    assert_int_equal(mkdir("elsewhere", 0700), 0);
    assert_int_equal(chdir("elsewhere"), 0);
    steps(6, 0);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(chdir(".."), 0);
    assert_true(exists("100%-2.json") && exists("100%-2.2.json"));
    assert_int_equal(rmdir("elsewhere"), 0);
}

static void forks(void **state)
{
    (void)state;
    if (forked_child_may_not_record())
        skip();
    begin(.capture = "every=1", .tuning = "captures_per_hour=1000");
    for (unsigned i = 0; i < 10; i++) {
        steps(2, 0);
        pid_t child = fork();
        if (child == 0) {
            if (pk_start(pk_options(.capture = "steps=0", .capture_path = "child-%p-%s.json")))
                _exit(1);
            pk_step(1);
            _exit(pk_stop() != PK_OK);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        char path[64];
        snprintf(path, sizeof path, "child-%d-0.json", (int)child);
        assert_true(exists(path));
    }
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(count_files(), 10 + 19);
}

static const struct CMUnitTest captures_tests[] = {
    in_folder(by_number),
    in_folder(while_the_run_goes_on),
    in_folder(beside_a_trace_and_compressed),
    in_folder(the_hour_is_full),
    in_folder(larger_than_the_hour_has_bytes),
    in_folder(cut_by_the_end),
    in_folder(the_program_asks),
    in_folder(the_program_asks_in_vain),
    in_folder(what_there_is_now),
    in_folder(without_steps),
    in_folder(beginning_gone),
    in_folder(nowhere_to_go),
    in_folder(options_that_make_no_sense),
    in_folder(names),
    in_folder(forks),
};

/* ---- a capture's file ---- */

/* A capture's file with the n-th allocation failing, and on a disk that is full after so many
 * bytes: whole, or not there. */

static off_t capacity = INT64_MAX;

ssize_t __real_pwritev64(int fd, const struct iovec *pieces, int count, off_t at);
ssize_t __wrap_pwritev64(int fd, const struct iovec *pieces, int count, off_t at);

ssize_t __wrap_pwritev64(int fd, const struct iovec *pieces, int count, off_t at)
{
    size_t n = 0;
    for (int i = 0; i < count; i++)
        n += pieces[i].iov_len;
    if (at + (off_t)n <= capacity)
        return __real_pwritev64(fd, pieces, count, at);
    errno = ENOSPC;
    return -1;
}

static pki_arena *arena;
static pki_history *history;
static pki_capture_job job;

static pki_chrome_name name_of(void *user, uint32_t id)
{
    (void)user, (void)id;
    return (pki_chrome_name){.name = "work", .key = "", .length = 4};
}

/* Some thousand regions of one thread, a kernel, and four steps. */
static void fill(void)
{
    const pki_track track = {77, 7, "gpu 0", "stream 7", 1};
    const pki_activity kernel = {.kind = PKI_ACTIVITY_KERNEL,
                                 .name = "gemm",
                                 .name_length = 4,
                                 .start = 10,
                                 .end = 20,
                                 .track = 1};
    static pki_thread thread = {.tid = 5, .name_version = 1, .name = "worker"};
    uint64_t now = 1000;
    for (uint64_t n = 0; n < 4; n++) {
        uint64_t start = now;
        pki_history_round(history);
        pki_history_thread(history, &thread);
        for (unsigned i = 0; i < 1000; i++, now += 10) {
            pki_record r = {now, 5, PKI_WHAT(9, PKI_RECORD_REGION, 1), 0};
            pki_history_record(history, 5, &r, &r);
        }
        pki_record step[2] = {{start, now - start, PKI_WHAT(2, PKI_RECORD_STEP, 0), 0},
                              {n, 32, 0, 0}};
        pki_history_record(history, 5, &step[0], &step[1]);
        pki_history_step_ended(history, &step[0], &step[1], 0);
        pki_history_activity(history, &kernel, &track);
    }
}

static int capture_file_begin(void **state)
{
    pki_owned own;
    if (enter_folder(state) || !pki_mem_file(&own, "capture"))
        return -1;
    arena = pki_arena_create(&own, (size_t)8 << 20);
    history = pki_history_create(arena, 10, PKI_HISTORY_LEAST);
    pki_clock_map_init(&arena->header->clock, 1, (pki_clock_sample){1, 1, 0},
                       (pki_clock_sample){2000001, 2000001, 0});
    fill();
    capacity = INT64_MAX;
    return 0;
}

static int end(void **state)
{
    memory_fails_after(-1);
    pki_history_destroy(history);
    pki_arena_destroy(arena);
    return leave_folder(state);
}

static void make_job(void)
{
    static const char head[] = "{\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"first\",\"pid\":1,"
                               "\"tid\":1,\"args\":{}}";
    memset(&job, 0, sizeof job);
    job.wish = (pki_wish){.first = 1, .last = 2, .reason = PKI_CAPTURE_STEPS};
    assert_true(pki_history_view_now(history, &job.view));
    const pki_history_step *first = pki_history_find(&job.view, 1);
    const pki_history_step *last = pki_history_find(&job.view, 2);
    job.range = (pki_history_range){.from = first->start,
                                    .until = last->start + last->ticks,
                                    .first = 1,
                                    .last = 2,
                                    .first_at = first->at};
    job.around[job.around_count++] = *first;
    job.clock = arena->header->clock;
    pki_chrome_init(&job.chrome, &job.clock, 1, name_of, NULL);
    job.head_bytes = sizeof head - 1;
    memcpy(job.head, head, sizeof head);
    job.most_bytes = (uint64_t)1 << 30;
    strcpy(job.path, "c.json");
}

/* Whole and with its name, or nothing at all. */
static bool write_and_check(void)
{
    make_job();
    bool written = pki_capture_file_write(&job);
    pki_chrome_finish(&job.chrome);
    bool failed = memory_has_failed();
    memory_fails_after(-1);
    if (written)
        assert_true(pki_file_publish(job.part, job.path));
    assert_int_equal(count_files(), written);
    if (!written)
        return failed;
    json_t *d = load_document(job.path);
    assert_int_equal(count_events(d, "X", "ProfilerStep#1"), 1);
    assert_int_equal(count_events(d, "X", "ProfilerStep#3"), 0);
    assert_true(failed || count_events(d, "X", "work") >= 2000);
    json_decref(d);
    assert_int_equal(unlink(job.path), 0);
    return failed;
}

static void without_memory(void **state)
{
    (void)state;
    unsigned n = 0;
    for (bool failed = true; failed; n++) {
        memory_fails_once(n);
        failed = write_and_check();
    }
    assert_true(n > 3);
    for (n = 0; n < 6; n++) {
        memory_fails_after(n);
        write_and_check();
    }
}

static void on_a_disk_that_fills(void **state)
{
    static const off_t rooms[] = {0, 50, 200, 1000, 100000, 200000, 300000};
    unsigned refused = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        capacity = rooms[i];
        make_job();
        bool written = pki_capture_file_write(&job);
        pki_chrome_finish(&job.chrome);
        refused += !written;
        assert_true(written || errno == ENOSPC);
        if (written)
            assert_int_equal(unlink(job.part), 0);
        assert_int_equal(count_files(), 0);
    }
    assert_true(refused >= 4);
    capacity = INT64_MAX;
    memory_fails_after(-1);
    write_and_check();
}

static const struct CMUnitTest capture_file_tests[] = {
    cmocka_unit_test_setup_teardown(without_memory, capture_file_begin, end),
    cmocka_unit_test_setup_teardown(on_a_disk_that_fills, capture_file_begin, end),
};

int main(void)
{
    int failed = both_clocks(captures_tests);
    failed += cmocka_run_group_tests(capture_file_tests, NULL, NULL);
    return failed;
}
