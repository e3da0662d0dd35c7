/* Who empties the rings: a thread, where it runs, or nobody but pk_flush. */
#include "session.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static pk_region region = PK_REGION("work");

/* 0: there is none. */
static pid_t thread_named(const char *wanted)
{
    char path[300], name[32];
    pid_t found = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; !found && (task = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file) && strcspn(name, "\n") == strlen(wanted) &&
            strncmp(name, wanted, strlen(wanted)) == 0)
            found = (pid_t)atoi(task->d_name);
        if (file)
            fclose(file);
    }
    closedir(tasks);
    return found;
}

static pid_t collector(void)
{
    pid_t found = 0;
    for (int i = 0; !found && i < 1000; i++, usleep(1000)) /* it names itself */
        found = thread_named("pk-collector");
    return found;
}

static void start_with(const char *who, const char *where)
{
    assert_int_equal(pk_start(pk_options(.backends = "none", .ring_records = 64, .collector = who,
                                         .collector_cpus = where)),
                     PK_OK);
}

static void record(int times)
{
    for (int i = 0; i < times; i++) {
        pk_region_begin(&region);
        pk_region_end(&region);
    }
}

static void nobody_but_flush(void **state)
{
    (void)state;
    start_with("none", NULL);
    assert_int_equal(thread_named("pk-collector"), 0);
    for (int i = 0; i < 10; i++) {
        record(50);
        assert_int_equal(pk_flush(), PK_OK);
    }
    record(100);
    assert_int_equal(counts_now().dropped, 100 - 63); /* one slot of a ring stays empty */
    assert_int_equal(count_of(&region), 600);         /* the distribution misses none */
    pk_counts counts = stop_and_count();
    assert_int_equal(counts.begun, 600);
}

/* What is left open at exit() is stopped by a thread that is made for it. */
static void exit_without_a_collector(void **state)
{
    static const char path[] = "collector-exit.json";
    int status;
    (void)state;
    unlink(path);
    pid_t child = fork();
    if (child == 0) {
        if (pk_start(pk_options(.backends = "none", .report_path = path, .collector = "none")))
            _exit(1);
        record(5);
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    FILE *report = fopen(path, "r");
    assert_non_null(report);
    fclose(report);
    unlink(path);
}

static unsigned a_processor(void)
{
    cpu_set_t may;
    unsigned cpu = 0;
    assert_int_equal(sched_getaffinity(0, sizeof may, &may), 0);
    while (!CPU_ISSET(cpu, &may))
        cpu++;
    return cpu;
}

static void where_it_is_told_to(void **state)
{
    char list[16];
    cpu_set_t is;
    (void)state;
    snprintf(list, sizeof list, "%u", a_processor());
    start_with("thread", list);
    pid_t thread = collector();
    if (!thread)
        skip();                                    /* an emulator's /proc */
    for (int i = 0; i < 1000; i++, usleep(1000)) { /* right behind its name */
        assert_int_equal(sched_getaffinity(thread, sizeof is, &is), 0);
        if (CPU_COUNT(&is) == 1 && sched_getscheduler(thread) == SCHED_BATCH)
            break;
    }
    assert_true(CPU_COUNT(&is) == 1 && CPU_ISSET(a_processor(), &is));
    assert_int_equal(sched_getscheduler(thread), SCHED_BATCH);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER); /* the program's own stays */
    stop_and_count();
}

/* How often it has gone to sleep so far; 0: an emulator's /proc. */
static unsigned sleeps_of(pid_t thread)
{
    static const char key[] = "voluntary_ctxt_switches:";
    char path[64], line[128];
    unsigned times = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)thread);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, sizeof key - 1) == 0)
            times = (unsigned)strtoul(line + sizeof key - 1, NULL, 10);
    if (file)
        fclose(file);
    return times;
}

static void record_slowly(unsigned ms)
{
    for (unsigned i = 0; i < ms; i++, usleep(1000))
        record(1);
}

/* It was ten times a second as soon as anything was recorded. Rounds for the clock are four in the
 * first second. */
static void little_to_do(void **state)
{
    (void)state;
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    record_slowly(1000);
    pid_t thread = collector();
    unsigned before = thread ? sleeps_of(thread) : 0;
    uint64_t since = pki_monotonic_ns();
    record_slowly(2000);
    unsigned seconds = (unsigned)((pki_monotonic_ns() - since + 500000000) / 1000000000);
    unsigned times = thread ? sleeps_of(thread) - before : 0;
    assert_int_equal(pk_stop(), PK_OK);
    if (!before)
        skip();
    assert_in_range(times, seconds, 4 * seconds + 2);
}

static uint32_t warnings;

static void hear(void *user, pk_log_level level, const char *message)
{
    (void)user;
    warnings += level == PK_LOG_WARNING && strstr(message, "collector_cpus");
}

static void a_processor_that_is_not_there(void **state)
{
    (void)state;
    assert_int_equal(
        pk_start(pk_options(.backends = "none", .collector_cpus = "1023", .log = hear)), PK_OK);
    record(10);
    for (int i = 0; i < 1000 && !__atomic_load_n(&warnings, __ATOMIC_RELAXED); i++)
        usleep(1000);
    assert_int_equal(stop_and_count().recorded, 10);
    assert_int_equal(warnings, 1);
}

static void what_makes_no_sense(void **state)
{
    static const char *const lists[] = {"x",  "1-",     "-1",  "3-1", "1,,2",
                                        "1,", "0-1024", "1 2", "0x1"};
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        assert_int_equal(pk_start(pk_options(.collector_cpus = lists[i])), PK_EINVAL);
    assert_int_equal(pk_start(pk_options(.collector = "never")), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "never"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nobody_but_flush, stop_session),
        cmocka_unit_test_teardown(exit_without_a_collector, stop_session),
        cmocka_unit_test_teardown(where_it_is_told_to, stop_session),
        cmocka_unit_test_teardown(little_to_do, stop_session),
        cmocka_unit_test_teardown(a_processor_that_is_not_there, stop_session),
        cmocka_unit_test_teardown(what_makes_no_sense, stop_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
