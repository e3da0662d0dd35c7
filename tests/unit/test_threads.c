/* Threads and sessions that come and go, and the collector that empties the threads' rings. */
#include "session.h"
#include "../kit/rounds.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/registry.h"

/* ---- threads and sessions that come and go ---- */

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner");

static void run(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, body, argument), 0);
    pthread_join(thread, NULL);
}

static void *hundred(void *unused)
{
    for (int i = 0; i < 100; i++) {
        pk_region_begin(&outer);
        pk_region_begin(&inner);
        pk_region_end(&inner);
        pk_region_end(&outer);
    }
    return unused;
}

#define THREADS 8

static void distributions_are_merged(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hundred, NULL), 0);
    hundred(NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(count_of(&outer), (THREADS + 1) * 100);
    pk_counts counts = stop_and_count();
    assert_true(counts.threads == THREADS + 1 && counts.begun == (THREADS + 1) * 200);
    assert_true(counts.dropped == 0 && counts.unbalanced == 0);
    assert_int_equal(count_of(&inner), (THREADS + 1) * 100);
}

static void short_threads_take_turns_in_the_same_memory(void **state)
{
    uint64_t memory = 0;
    (void)state;
    for (int i = 0; i < 300; i++) {
        run(hundred, NULL);
        assert_int_equal(pk_flush(), PK_OK); /* and its block is free */
        if (i == 20)
            memory = counts_now().memory_bytes;
    }
    pk_counts counts = stop_and_count();
    assert_int_equal(counts.memory_bytes, memory);
    assert_true(counts.threads == 300 && counts.begun == 60000 && counts.recorded == 60000);
    assert_int_equal(count_of(&inner), 30000);
}

static void *leave_open(void *unused)
{
    pk_region_begin(&outer);
    pk_region_begin(&inner);
    pk_region_add(&inner, 7, 0);
    spend();
    return unused;
}

static void an_ending_thread_closes_what_it_has_open(void **state)
{
    (void)state;
    run(leave_open, NULL);
    assert_int_equal(pk_flush(), PK_OK);
    pk_counts counts = counts_now();
    assert_true(counts.recorded == 2 && counts.unbalanced == 2);
    uint64_t inner_sum = stats_of(&inner)->sum;
    assert_int_equal(the_stats.bytes, 7);
    uint64_t outer_sum = stats_of(&outer)->sum;
    expect_sum(outer_sum, the_stats.self + inner_sum, 2);
    stop_and_count();
}

/* -- recording while the thread ends -- */

static pthread_key_t threads_key;

static void record_at_exit(void *rounds)
{
    hundred(NULL);
    if ((uintptr_t)rounds > 1)
        pthread_setspecific(threads_key, (void *)((uintptr_t)rounds - 1));
}

static void *end_recording(void *rounds)
{
    pthread_setspecific(threads_key, rounds); /* before this thread has joined, and after */
    hundred(NULL);
    return NULL;
}

static void destructors_may_record(void **state)
{
    (void)state;
    assert_int_equal(pthread_key_create(&threads_key, record_at_exit), 0);
    for (uintptr_t rounds = 1; rounds <= 4; rounds++)
        run(end_recording, (void *)rounds);
    pthread_key_delete(threads_key);
    pk_counts counts = stop_and_count();
    assert_int_equal(counts.begun, 4 * 200 + (1 + 2 + 3 + 4) * 200); /* recorded or not, counted */
    assert_int_equal(counts.unbalanced, 0);
    assert_true(count_of(&outer) >= 4 * 100 + 4 * 100);
}

/* -- no memory -- */

static void *record_all_kinds(void *unused)
{
    hundred(NULL);
    for (int i = 0; i < 10; i++) {
        pk_counter_set(pk_counter_named("c", ""), i);
        pk_region_mark(&outer);
        pk_step(1);
        pk_thread_set_name("refused");
        pk_region_next(&inner, &outer);
        pk_region_add(&outer, 1, 1);
        pk_region_end(&outer);
    }
    return unused;
}

/* The smallest bound has room for one thread with a large ring. */
static void a_thread_that_finds_no_memory(void **state)
{
    (void)state;
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(
        pk_start(pk_options(.memory_bytes = (uint64_t)4 << 20, .backends = "none",
                            .tuning = kit_tuning("clock=%s,ring_records=65536", the_clock))),
        PK_OK);
    hundred(NULL);
    for (int i = 0; i < 20; i++)
        run(record_all_kinds, NULL);
    pk_counts counts = stop_and_count();
    assert_true(counts.threads == 1 && counts.recorded == 200);
    assert_int_equal(counts.dropped, 20 * (200 + 10));
    assert_true(counts.points == 0 && counts.points_dropped == 20 * 30 && counts.stray_ends == 0);
    assert_true(counts.memory_bytes <= (uint64_t)4 << 20);
    assert_int_equal(count_of(&outer), 100);
}

