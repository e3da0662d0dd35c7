/* Ranges of the process, threads, sessions, forks. */
#include "user.h"

#include <pthread.h>

static void *end_it(void *id)
{
    nvtxRangeEnd(*(nvtxRangeId_t *)id);
    return NULL;
}

static void started_and_ended(void **state)
{
    pthread_t thread;
    (void)state;
    nvtxEventAttributes_t a = says("long");
    nvtxRangeId_t one = nvtxRangeStartA("one"), two = nvtxRangeStartA("two");
    nvtxRangeId_t three = nvtxDomainRangeStartEx(lib, &a);
    assert_true(one && two && three && one != two);
    nvtxRangeEnd(one);
    pthread_create(&thread, NULL, end_it, &two);
    pthread_join(thread, NULL);
    nvtxRangeEnd(two); /* once more: nothing */
    nvtxRangeEnd(0);
    nvtxRangeEnd(UINT64_MAX);
    nvtxRangeEnd(one + 1);
    nvtxRangeStartA("never ended");
    nvtxDomainRangeEnd(lib, three);
    json_t *d = stop();
    assert_int_equal(count_events(d, "X", "one"), 1);
    assert_int_equal(count_events(d, "X", "lib/long"), 1);
    assert_int_equal(number(d, "one", "thread"), syscall(SYS_gettid));
    assert_int_not_equal(number(d, "two", "ended by"), syscall(SYS_gettid));
    assert_int_equal(number(d, "never ended", "unbalanced"), 1);
    json_int_t track = json_integer_value(member(find_event(d, "one"), "tid"));
    assert_int_not_equal(track, json_integer_value(member(find_event(d, "two"), "tid")));
    assert_int_equal(calls("one"), 1);
    assert_int_equal(calls("lib/long"), 1);
    json_decref(d);
}

/* A text with a number: everything that an event is, in a payload. */
static void open_across_sessions(void **state)
{
    (void)state;
    nvtxRangePushA("of the first");
    nvtxRangeId_t id = nvtxRangeStartA("started in the first");
    json_t *d = stop();
    assert_int_equal(number(d, "of the first", "unbalanced"), 1);
    json_decref(d);
    nvtxRangePushA("of none");
    nvtxMarkA("of none");
    assert_int_equal(nvtxRangeStartA("of none"), 0);
    start();
    nvtxRangePushA("of the first"); /* the same name, in the second */
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangeEnd(id);
    d = stop();
    assert_int_equal(count_events(d, "X", NULL), 1);
    assert_int_equal(counts().stray_ends + counts().unbalanced + counts().dropped, 0);
    json_decref(d);
}

static void names_of_threads(void **state)
{
    (void)state;
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "the main one");
    nvtxRangePushA("x");
    nvtxRangePop();
    json_decref(stop());
    start(); /* it keeps its name */
    nvtxRangePushA("x");
    nvtxRangePop();
    json_t *d = stop();
    char *text = json_dumps(d, 0);
    assert_non_null(strstr(text, "the main one"));
    free(text);
    json_decref(d);
}

#define THREADS 6
static unsigned rounds;

static void *use(void *argument)
{
    char name[32];
    uint64_t random = (uint64_t)(uintptr_t)argument;
    nvtxRangeId_t open[8] = {0};
    for (unsigned i = 0; i < rounds; i++) {
        snprintf(name, sizeof name, "t%u", (unsigned)(kit_random(&random) % 20));
        nvtxRangePushA(name);
        push(lib, "shared");
        nvtxRangeEnd(open[i % 8]);
        open[i % 8] = nvtxRangeStartA("crossing");
        nvtxMarkA("tick");
        nvtxDomainRangePop(lib);
        nvtxRangePop();
    }
    for (unsigned i = 0; i < 8; i++)
        nvtxRangeEnd(open[i]);
    return argument;
}

static void many_threads(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    rounds = kit_scaled(3000);
    for (uintptr_t i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, use, (void *)(i + 1)) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL) == 0);
    json_decref(stop());
    pk_counts c = counts();
    assert_int_equal(c.begun, 2ull * THREADS * rounds);
    assert_int_equal(calls("lib/shared"), (uint64_t)THREADS * rounds);
    assert_int_equal(c.points + c.points_dropped, (uint64_t)THREADS * rounds);
    assert_int_equal(calls("crossing"), (uint64_t)THREADS * rounds);
    assert_int_equal(c.stray_ends + c.unbalanced, 0);
}

static void in_child(void *argument)
{
    (void)argument;
    nvtxRangePushA("off");
    nvtxRangePop();
    nvtxRangePop(); /* the parent's */
    nvtxRangeId_t id = nvtxRangeStartA("off");
    must(id == 0);
    start();
    nvtxRangePushA("the child's");
    nvtxRangeEnd(nvtxRangeStartA("the child's too"));
    nvtxDomainCreateA("the child's");
    nvtxRangePop();
    must(pk_stop() == PK_OK);
    pk_counts c = {.size = sizeof c};
    must(pk_get_counts(&c) == PK_OK);
    must_equal(c.begun, 1);
    must_equal(c.stray_ends, 0);
}

static void forked(void **state)
{
    (void)state;
    if (kit_sanitized("thread"))
        skip(); /* it allows no new thread in the child */
    nvtxRangePushA("around a fork");
    nvtxRangeId_t id = nvtxRangeStartA("range around a fork");
    assert_int_equal(kit_child(in_child, NULL, 240), 0);
    nvtxRangeEnd(id);
    nvtxRangePop();
    path = kit_path("nvtx.json");
    json_t *d = stop();
    assert_int_equal(count_events(d, "X", "around a fork"), 1);
    assert_int_equal(count_events(d, "X", "range around a fork"), 1);
    json_decref(d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        with_ranges(started_and_ended),
        with_ranges(open_across_sessions),
        with_ranges(names_of_threads),
        with_ranges(many_threads),
        with_ranges(forked),
    };
    take_arguments(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
