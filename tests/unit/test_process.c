/* fork, exit, and what a process has more of after a hundred sessions. */
#include "document.h"
#include "session.h"
#include "valgrind.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

static pid_t parent;

/* Asked by LeakSanitizer. What another thread holds during a fork is never freed in the child. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return getpid() != parent;
}

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner");

static void record(int n)
{
    for (int i = 0; i < n; i++)
        PK_SCOPE(inner) {
        }
}

static int start_trace(void **state)
{
    return enter_folder(state) ||
           pk_start(pk_options(.trace_path = "run.json", .memory_bytes = 8 << 20,
                               .ring_records = 4096, .backends = "none"));
}

static int stop_trace(void **state)
{
    pk_stop();
    return leave_folder(state);
}

static void expect_exit(pid_t child, int code)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

static void expect_events(const char *path, const char *name, size_t n)
{
    json_t *doc = load_document(path);
    assert_int_equal(count_events(doc, "X", name), n);
    json_decref(doc);
}

/* In a child no assertion can be made: the line that is not so is its exit status. */
#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            _exit(__LINE__ % 250 + 1);                                                             \
    } while (0)

/* ---- fork ---- */

static void the_child_is_off(void **state)
{
    (void)state;
    record(10);
    pk_region_begin(&outer);
    pid_t child = fork();
    if (child == 0) {
        pk_counts counts = {.size = sizeof counts};
        record(100);
        pk_region_end(&outer);
        pk_step(1);
        pk_counter_set(pk_counter_named("c", ""), 1);
        must(pk_flush() == PK_EOFF && pk_stop() == PK_EOFF && pk_get_counts(&counts) == PK_EOFF);
        must(pk_region_stats(&inner, &the_stats) == PK_EOFF);
        must(exists("run.json.arena"));
        exit(0); /* with all that exit() does */
    }
    expect_exit(child, 0);
    assert_true(exists("run.json.arena")); /* the parent's, who goes on */
    record(5);
    pk_region_end(&outer);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 16 && counts.unbalanced == 0 && counts.points == 0);
    expect_events("run.json", "inner", 15);
    assert_false(exists("run.json.arena"));
}

static void the_child_starts_anew(void **state)
{
    (void)state;
    record(10);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            pk_counts counts = {.size = sizeof counts};
            must(pk_start(pk_options(.trace_path = "child.json", .backends = "none")) == PK_OK);
            must(pk_region_stats(&inner, &the_stats) == PK_ENOENT);
            record(100);
            must(pk_region_stats(&inner, &the_stats) == PK_OK && the_stats.count == 100);
            must(pk_stop() == PK_OK && pk_get_counts(&counts) == PK_OK && counts.begun == 100);
            must(counts.recorded == 100 && counts.threads == 1);
            exit(0);
        }
        record(10);
        expect_exit(child, 0);
        expect_events("child.json", "inner", 100);
    }
    stop_and_count();
    expect_events("run.json", "inner", 40);
}

static void the_child_of_a_child(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        must(pk_start(pk_options(.trace_path = "1.json", .backends = "none")) == PK_OK);
        record(1);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            must(pk_start(pk_options(.trace_path = "2.json", .backends = "none")) == PK_OK);
            record(2);
            exit(0); /* stops it */
        }
        int status;
        must(waitpid(grandchild, &status, 0) == grandchild && status == 0);
        record(1);
        exit(0);
    }
    expect_exit(child, 0);
    record(3);
    stop_and_count();
    expect_events("run.json", "inner", 3);
    expect_events("1.json", "inner", 2);
    expect_events("2.json", "inner", 2);
}

static void *fork_here(void *child)
{
    pk_region_begin(&outer);
    record(10);
    *(pid_t *)child = fork();
    if (*(pid_t *)child == 0) {
        must(pk_start(pk_options(.trace_path = "child.json", .backends = "none")) == PK_OK);
        record(20);
        must(pk_stop() == PK_OK);
        _exit(0);
    }
    pk_region_end(&outer);
    return NULL;
}

static void fork_in_a_thread(void **state)
{
    pthread_t thread;
    pid_t child;
    (void)state;
    record(1);
    assert_int_equal(pthread_create(&thread, NULL, fork_here, &child), 0);
    pthread_join(thread, NULL);
    expect_exit(child, 0);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 12 && counts.unbalanced == 0 && counts.threads == 2);
    expect_events("run.json", "inner", 11);
    expect_events("child.json", "inner", 20);
}

static void fork_after_the_stop(void **state)
{
    (void)state;
    record(3);
    stop_and_count();
    pid_t child = fork();
    if (child == 0) {
        pk_counts counts = {.size = sizeof counts};
        must(pk_region_stats(&inner, &the_stats) == PK_EOFF && pk_get_counts(&counts) == PK_EOFF);
        must(pk_start(NULL) == PK_OK && pk_stop() == PK_OK);
        _exit(0);
    }
    expect_exit(child, 0);
    assert_int_equal(count_of(&inner), 3); /* the parent's are still there */
}

