/* What each step read and wrote: counters against what a program did that copies blocks (costs=io),
 * and nothing where nobody asks. */
#include "io_steps.h"
#include "valgrind.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#define STEPS 6

/* ---- cases ---- */

static const uint64_t sizes[STEPS] = {2 * MIB, 0, MIB, 4 * MIB, 0, 2 * MIB};

static void each_step_has_what_it_did(void **state)
{
    (void)state;
    if (!can_be_read())
        skip();
    int fd = data(0);
    have_blocks(fd, 9 * MIB);
    start("io");
    first_step();
    errno = 99;
    for (int i = 0; i < STEPS; i++) {
        put(fd, sizes[i]);
        get(fd, sizes[i] / 2);
        if (i % 2)
            fsync(fd);
        last();
        pk_step(1);
    }
    assert_int_equal(errno, 99);
    readings r = stop();
    const reading *each = &r.all[1];
    assert_int_equal(r.count, 1 + STEPS);
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(each[i].steps, 1);
        assert_int_equal(each[i].written, sizes[i]);
        assert_int_equal(each[i].read, sizes[i] / 2);
        assert_int_equal(each[i].operations, (sizes[i] + sizes[i] / 2) / BLOCK);
        if (each[0].device_written &&
            sizes[i]) /* not in memory; of 0 it is the file system's own */
            expect_close(each[i].device_written, sizes[i]);
    }
    close(fd);
}

/* Past the page cache, as far as the file system lets it. */
static void from_and_for_the_device(void **state)
{
    (void)state;
    int fd = can_be_read() ? data(O_DIRECT) : -1;
    if (fd < 0)
        skip();
    have_blocks(fd, 2 * MIB);
    start("io");
    first_step();
    put(fd, MIB);
    last();
    pk_step(1);
    get(fd, 2 * MIB);
    last();
    pk_step(1);
    readings r = stop();
    const reading *each = &r.all[1];
    assert_int_equal(r.count, 3);
    assert_int_equal(each[0].written, MIB);
    if (each[0].device_written) /* not in memory after all */
        expect_close(each[0].device_written, MIB);
    if (each[1].device_read)
        expect_close(each[1].device_read, 2 * MIB);
    close(fd);
}

static char *report_of(const char *costs, const char *path)
{
    size_t size;
    int fd = data(0);
    assert_int_equal(pk_start(pk_options(.costs = costs, .backends = "none", .report_path = path,
                                         .windows_path = "w.jsonl", .window_steps = 2)),
                     PK_OK);
    for (int i = 0; i < 4; i++) {
        put(fd, i == 2 ? MIB : 0);
        last();
        pk_step_begin();
        put(fd, MIB);
        last();
        pk_step(1);
    }
    assert_int_equal(pk_stop(), PK_OK);
    close(fd);
    return read_file(path, &size);
}

static void the_report_has_steps(void **state)
{
    size_t size;
    (void)state;
    if (!can_be_read())
        skip();
    char *report = report_of("io", "report.json"), *lines = read_file("w.jsonl", &size);
    const char *steps = strstr(report, "\"steps\":{\"steps\":4,\"readings\":4,\"alone\":4,");
    assert_non_null(steps);
    const char *written = strstr(steps, "\"written\":{\"each\":{\"count\":4,");
    assert_non_null(written);
    assert_true(strtod(strstr(written, "\"sum\":") + 6, NULL) == 4 * MIB);
    assert_non_null(strstr(written, "\"most_step\":0,\"most_steps\":1"));
    assert_non_null(strstr(lines, "\"io\":{"));
    assert_null(strstr(lines, "\"alone\"")); /* windows have sums */
    free(report);
    free(lines);
    report = report_of("io", "report.txt");
    assert_non_null(strstr(report, "  a step                 mean "));
    assert_non_null(
        strstr(report, "  written             1.05 MB    1.05 MB    1.05 MB    1.05 MB"));
    assert_null(strstr(report, "share readings"));
    free(report);
    report = report_of("memory", "report.json");
    assert_null(strstr(report, "\"alone\""));
    free(report);
}

/* A reading that finds no room is not taken, and nothing of it is lost: the next one has it. */
static void without_room_in_the_ring(void **state)
{
    static pk_region region = PK_REGION("region");
    pk_counts c = {.size = sizeof c};
    (void)state;
    if (!can_be_read())
        skip();
    int fd = data(0);
    setenv("PK_COLLECTOR", "none", 1);
    assert_int_equal(pk_start(pk_options(.costs = "io", .backends = "none", .ring_records = 64,
                                         .trace_path = "run.json")),
                     PK_OK);
    unsetenv("PK_COLLECTOR");
    for (int i = 0; i < 100; i++)
        PK_SCOPE(region) {
        }
    put(fd, MIB);
    last();
    pk_step(1);
    assert_int_equal(pk_flush(), PK_OK);
    last();
    pk_step(1);
    readings r = stop();
    assert_int_equal(r.count, 1);
    assert_int_equal(r.all[0].steps, 2);
    assert_true(r.all[0].written >= MIB); /* and what pk_flush wrote, on this thread */
    assert_int_equal(pk_get_counts(&c), PK_OK);
    assert_int_equal(c.points_dropped, 1); /* the step */
    close(fd);
}

