/* The bell that the collector sleeps on: who rings first, who rings from where, and how rarely the
 * collector gets up when nothing is recorded. */
#include "session.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"

#define LONG UINT64_C(100000000000) /* ns: whoever sleeps so long has not been woken */

static pki_bell bell;
static uint32_t seen;

static void rung_before_is_rung(void **state)
{
    (void)state;
    pki_bell_ring(&bell);
    pki_bell_ring(&bell); /* twice is once */
    assert_true(pki_bell_sleep(&bell, pki_monotonic_ns() + LONG));
    assert_false(pki_bell_sleep(&bell, pki_monotonic_ns() + 1000));
    assert_false(pki_bell_sleep(&bell, 0)); /* long past */
}

static void *sleep_and_see(void *count)
{
    for (uint32_t i = 0; i < *(uint32_t *)count; i++) {
        if (!pki_bell_sleep(&bell, pki_monotonic_ns() + LONG))
            return "not rung";
        pki_store_release(&seen, i + 1);
    }
    return NULL;
}

static void each_ring_wakes(void **state)
{
    uint32_t count = 2000;
    pthread_t sleeper;
    void *answer;
    (void)state;
    seen = 0;
    assert_int_equal(pthread_create(&sleeper, NULL, sleep_and_see, &count), 0);
    for (uint32_t i = 0; i < count; i++) {
        pki_bell_ring(&bell);
        while (pki_load_acquire(&seen) != i + 1)
            sched_yield();
    }
    pthread_join(sleeper, &answer);
    assert_null(answer);
}

static void ring(int signal)
{
    (void)signal;
    pki_bell_ring(&bell);
}

/* The sleeper itself may be the thread that the signal comes to. */
static void a_handler_may_ring(void **state)
{
    const struct sigaction action = {.sa_handler = ring};
    const struct itimerspec soon = {.it_value = {0, 20000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    timer_t timer;
    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &soon, NULL), 0);
    assert_true(pki_bell_sleep(&bell, pki_monotonic_ns() + LONG));
    timer_delete(timer);
}

static void errno_stays(void **state)
{
    (void)state;
    errno = 4711;
    pki_bell_ring(&bell);
    assert_int_equal(errno, 4711);
    pki_bell_sleep(&bell, 0);
}

/* ---- the collector ---- */

static long switches_of(const char *thread)
{
    char path[300], line[100], name[64] = "";
    long switches = -1;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; switches < 0 && (task = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *file = fopen(path, "r");
        while (file && fgets(line, sizeof line, file)) {
            sscanf(line, "Name: %63s", name);
            if (strcmp(name, thread) == 0)
                sscanf(line, "voluntary_ctxt_switches: %ld", &switches);
        }
        if (file)
            fclose(file);
    }
    closedir(tasks);
    return switches;
}

static void the_collector_sleeps_when_nothing_happens(void **state)
{
    (void)state;
    nanosleep(&(struct timespec){0, 700000000}, NULL); /* the first corrections of the clock */
    long before = switches_of("pk-collector");
    if (before < 0)
        skip(); /* an emulator's /proc */
    nanosleep(&(struct timespec){2, 0}, NULL);
    assert_in_range(switches_of("pk-collector") - before, 1, 30); /* 200 when it came by itself */
}

/* Far more than a ring holds, by an owner that rings: as many as its processor lets through are
 * taken, and the accounting holds. */
static void the_owner_rings(void **state)
{
    static pk_region region = PK_REGION("work");
    (void)state;
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 20000; k++) {
            pk_region_begin(&region);
            pk_region_end(&region);
        }
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
    pk_counts counts = stop_and_count();
    assert_int_equal(counts.begun, 400000);
    assert_true(counts.recorded > 65536); /* one ring's worth, if nobody had come */
}

int main(void)
{
    const struct CMUnitTest bells[] = {
        cmocka_unit_test(rung_before_is_rung),
        cmocka_unit_test(each_ring_wakes),
        cmocka_unit_test(a_handler_may_ring),
        cmocka_unit_test(errno_stays),
    };
    const struct CMUnitTest collector[] = {
        cmocka_unit_test_setup_teardown(the_collector_sleeps_when_nothing_happens, start_session,
                                        stop_session),
        cmocka_unit_test_setup_teardown(the_owner_rings, start_session, stop_session),
    };
    return cmocka_run_group_tests(bells, NULL, NULL) + both_clocks(collector);
}