/* -- sessions -- */

static void before_and_after(void **state)
{
    (void)state;
    assert_int_equal(pk_stop(), PK_OK);
    hundred(NULL);
    pk_counter_set(pk_counter_named("c", ""), 1);
    pk_step(1);
    pk_region_mark(&outer);
    pk_thread_set_name("nobody listens");
    pk_counts counts = counts_now();
    assert_true(counts.begun == 0 && counts.points == 0 && counts.threads == 0 &&
                counts.stray_ends == 0);
    assert_int_equal(pk_region_stats(&outer, &the_stats), PK_ENOENT);
    assert_int_equal(pk_step_stats(&the_stats), PK_ENOENT);
    assert_int_equal(pk_stop(), PK_EOFF);
    assert_int_equal(pk_flush(), PK_EOFF);
}

static void each_session_begins_from_zero(void **state)
{
    (void)state;
    for (int round = 1; round <= 5; round++) {
        for (int i = 0; i < round; i++)
            hundred(NULL);
        assert_int_equal(count_of(&outer), round * 100);
        pk_counts counts = stop_and_count();
        assert_true(counts.begun == (uint64_t)round * 200 && counts.threads == 1);
        assert_int_equal(count_of(&outer), round * 100); /* readable until the next start */
        assert_int_equal(start_session(NULL), PK_OK);
        assert_int_equal(pk_region_stats(&outer, &the_stats), PK_ENOENT);
        assert_true(the_stats.count == 0 && the_stats.sum == 0 && the_stats.max == 0);
        assert_int_equal(counts_now().begun, 0);
    }
}

static void regions_across_sessions(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    pk_region_begin(&inner);
    assert_int_equal(stop_and_count().unbalanced, 2);
    pk_region_end(&inner); /* off */
    assert_int_equal(start_session(NULL), PK_OK);
    pk_region_end(&outer); /* the last session's */
    pk_region_begin(&inner);
    pk_region_end(&inner);
    pk_region_end(&outer); /* nobody's: this session knows of none */
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 1 && counts.stray_ends == 1 && counts.unbalanced == 0);
    pk_region_begin(&outer); /* off */
    assert_int_equal(start_session(NULL), PK_OK);
    hundred(NULL);
    pk_region_end(&outer);
    counts = stop_and_count();
    assert_true(counts.begun == 200 && counts.stray_ends == 1);
}

static int rounds_left;
static pthread_barrier_t barrier;

/* Lives through sessions, and finds itself in each of them. */
static void *long_lived(void *unused)
{
    for (int i = 0; i < rounds_left; i++) {
        pthread_barrier_wait(&barrier);
        hundred(NULL);
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

static void threads_outlive_sessions(void **state)
{
    pthread_t threads[3];
    (void)state;
    rounds_left = 4;
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, long_lived, NULL), 0);
    for (int i = 0; i < rounds_left; i++) {
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        pk_counts counts = stop_and_count();
        assert_true(counts.begun == 600 && counts.threads == 3 && counts.dropped == 0);
        assert_int_equal(count_of(&outer), 300);
        assert_int_equal(start_session(NULL), PK_OK);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
}

/* -- names -- */

static const char *name_of_block(uint32_t i)
{
    return pki_registry_block(pki_registry_now(), i)->name;
}

static void *name_itself(void *name)
{
    pk_thread_set_name(name);
    return NULL;
}

static void *system_name(void *unused)
{
    pthread_setname_np(pthread_self(), "sys-name");
    pk_region_begin(&inner);
    pk_region_end(&inner);
    return unused;
}

static void names_of_threads(void **state)
{
    char long_name[100];
    (void)state;
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    pk_region_begin(&outer);
    assert_int_not_equal(strlen(name_of_block(0)), 0); /* the program's, for the main thread */
    pk_thread_set_name("trainer");
    assert_string_equal(name_of_block(0), "trainer");
    pk_thread_set_name(NULL);
    assert_string_equal(name_of_block(0), "trainer");
    pk_thread_set_name(long_name);
    assert_int_equal(strlen(name_of_block(0)), 63);
    run(name_itself, (void *)(uintptr_t) "a name is a reason to join");
    assert_string_equal(name_of_block(1), "a name is a reason to join");
    run(system_name, NULL);
    assert_string_equal(name_of_block(pki_registry_blocks(pki_registry_now()) - 1), "sys-name");
    pk_region_end(&outer);
    stop_and_count();
}

static void *rename_later(void *unused)
{
    hundred(NULL);
    pthread_setname_np(pthread_self(), "late-name");
    return unused;
}

static void a_name_given_after_the_first_region(void **state)
{
    (void)state;
    run(rename_later, NULL);
    assert_string_equal(name_of_block(0), "late-name");
    stop_and_count();
}

static const char *names_given[2];

/* Before the session, and for the next one, too. */
static void *name_before_the_session(void *unused)
{
    pk_thread_set_name("early bird");
    for (int i = 0; i < 2; i++) {
        start_session(NULL);
        pk_region_begin(&inner);
        names_given[i] = strdup(name_of_block(0));
        pk_region_end(&inner);
        stop_and_count();
    }
    return unused;
}

static void a_name_given_before_the_session(void **state)
{
    (void)state;
    stop_and_count();
    run(name_before_the_session, NULL);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(names_given[i], "early bird");
        free((char *)names_given[i]);
    }
}