/* A reading of several says so, and all of them together have everything. */
static void short_steps_share_a_reading(void **state)
{
    (void)state;
    if (!can_be_read())
        skip();
    uint64_t steps = 0;
    int fd = data(0);
    start("io");
    last();
    pk_step(1); /* has its own */
    for (int i = 0; i < 20; i++) {
        put(fd, BLOCK);
        pk_step(1);
    }
    last();
    put(fd, BLOCK);
    pk_step(1);
    readings r = stop();
    assert_true(r.count >= 2);
    for (size_t i = 0; i < r.count; i++) {
        steps += r.all[i].steps;
        assert_int_equal(r.all[i].written, (r.all[i].steps - (i == 0)) * BLOCK);
        assert_int_equal(r.all[i].operations, r.all[i].steps - (i == 0));
    }
    assert_int_equal(steps, 22);
    close(fd);
}

/* What lies between steps is in none. */
static void between_steps(void **state)
{
    (void)state;
    if (!can_be_read())
        skip();
    int fd = data(0);
    start("io");
    for (int i = 0; i < 3; i++) {
        put(fd, 2 * MIB);
        last();
        pk_step_begin();
        put(fd, MIB);
        last();
        pk_step(1);
    }
    readings r = stop();
    assert_int_equal(r.count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(r.all[i].steps, i % 2);
        assert_int_equal(r.all[i].written, i % 2 ? MIB : 2 * MIB);
    }
    close(fd);
}

static void *make_step(void *fd)
{
    put(*(int *)fd, MIB);
    last();
    pk_step(1);
    return NULL;
}

static void another_thread_ends_steps(void **state)
{
    (void)state;
    if (!can_be_read())
        skip();
    int fd = data(0);
    start("io");
    make_step(&fd);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, make_step, &fd), 0);
        pthread_join(thread, NULL);
        put(fd, MIB);
        make_step(&fd);
    }
    readings r = stop(); /* in the order of threads */
    uint64_t written = 0;
    assert_int_equal(r.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(r.all[i].steps, 1);
        assert_true(r.all[i].written == MIB || r.all[i].written == 2 * MIB);
        written += r.all[i].written;
    }
    assert_int_equal(written, 7 * MIB);
    close(fd);
}

/* What has no end is in no step, and the next session does not have it either. */
static void a_session_ends_amid_a_step(void **state)
{
    (void)state;
    if (!can_be_read())
        skip();
    int fd = data(0);
    for (int i = 0; i < 2; i++) {
        start("io");
        put(fd, MIB);
        last();
        pk_step(1);
        put(fd, 4 * MIB);
        last();
        readings r = stop();
        assert_int_equal(r.count, 1);
        assert_int_equal(r.all[0].written, MIB);
        put(fd, MIB);
    }
    close(fd);
}

static pk_region region = PK_REGION("region");

static void call_often(void)
{
    for (int k = 0; k < 2000; k++)
        PK_SCOPE(region) {
        }
}

static void *work_beside(void *until)
{
    while (!pki_load_acquire((int *)until))
        call_often();
    return NULL;
}

/* Its trace, and on the program's threads files of its own and, at begins and ends of calls,
 * descriptors of events. */
static void expect_nothing(const char *costs)
{
    pthread_t beside;
    size_t size;
    int until = 0;
    uint64_t operations = 0;
    assert_int_equal(pk_start(pk_options(.costs = costs, .backends = "none",
                                         .trace_path = "run.json", .report_path = "r.json")),
                     PK_OK);
    assert_int_equal(pthread_create(&beside, NULL, work_beside, &until), 0);
    for (int i = 0; i < 40; i++) {
        call_often();
        if (i == 20) {
            pki_store_release(&until, 1);
            pthread_join(beside, NULL);
        }
        last();
        pk_step(1);
    }
    readings r = stop();
    char *report = read_file("r.json", &size);
    assert_true(r.count > 0);
    for (size_t i = 0; i < r.count; i++) {
        assert_int_equal(r.all[i].written, 0);
        operations += r.all[i].operations;
        if (i > 22)
            assert_int_equal(r.all[i].read, 0);
    }
    assert_true(operations <= 2); /* a read of the other thread's that was not over yet */
    if (!strstr(report, "\"read_calls\":0,"))
        fail_msg("%s %.300s", costs, strstr(report, "\"io\":{"));
    free(report);
}

