/* Captures of a session: which files are there, what is in them, and what becomes of the program
 * when they cannot be written. */
#include "captures.h"
#include "lengthy.h"

#include <sys/wait.h>

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
    begin(.capture = "every=1", .captures_per_hour = 2);
    for (unsigned i = 0; i < 15; i++)
        steps(1, 0);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(count_files(), 2);
}

/* What does not fit is said, and the file is whole as far as it goes. */
static void larger_than_the_hour_has_bytes(void **state)
{
    (void)state;
    begin(.capture = "steps=0-9", .capture_bytes_per_hour = 1 << 20);
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
    begin(.capture = "steps=0-3", .history_steps = 4, .history_bytes = 1 << 20);
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
    begin(.capture = "every=1", .captures_per_hour = 1000);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    return both_clocks(tests);
}