static void errno_is_the_programs(void **state)
{
    (void)state;
    errno = 4711;
    hundred(NULL);
    leave_open(NULL);
    pk_step(1);
    pk_counter_set(pk_counter_named("c", ""), 1);
    pk_region_stats(&outer, &the_stats);
    pk_flush();
    counts_now();
    pk_stop();
    pk_start(NULL);
    assert_int_equal(errno, 4711);
}

static const struct CMUnitTest threads[] = {
    with_session(distributions_are_merged),
    with_session(short_threads_take_turns_in_the_same_memory),
    with_session(an_ending_thread_closes_what_it_has_open),
    with_session(destructors_may_record),
    with_session(a_thread_that_finds_no_memory),
    with_session(before_and_after),
    with_session(each_session_begins_from_zero),
    with_session(regions_across_sessions),
    with_session(threads_outlive_sessions),
    with_session(names_of_threads),
    with_session(a_name_given_after_the_first_region),
    with_session(a_name_given_before_the_session),
    with_session(errno_is_the_programs),
};

/* ---- who empties the rings ---- */

/* A thread, where it runs, or nobody but pk_flush. */

static pk_region collector_region = PK_REGION("work");

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

static void start_on(const char *where)
{
    assert_int_equal(
        pk_start(pk_options(.backends = "none",
                            .tuning = kit_tuning("ring_records=64,collector_cpus=%s", where))),
        PK_OK);
}

static void record(int times)
{
    for (int i = 0; i < times; i++) {
        pk_region_begin(&collector_region);
        pk_region_end(&collector_region);
    }
}

/* Nobody comes in between. */
static void nobody_but_flush(void **state)
{
    (void)state;
    start_on("");
    kit_end_collector();
    assert_int_equal(thread_named("pk-collector"), 0);
    for (int i = 0; i < 10; i++) {
        record(50);
        assert_int_equal(pk_flush(), PK_OK);
    }
    record(100);
    assert_int_equal(counts_now().dropped, 100 - 63);   /* one slot of a ring stays empty */
    assert_int_equal(count_of(&collector_region), 600); /* the distribution misses none */
    pk_counts counts = stop_and_count();
    assert_int_equal(counts.begun, 600);
}

/* What is left open at exit() is stopped. */
static void exit_with_a_session(void **state)
{
    static const char path[] = "collector-exit.json";
    int status;
    (void)state;
    unlink(path);
    pid_t child = fork();
    if (child == 0) {
        if (pk_start(pk_options(.backends = "none", .report_path = path)))
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
    start_on(list);
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
    __atomic_fetch_add(&warnings, level == PK_LOG_WARNING && strstr(message, "collector_cpus"),
                       __ATOMIC_RELAXED);
}

static void a_processor_that_is_not_there(void **state)
{
    (void)state;
    assert_int_equal(
        pk_start(pk_options(.backends = "none", .log = hear, .tuning = "collector_cpus=1023")),
        PK_OK);
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
        assert_int_equal(
            pk_start(pk_options(.tuning = kit_tuning("collector_cpus='%s'", lists[i]))), PK_EINVAL);
}

static const struct CMUnitTest collector_tests[] = {
    cmocka_unit_test_teardown(nobody_but_flush, stop_session),
    cmocka_unit_test_teardown(exit_with_a_session, stop_session),
    cmocka_unit_test_teardown(where_it_is_told_to, stop_session),
    cmocka_unit_test_teardown(little_to_do, stop_session),
    cmocka_unit_test_teardown(a_processor_that_is_not_there, stop_session),
    cmocka_unit_test_teardown(what_makes_no_sense, stop_session),
};

int main(void)
{
    int failed = both_clocks(threads);
    failed += cmocka_run_group_tests(collector_tests, NULL, NULL);
    return failed;
}