static void perfkits_own_is_not_in_it(void **state)
{
    (void)state;
    if (!can_be_read())
        skip();
    expect_nothing("io,memory");
    expect_nothing("io,software,hardware");
}

/* Beside sampled calls: exactly its own. */
static void as_many_calls_as_it_made(void **state)
{
    size_t size;
    (void)state;
    if (!can_be_read())
        skip();
    int fd = data(0);
    have_blocks(fd, MIB);
    assert_int_equal(pk_start(pk_options(.costs = "io,software", .backends = "none",
                                         .trace_path = "run.json", .report_path = "r.json")),
                     PK_OK);
    for (int i = 0; i < 40; i++) {
        call_often();
        get(fd, 2 * (uint64_t)BLOCK);
        last();
        pk_step(1);
    }
    readings r = stop();
    char *report = read_file("r.json", &size);
    uint64_t operations = 0, read = 0;
    for (size_t i = 0; i < r.count; i++) {
        operations += r.all[i].operations;
        read += r.all[i].read;
    }
    assert_int_equal(operations, 80);
    assert_int_equal(read, 80 * BLOCK);
    if (!strstr(report, "\"read_calls\":80,"))
        fail_msg("%.300s", strstr(report, "\"io\":{"));
    free(report);
    close(fd);
}

static void in_the_child_of_a_fork(void **state)
{
    int status;
    (void)state;
    if (forked_child_may_not_record() || !can_be_read())
        skip();
    int fd = data(0);
    start("io");
    put(fd, 2 * MIB);
    last();
    pk_step(1); /* a reading of our own, which the kernel does not count as the child's */
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pk_step(1); /* there is no session */
        if (pk_start(pk_options(.costs = "io", .backends = "none", .trace_path = "child.json")))
            _exit(1);
        put(fd, MIB);
        get(fd, MIB);
        last();
        pk_step(1);
        size_t size;
        if (pk_stop())
            _exit(2);
        char *trace = read_file("child.json", &size);
        readings r = readings_of(trace);
        free(trace);
        _exit(r.count == 1 && r.all[0].written == MIB && r.all[0].read == MIB &&
                      r.all[0].operations == 2 * MIB / BLOCK && r.all[0].steps == 1
                  ? 0
                  : 3);
    }
    last();
    pk_step(1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    last();
    pk_step(1);
    readings r = stop();
    assert_int_equal(r.count, 3);
    assert_int_equal(r.all[0].written, 2 * MIB);
    assert_true(r.all[2].written >= MIB); /* to the kernel a child's is its parent's after wait */
    close(fd);
}

/* That of the last step's end, too. */
static void a_capture_has_them(void **state)
{
    size_t size;
    (void)state;
    if (!can_be_read())
        skip();
    int fd = data(0);
    assert_int_equal(pk_start(pk_options(.costs = "io", .backends = "none", .capture = "steps=2-3",
                                         .capture_path = "capture-%s.json")),
                     PK_OK);
    for (int i = 0; i < 6; i++) {
        put(fd, i == 3 ? MIB : BLOCK);
        last();
        pk_step(1);
    }
    assert_int_equal(pk_stop(), PK_OK);
    char *trace = read_file("capture-2.json", &size);
    readings r = readings_of(trace);
    assert_true(r.count >= 2);
    assert_int_equal(r.all[r.count - 2].written, BLOCK);
    assert_int_equal(r.all[r.count - 1].written, MIB);
    free(trace);
    close(fd);
}

/* What it takes is in perfkit's own account; without costs=io nothing is read. */
static void none_without(void **state)
{
    static const char *const costs[] = {NULL, "memory,energy"};
    (void)state;
    if (!can_be_read())
        skip();
    start("io");
    last();
    pk_step(1);
    assert_true(pki_io_steps_spent() > 0);
    assert_int_equal(stop().count, 1);
    for (size_t i = 0; i < 2; i++) {
        start(costs[i]);
        last();
        pk_step(1);
        assert_int_equal(stop().count, 0);
        assert_int_equal(pki_io_steps_spent(), 0);
    }
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(each_step_has_what_it_did),
        IN_FOLDER(from_and_for_the_device),
        IN_FOLDER(the_report_has_steps),
        IN_FOLDER(without_room_in_the_ring),
        IN_FOLDER(short_steps_share_a_reading),
        IN_FOLDER(between_steps),
        IN_FOLDER(another_thread_ends_steps),
        IN_FOLDER(a_session_ends_amid_a_step),
        IN_FOLDER(perfkits_own_is_not_in_it),
        IN_FOLDER(as_many_calls_as_it_made),
        IN_FOLDER(in_the_child_of_a_fork),
        IN_FOLDER(a_capture_has_them),
        IN_FOLDER(none_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
