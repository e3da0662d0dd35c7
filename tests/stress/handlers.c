/* Signal handlers that record, ten thousand times a second and more, whatever the thread below them
 * is doing: beginning and ending regions, joining, naming, making steps, flushing, starting and
 * stopping sessions, allocating memory. Nothing hangs, nothing crashes, and everything is recorded
 * or counted.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pk/pk.h>

#include "kit.h"
#include "session/session.h"

enum { THREADS = 3, HITS = 6000, NAMES = 4000, SECONDS = 200 };

static pk_region work = PK_REGION("work"), inner = PK_REGION_OF(PK_COMPUTE, "inner"),
                 below = PK_REGION("below"), hit = PK_REGION_OF(PK_IO, "hit"),
                 next_hit = PK_REGION("next hit"), family = PK_REGION("family");
static pk_counter level = PK_COUNTER("level", ""), hits = PK_COUNTER("hits", "");
static pk_comm *comm;

static uint64_t begun_here, begun_there; /* regions, by the program and by its handlers */
static uint32_t names_made, signals;
static uint32_t recording; /* threads */

static void add(uint64_t *to, uint64_t n)
{
    __atomic_fetch_add(to, n, __ATOMIC_RELAXED);
}

static uint64_t value_of(const uint64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_RELAXED);
}

/* ---- what handlers do ---- */

static void name_something(void)
{
    uint32_t n = __atomic_fetch_add(&names_made, 1, __ATOMIC_RELAXED) % NAMES;
    char name[] = "handler 0000";
    for (int i = 0; i < 4; i++, n /= 10)
        name[sizeof name - 2 - (unsigned)i] = (char)('0' + n % 10);
    pk_region_begin(pk_region_named(name));
    pk_region_end(pk_region_named(name));
    pk_region *variant = pk_region_variant(&family, "n", names_made % NAMES);
    pk_region_begin(variant);
    pk_region_end(variant);
    pk_counter_set(pk_counter_named(name, "things"), 1);
    add(&begun_there, 2);
}

static void record_all(int signal)
{
    int before = errno;
    (void)signal;
    __atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
    pk_region_begin(&hit);
    pk_region_add(&hit, 64, 1);
    pk_region_next(&hit, &next_hit);
    pk_counter_set(&hits, 1);
    pk_region_mark(&hit);
    pk_step(1);
    pk_region_end(&next_hit);
    add(&begun_there, 2);
    pk_comm_request request = pk_comm_start(comm, PK_OP_ALL_REDUCE, PK_TYPE_FLOAT32, 8, -1);
    pk_comm_finish(&request, 0);
    name_something();
    if (errno != before)
        abort();
}

static void record_regions(int signal)
{
    (void)signal;
    __atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 5; i++) {
        pk_region_begin(&hit);
        pk_region_end(&hit);
    }
    pk_counter_set(&hits, 1);
    add(&begun_there, 5);
}

static void on_signal(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    must(sigaction(SIGPROF, &action, NULL) == 0);
}

/* ---- who sends the signals ---- */

typedef struct victim {
    pthread_t thread, pest;
    bool there, done;
} victim;

static void *pester(void *argument)
{
    victim *v = argument;
    while (!__atomic_load_n(&v->done, __ATOMIC_ACQUIRE)) {
        pthread_kill(v->thread, SIGPROF);
        kit_sleep_us(20);
    }
    return NULL;
}

static void pester_me(victim *v)
{
    *v = (victim){.thread = pthread_self()};
    must(pthread_create(&v->pest, NULL, pester, v) == 0);
}

static void leave_me_alone(victim *v)
{
    __atomic_store_n(&v->done, true, __ATOMIC_RELEASE);
    must(pthread_join(v->pest, NULL) == 0);
}

/* ---- what they interrupt ---- */

static void work_once(uint64_t i)
{
    pk_region_begin(&work);
    pk_region_begin(&inner);
    if (i % 8 == 0)
        pk_region_add(&inner, 1, 1);
    pk_region_next(&inner, &below);
    pk_region_end(&below);
    if (i % 16 == 0)
        pk_counter_set(&level, (double)i);
    if (i % 64 == 0)
        pk_step(1);
    pk_region_end(&work);
    add(&begun_here, 3);
}

static bool go_on(void)
{
    return __atomic_load_n(&signals, __ATOMIC_RELAXED) < kit_scaled(HITS);
}

/* Whatever has been undone, there is room in a ring that has been emptied. */
static void goes_on(void)
{
    must(pk_flush() == PK_OK);
    uint64_t dropped = pki_own->dropped;
    for (int i = 0; i < 10; i++)
        work_once(1);
    must_equal(pki_own->dropped, dropped);
}

static void *record(void *argument)
{
    victim v;
    pester_me(&v);
    for (uint64_t i = 0; go_on(); i++) {
        work_once(i);
        if (i % 100 == 0) /* let the rings be emptied */
            kit_sleep_us(500);
    }
    leave_me_alone(&v);
    goes_on();
    __atomic_fetch_sub(&recording, 1, __ATOMIC_RELAXED);
    return argument;
}

/* What is counted amid the storm never goes back, and is no more than there was. What a thread is
 * at just now it has not told us yet. */
