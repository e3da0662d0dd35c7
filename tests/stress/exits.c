/* The end of a process, wherever its threads are: exit() in a handler amid any call of ours or of
 * malloc, exit() while another thread keeps a lock of ours for ever, sessions that functions of
 * atexit() open. It ends, and what has been recorded is in a trace or in the arena of one.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pk/pk.h>

#include "kit.h"

/* At exit() it would look for leaks, under the lock of the malloc that the handler came amid. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* It complains of any malloc() in a handler; those that call exit() have them all. And where the
 * handler comes amid pthread_join(), nobody joins that thread any more. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "report_signal_unsafe=0:report_thread_leaks=0";
}

enum { SECONDS = 200, FOR_EVER = 1000000000 };

static pk_region work = PK_REGION("work");
static const char *path;
static uint64_t chance = 88172645463325252u;

static void start(void)
{
    must(pk_start(pk_options(.trace_path = path, .backends = "none")) == PK_OK);
}

static void record(void)
{
    pk_region_begin(&work);
    pk_region_end(&work);
}

/* ---- amid which the handler comes ---- */

static void amid_flush(void)
{
    record();
    pk_flush();
}

static void amid_stop(void)
{
    pk_stop();
    start();
}

static void amid_stats(void)
{
    static pk_stats stats;
    pk_counts counts = {.size = sizeof counts};
    record();
    pk_region_stats(&work, &stats);
    pk_get_counts(&counts);
}

static void amid_names(void)
{
    static int64_t n;
    pk_region *region = pk_region_variant(&work, "n", n++);
    pk_region_begin(region);
    pk_region_end(region);
    pk_thread_set_name("somebody");
}

static void amid_malloc(void)
{
    record();
    for (size_t i = 1; i < 100; i++) {
        void *volatile some = malloc(i * 331);
        free(some);
    }
}

static void (*const places[])(void) = {amid_flush, amid_stop, amid_stats, amid_names, amid_malloc};

static void end_now(int signal)
{
    (void)signal;
    exit(0);
}

/* More of ours, but not amid malloc, which control calls need in the same handler: none of it may
 * wait for what the thread below holds. */
static void call_all(int signal)
{
    static pk_stats stats;
    pk_counts counts = {.size = sizeof counts};
    (void)signal;
    pk_flush();
    pk_get_counts(&counts);
    pk_region_stats(&work, &stats);
    pk_stop();
    pk_thread_set_name("handler");
    record();
    exit(0);
}

static void stop_too(void)
{
    pk_flush();
    pk_stop();
}

typedef struct plan {
    void (*place)(void);
    void (*handler)(int);
} plan;

static void *send_one(void *thread)
{
    pthread_detach(pthread_self()); /* nobody is left to join it */
    kit_sleep_us((unsigned)(kit_random(&chance) % 30000));
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    return NULL;
}

static void end_amid(void *argument)
{
    const plan *p = argument;
    pthread_t sender, self = pthread_self();
    struct sigaction action = {.sa_handler = p->handler};
    must(sigaction(SIGUSR1, &action, NULL) == 0);
    start();
    if (p->place != amid_malloc)
        atexit(stop_too); /* comes before ours */
    must(pthread_create(&sender, NULL, send_one, &self) == 0);
    for (;;)
        p->place();
}

static void handlers_end_the_process(void **state)
{
    static void (*const handlers[])(int) = {end_now, call_all};
    (void)state;
    for (size_t place = 0; place < sizeof places / sizeof *places; place++)
        for (size_t h = 0; h < 2; h++)
            for (unsigned i = 0; i < kit_scaled(8); i++) {
                plan p = {places[place], places[place] == amid_malloc ? end_now : handlers[h]};
                kit_random(&chance);
                assert_int_equal(kit_child(end_amid, &p, SECONDS), 0);
                assert_int_equal(kit_count_files("exit.json") > 0, 1);
                kit_clean();
            }
}

/* ---- a lock that is never given back ---- */

static void never_return(void *user, pk_log_level level, const char *message)
{
    (void)level;
    (void)message;
    __atomic_store_n((bool *)user, true, __ATOMIC_RELEASE);
    for (;;)
        kit_sleep_us(FOR_EVER);
}

static void *start_again(void *argument)
{
    pk_start(NULL); /* is told off, under the lock of control calls */
    return argument;
}

static void end_behind_a_lock(void *argument)
{
    bool stuck = false;
    pthread_t other;
    (void)argument;
    must(pk_start(pk_options(.trace_path = path, .backends = "none", .log = never_return,
                             .log_user = &stuck, .log_level = PK_LOG_ERROR)) == PK_OK);
    record();
    must(pthread_create(&other, NULL, start_again, NULL) == 0);
    while (!__atomic_load_n(&stuck, __ATOMIC_ACQUIRE))
        kit_sleep_us(1000);
    exit(0);
}

static void exit_waits_for_no_lock_without_end(void **state)
{
    (void)state;
    assert_int_equal(kit_child(end_behind_a_lock, NULL, SECONDS), 0);
    assert_int_equal(kit_count_files("exit.json.arena"), 1);
    kit_clean();
}

/* ---- sessions of functions that exit() calls ---- */

static void open_late(void)
{
    start();
    record();
}

static void open_only_late(void *argument)
{
    (void)argument;
    atexit(open_late);
    exit(0);
}

static void open_early_and_late(void *argument)
{
    (void)argument;
    atexit(open_late); /* comes after ours */
    start();
    record();
    exit(0);
}

static void sessions_opened_at_exit_are_stopped(void **state)
{
    static void (*const bodies[])(void *) = {open_only_late, open_early_and_late};
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kit_child(bodies[i], NULL, SECONDS), 0);
        assert_int_equal(kit_count_files("exit.json"), 1); /* and no arena */
        kit_clean();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_end_the_process),
        cmocka_unit_test(exit_waits_for_no_lock_without_end),
        cmocka_unit_test(sessions_opened_at_exit_are_stopped),
    };
    static char at[512];
    snprintf(at, sizeof at, "%s", kit_path("exit.json"));
    path = at;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
