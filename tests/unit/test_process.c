/* fork, exit, what a process has more of after a hundred sessions, and what backends hand over
 * meanwhile. */
#include "document.h"
#include "session.h"
#include "valgrind.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include "core/names.h"
#include "session/activity.h"
#include "session/session.h"

/* ---- fork, exit, and what a process has more of after a hundred sessions ---- */

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
    for (int i = 0; i < n; i++) {
        PK_REGION_SCOPE(inner);
    }
}

static int start_trace(void **state)
{
    return enter_folder(state) ||
           pk_start(pk_options(.trace_path = "run.json", .memory_bytes = 8 << 20,
                               .backends = "none", .tuning = "ring_records=4096"));
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

/* -- fork -- */

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

/* -- exit -- */

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

/* -- again and again -- */

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
                                .memory_bytes = 8 << 20, .tuning = "ring_records=1024")),
            PK_OK);
        record(100);
        pk_step(1);
        assert_int_equal(pk_stop(), PK_OK);
        assert_int_equal(pk_start(pk_options(.trace_path = "no/where.json")),
                         PK_ENOENT); /* nor from failures */
        assert_int_equal(pk_start(pk_options(.tuning = "clock=sundial")), PK_EINVAL);
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

static const struct CMUnitTest forks[] = {
    with_trace(the_child_is_off),         with_trace(the_child_starts_anew),
    with_trace(the_child_of_a_child),     with_trace(fork_in_a_thread),
    with_trace(fork_after_the_stop),      with_trace(exit_stops_the_session),
    with_trace(a_process_that_only_ends),
};

static const struct CMUnitTest sessions[] = {
    with_trace(a_hundred_sessions),
    with_trace(the_report_on_stderr),
};

static int run_process(void)
{
    parent = getpid();
    if (why_no_forks())
        print_message("without forks: %s\n", why_no_forks());
    return cmocka_run_group_tests(sessions, NULL, NULL) +
           (why_no_forks() ? 0 : cmocka_run_group_tests(forks, NULL, NULL));
}

/* ---- what backends hand over, in a session ---- */

/* Into its report and its statistics; from one session to the next, and not into a child. */

static pk_region work = PK_REGION_OF(PK_COMPUTE, "work");
static pk_counter memory = PK_COUNTER("gpu0.memory", "bytes");

static int start_report(void **state)
{
    return enter_folder(state) ||
           pk_start(pk_options(.report_path = "run.json", .backends = "none"));
}

static int stop_report(void **state)
{
    pk_stop();
    return leave_folder(state);
}

static uint64_t now(void)
{
    return pki_activity_ns_of_ticks(pki_activity_ticks());
}

/* As within a backend's collect. */
static void hand_over(pki_activity_kind kind, uint64_t start, uint64_t end)
{
    pki_activity a = {.kind = kind,
                      .name = "thing",
                      .name_length = 5,
                      .start = start,
                      .end = end,
                      .region = pki_region_id(&work)};
    pthread_mutex_lock(&pki_drain_lock);
    pki_activity_add(&a);
    pthread_mutex_unlock(&pki_drain_lock);
}

static void one_step(pki_activity_kind kind)
{
    uint64_t start = now();
    spend();
    uint64_t end = now();
    hand_over(kind, start, end);
    pk_step(1);
}

static json_t *report(void)
{
    assert_int_equal(pk_stop(), PK_OK);
    return load_document("run.json");
}

static uint64_t number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(member(object, key));
}

static const json_t *figure(const json_t *report, const char *name)
{
    const json_t *gpu = json_array_get(member(report, "gpus"), 0);
    return member(member(gpu, "per_step"), name);
}

static void into_the_report(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        one_step(PKI_ACTIVITY_KERNEL);
    json_t *r = report();
    assert_int_equal(json_array_size(member(r, "gpus")), 1);
    assert_int_equal(number(figure(r, "kernels"), "count"), 9); /* the first step is warm-up */
    assert_int_equal(number(figure(r, "kernels"), "min"), 1);
    assert_int_equal(number(member(r, "activities"), "count"), 10);
    const json_t *kernel = json_array_get(member(r, "kernels"), 0);
    assert_string_equal(json_string_value(member(kernel, "name")), "thing");
    assert_string_equal(json_string_value(member(kernel, "region")), "work");
    json_decref(r);
}

static void spans_have_statistics_of_their_own(void **state)
{
    (void)state;
    hand_over(PKI_ACTIVITY_SPAN, 1000, 4000);
    assert_int_equal(pk_region_stats(&work, &the_stats), PK_ENOENT);
    json_t *r = report();
    const json_t *region = json_array_get(member(r, "regions"), 0);
    assert_int_equal(number(member(region, "gpu"), "sum"), 3000);
    assert_int_equal(number(member(region, "time"), "count"), 0);
    json_decref(r);
}