static void watch(void)
{
    pk_counts before = {.size = sizeof before}, now = before;
    while (__atomic_load_n(&recording, __ATOMIC_RELAXED) > 0) {
        must(pk_get_counts(&now) == PK_OK);
        uint64_t most = value_of(&begun_here) + value_of(&begun_there) + THREADS * (3 + 5);
        must(now.recorded >= before.recorded && now.dropped >= before.dropped);
        must(now.recorded + now.dropped <= most);
        before = now;
        kit_sleep_us(2000);
    }
}

static void record_on_all(void)
{
    pthread_t threads[THREADS];
    recording = THREADS;
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, record, NULL) == 0);
    watch();
    for (int i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL) == 0);
}

/* Segments for rings that are full: handlers go on into them, and back, too. */
static void make_spares(void)
{
    pki_session *s = &pki_the_session;
    pthread_mutex_lock(&pki_drain_lock);
    for (int i = 0; i < 20; i++)
        must(pki_spare_make(&s->registry->spares, s->arena, 512 * sizeof(pki_record), 20));
    pthread_mutex_unlock(&pki_drain_lock);
}

static void start(const char *clock, const char *path)
{
    comm = pk_comm_create("test", "world", 1, 0, 2);
    must(pk_start(pk_options(.trace_path = path, .clock = clock, .ring_records = 512,
                             .backends = "none")) == PK_OK);
    if (path)
        make_spares();
}

static pk_counts stop(void)
{
    pk_counts counts = {.size = sizeof counts};
    must(pk_stop() == PK_OK);
    must(pk_get_counts(&counts) == PK_OK);
    printf("%u signals, %llu regions, %llu in handlers; begun %llu, recorded %llu, dropped %llu\n",
           signals, (unsigned long long)value_of(&begun_here),
           (unsigned long long)value_of(&begun_there), (unsigned long long)counts.begun,
           (unsigned long long)counts.recorded, (unsigned long long)counts.dropped);
    fflush(stdout);
    must_equal(counts.recorded + counts.dropped, counts.begun);
    return counts;
}

/* With a clock of which every call is a slow path, nothing is missing. */
static void all_is_counted(void *argument)
{
    on_signal(record_all);
    start("monotonic", argument);
    record_on_all();
    must_equal(stop().begun, value_of(&begun_here) + value_of(&begun_there));
}

/* A handler that interrupts the fast path may be undone by it, but nothing appears that was not. */
static void nothing_is_made_up(void *argument)
{
    pk_stats stats;
    on_signal(record_regions);
    start(NULL, argument);
    record_on_all();
    pk_counts counts = stop();
    must(counts.begun <= value_of(&begun_here) + value_of(&begun_there));
    must(counts.begun >= value_of(&begun_here) / 2);
    must(pk_region_stats(&work, &stats) == PK_OK);
    must(stats.count <= value_of(&begun_here) / 3);
}

static void *allocate(void *argument)
{
    victim v;
    pester_me(&v); /* whose first signal makes this thread join */
    for (unsigned i = 0; i < kit_scaled(50000); i++) {
        void *volatile some = malloc(100 + i % 5000);
        free(some);
    }
    leave_me_alone(&v);
    return argument;
}

/* First uses, and threads that join, in handlers amid malloc. */
static void first_uses_amid_malloc(void *argument)
{
    on_signal(record_all);
    start("monotonic", argument);
    for (unsigned i = 0; i < kit_scaled(40); i++) {
        pthread_t thread;
        must(pthread_create(&thread, NULL, allocate, NULL) == 0);
        must(pthread_join(thread, NULL) == 0);
    }
    must_equal(stop().begun, value_of(&begun_there));
}

static void control(unsigned i)
{
    static pk_stats stats;
    pk_counts counts = {.size = sizeof counts};
    char name[24];
    snprintf(name, sizeof name, "control %u", i % NAMES);
    pk_flush();
    pk_get_counts(&counts);
    pk_region_stats(&work, &stats);
    pk_thread_name(name);
    work_once(i);
    pk_region_begin(pk_region_named(name));
    pk_region_end(pk_region_named(name));
    pk_comm_destroy(pk_comm_create("test", name, i, 0, 1));
    if (i % 16 == 0) {
        pk_stop();
        start(NULL, NULL);
    }
}

static void control_calls(void *argument)
{
    victim v;
    on_signal(record_all);
    start(NULL, argument);
    pester_me(&v);
    for (unsigned i = 0; i < kit_scaled(800); i++)
        control(i);
    leave_me_alone(&v);
    stop();
}

static void run_apart(void (*body)(void *), const char *path)
{
    assert_int_equal(kit_child(body, (void *)(uintptr_t)path, SECONDS), 0);
}

static void every_call_is_recorded_or_counted(void **state)
{
    (void)state;
    run_apart(all_is_counted, NULL);
    run_apart(all_is_counted, kit_path("handlers.json"));
}

static void nothing_is_recorded_twice(void **state)
{
    (void)state;
    run_apart(nothing_is_made_up, NULL);
    run_apart(nothing_is_made_up, kit_path("twice.json"));
}

static void handlers_need_no_malloc(void **state)
{
    (void)state;
    run_apart(first_uses_amid_malloc, NULL);
}

static void handlers_amid_control_calls(void **state)
{
    (void)state;
    run_apart(control_calls, kit_path("control.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_is_recorded_or_counted),
        cmocka_unit_test(nothing_is_recorded_twice),
        cmocka_unit_test(handlers_need_no_malloc),
        cmocka_unit_test(handlers_amid_control_calls),
    };
    if (kit_sanitized("thread"))
        kit_skip("ThreadSanitizer delivers signals only within the calls that it intercepts");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