/* ---- exit ---- */

static void record_late(void)
{
    record(7);
}

/* Handlers run last in, first out: this one comes before the stop. */
static void exit_stops_the_session(void **state)
{
    (void)state;
    stop_and_count();
    pid_t child = fork();
    if (child == 0) {
        must(pk_start(pk_options(.trace_path = "exit.json", .report_path = "exit.txt",
                                 .backends = "none")) == PK_OK);
        must(atexit(record_late) == 0);
        record(3);
        pk_region_begin(&outer); /* open at the end of the program */
        exit(5);
    }
    expect_exit(child, 5);
    expect_events("exit.json", "inner", 10);
    expect_events("exit.json", "outer", 1);
    assert_true(exists("exit.txt") && !exists("exit.json.arena"));
    json_t *doc = load_document("exit.json");
    assert_true(json_is_true(member(member(doc, "metadata"), "complete")));
    assert_int_equal(count_in(doc, "unbalanced"), 1);
    json_decref(doc);
}

static void a_process_that_only_ends(void **state)
{
    (void)state;
    stop_and_count();
    pid_t child = fork();
    if (child == 0) {
        must(pk_start(pk_options(.trace_path = "gone.json", .backends = "none")) == PK_OK);
        record(3);
        must(pk_flush() == PK_OK);
        record(3);
        _exit(0);
    }
    expect_exit(child, 0);
    json_decref(load_document("gone.json"));
    assert_true(exists("gone.json.arena")); /* the rest is in there */
}

/* ---- again and again ---- */

/* By their first part: what is not used yet is a part of its own. */
static unsigned mapped_arenas(void)
{
    unsigned count = 0;
    char line[1000];
    FILE *file = fopen("/proc/self/maps", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        count +=
            strstr(line, " 00000000 ") && (strstr(line, "memfd:perfkit") || strstr(line, ".arena"));
    fclose(file);
    return count;
}

static unsigned open_files(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 5000; fd++) /* ours are above most */
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void a_hundred_sessions(void **state)
{
    unsigned files = 0;
    (void)state;
    stop_and_count();
    for (int i = 0; i < 100; i++) {
        const char *path = i % 3 == 0 ? NULL : i % 3 == 1 ? "a.json" : "a.json.gz";
        assert_int_equal(
            pk_start(pk_options(.trace_path = path, .report_path = "r.json", .backends = "none",
                                .memory_bytes = 8 << 20, .ring_records = 1024)),
            PK_OK);
        record(100);
        pk_step(1);
        assert_int_equal(pk_stop(), PK_OK);
        assert_int_equal(pk_start(pk_options(.trace_path = "no/where.json")),
                         PK_ENOENT); /* nor from failures */
        assert_int_equal(pk_start(pk_options(.clock = "sundial")), PK_EINVAL);
        files = i == 9 ? open_files() : files;
    }
    assert_int_equal(open_files(), files);
    assert_int_equal(mapped_arenas(), 1); /* the last one's, for its statistics */
}

static void the_report_on_stderr(void **state)
{
    char text[20000];
    int ends[2], saved = dup(STDERR_FILENO);
    (void)state;
    stop_and_count();
    assert_int_equal(pipe(ends), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, 1 << 17) > 0);
    assert_int_equal(pk_start(pk_options(.report_path = "-", .backends = "none")), PK_OK);
    record(10);
    dup2(ends[1], STDERR_FILENO);
    pk_status status = pk_stop();
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    assert_int_equal(status, PK_OK);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    assert_true(n > 100);
    text[n] = 0;
    assert_non_null(strstr(text, "inner"));
}

#define with_trace(test) cmocka_unit_test_setup_teardown(test, start_trace, stop_trace)

/* Why children that start sessions cannot be watched here; NULL if they can. */
static const char *why_no_forks(void)
{
    if (strstr(SANITIZERS, "thread"))
        return "ThreadSanitizer does not follow threads that a fork's child starts";
    if (under_valgrind())
        return "what another thread holds during a fork is never freed, which valgrind minds";
    if (getenv("PK_TEST_QEMU"))
        return "qemu-user dies of threads that a fork's child starts";
    return NULL;
}

int main(void)
{
    const struct CMUnitTest forks[] = {
        with_trace(the_child_is_off),         with_trace(the_child_starts_anew),
        with_trace(the_child_of_a_child),     with_trace(fork_in_a_thread),
        with_trace(fork_after_the_stop),      with_trace(exit_stops_the_session),
        with_trace(a_process_that_only_ends),
    };
    const struct CMUnitTest sessions[] = {
        with_trace(a_hundred_sessions),
        with_trace(the_report_on_stderr),
    };
    parent = getpid();
    if (why_no_forks())
        print_message("without forks: %s\n", why_no_forks());
    return cmocka_run_group_tests(sessions, NULL, NULL) +
           (why_no_forks() ? 0 : cmocka_run_group_tests(forks, NULL, NULL));
}