/* A source that has begun and tells late: its steps wait for it. */
static void steps_wait_for_their_sources(void **state)
{
    uint64_t starts[10];
    (void)state;
    pthread_mutex_lock(&pki_drain_lock);
    pki_activity_begins(PKI_SOURCE_CUDA, 0);
    pki_activity_begins(PKI_SOURCE_CUPTI, 0);
    pki_activity_measures(0, true);
    pthread_mutex_unlock(&pki_drain_lock);
    for (int i = 0; i < 10; i++) {
        starts[i] = now();
        spend();
        pk_step(1);
        pk_flush();
        pthread_mutex_lock(&pki_drain_lock);
        pki_activity_finalised(PKI_SOURCE_CUDA, now()); /* the other one has not */
        pthread_mutex_unlock(&pki_drain_lock);
    }
    for (int i = 0; i < 10; i++)
        hand_over(PKI_ACTIVITY_KERNEL, starts[i], starts[i] + 100);
    json_t *r = report();
    assert_int_equal(number(member(r, "activities"), "late"), 0);
    assert_int_equal(number(figure(r, "kernels"), "sum"), 9);
    json_decref(r);
}

static void late_ones_are_counted(void **state)
{
    (void)state;
    hand_over(PKI_ACTIVITY_KERNEL, 1, 2);
    pthread_mutex_lock(&pki_drain_lock);
    pki_activity_begins(PKI_SOURCE_CUDA, 0);
    pki_activity_begins(PKI_SOURCE_CUPTI, 0);
    pthread_mutex_unlock(&pki_drain_lock);
    spend();
    uint64_t before = now();
    pk_step(1);
    assert_int_equal(pk_flush(), PK_OK);
    pthread_mutex_lock(&pki_drain_lock);
    pki_activity_ends(PKI_SOURCE_CUPTI); /* nobody waits for it any more */
    pki_activity_finalised(PKI_SOURCE_CUDA, now());
    pthread_mutex_unlock(&pki_drain_lock);
    hand_over(PKI_ACTIVITY_KERNEL, before - 1, before);
    json_t *r = report();
    assert_int_equal(number(member(r, "activities"), "late"), 1);
    json_decref(r);
}

static void memory_in_use(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&pki_drain_lock);
        pki_activity_counter(&memory, 1000 + i);
        pthread_mutex_unlock(&pki_drain_lock);
        one_step(PKI_ACTIVITY_KERNEL);
    }
    json_t *r = report();
    assert_int_equal(number(figure(r, "memory"), "count"), 9);
    assert_int_equal(number(figure(r, "memory"), "max"), 1009);
    json_decref(r);
}

static void nothing_from_the_session_before(void **state)
{
    (void)state;
    one_step(PKI_ACTIVITY_KERNEL);
    pthread_mutex_lock(&pki_drain_lock);
    pki_activity_begins(PKI_SOURCE_CUDA, 0); /* and never says more */
    pthread_mutex_unlock(&pki_drain_lock);
    json_decref(report());
    for (int round = 0; round < 3; round++) {
        assert_int_equal(pk_start(pk_options(.report_path = "run.json", .backends = "none")),
                         PK_OK);
        for (int i = 0; i < 3; i++)
            one_step(PKI_ACTIVITY_MEMSET);
        json_t *r = report();
        assert_int_equal(number(member(r, "activities"), "count"), 3);
        assert_int_equal(json_array_size(member(r, "kernels")), 0);
        assert_int_equal(number(json_array_get(member(r, "gpus"), 0), "memsets"), 3);
        json_decref(r);
    }
}

/* In the child nothing is on; a session of its own starts with nothing. */
static void child(void)
{
    if (pki_activity_counted().added != 0)
        _exit(2);
    if (pk_start(pk_options(.report_path = "child.json", .backends = "none")) != PK_OK)
        _exit(3);
    one_step(PKI_ACTIVITY_KERNEL);
    _exit(pk_stop() == PK_OK ? 0 : 4);
}

static void not_into_a_child(void **state)
{
    int status;
    (void)state;
    if (strstr(SANITIZERS, "thread"))
        skip();
    if (getenv("PK_TEST_QEMU"))
        skip(); /* qemu-user dies of threads that a fork's child starts */
    for (int i = 0; i < 5; i++)
        one_step(PKI_ACTIVITY_KERNEL);
    pid_t pid = fork();
    if (pid == 0)
        child();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    json_t *r = load_document("child.json");
    assert_int_equal(number(member(r, "activities"), "count"), 1);
    json_decref(r);
    r = report();
    assert_int_equal(number(member(r, "activities"), "count"), 5);
    json_decref(r);
}

#define with_report(test) cmocka_unit_test_setup_teardown(test, start_report, stop_report)

static const struct CMUnitTest activity_tests[] = {
    with_report(into_the_report),
    with_report(spans_have_statistics_of_their_own),
    with_report(steps_wait_for_their_sources),
    with_report(late_ones_are_counted),
    with_report(memory_in_use),
    with_report(nothing_from_the_session_before),
    with_report(not_into_a_child),
};

int main(void)
{
    int failed = run_process();
    failed += cmocka_run_group_tests(activity_tests, NULL, NULL);
    return failed;
}
