/* Threads with small stacks: what records fits the smallest there is, control calls what
 * pk/session.h says. */
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <pk/pk.h>

#include "kit.h"

/* What a thread's stack holds of libraries' thread-local memory: cmocka's, here. */
#define CMOCKA_BYTES 12288

static pk_region work = PK_REGION("work");
static pk_counter level = PK_COUNTER("level", "");

static void *record(void *argument)
{
    for (int i = 0; i < 1000; i++) {
        PK_REGION_SCOPE(work);
        pk_counter_set(&level, i);
        pk_step(1);
    }
    return argument;
}

static void *have_a_session(void *path)
{
    must(pk_start(pk_options(.trace_path = path, .backends = "none")) == PK_OK);
    record(NULL);
    must(pk_flush() == PK_OK);
    must(pk_stop() == PK_OK);
    return NULL;
}

static void run_on(size_t bytes, void *(*body)(void *), const char *path)
{
    pthread_attr_t small;
    pthread_t thread;
    must(pthread_attr_init(&small) == 0);
    must(pthread_attr_setstacksize(&small, bytes) == 0);
    must(pthread_create(&thread, &small, body, (void *)(uintptr_t)path) == 0);
    must(pthread_join(thread, NULL) == 0);
    pthread_attr_destroy(&small);
}

static void small_stacks_are_enough(void **state)
{
    (void)state;
    if (kit_sanitized("address") || kit_sanitized("thread") || kit_valgrind())
        kit_skip("a sanitizer needs more stack");
    run_on(65536, have_a_session, kit_path("stacks.json"));
    assert_int_equal(pk_start(NULL), PK_OK);
    run_on((size_t)PTHREAD_STACK_MIN + CMOCKA_BYTES, record, NULL);
    assert_int_equal(pk_stop(), PK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_stacks_are_enough)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
