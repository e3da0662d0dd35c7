/* Whoever opens the trace of a program that is still running finds a whole document, at any moment;
 * after a flush with everything in it that was recorded before.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#include <pk/pk.h>

#include "kit.h"
#include "trace.h"

static pk_region numbered = PK_REGION("numbered"), other = PK_REGION_OF(PK_IO, "other");
static pk_counter counter = PK_COUNTER("live.counter", "");

static void record_numbered(uint64_t number)
{
    pk_region_begin(&numbered);
    pk_region_begin(&other);
    pk_region_end(&other);
    pk_region_add(&numbered, number, 0);
    pk_region_end(&numbered);
}

/* Numbers from 1 on without a gap; the last one. */
static uint64_t last_number(trace *t, const char *path)
{
    uint64_t last = 0;
    if (!trace_read(t, path) || !trace_nests(t))
        fail_msg("%s", t->why);
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->events[i].name, "numbered") == 0 && t->events[i].bytes)
            assert_int_equal(t->events[i].bytes, ++last);
    trace_free(t);
    return last;
}

static void after_each_flush(const char *path)
{
    trace t;
    uint64_t number = 0, chance = 12345;
    assert_int_equal(
        pk_start(pk_options(.trace_path = path, .flush_ms = 3600000, .backends = "none")), PK_OK);
    for (unsigned i = 0; i < kit_scaled(50); i++) {
        for (uint64_t n = kit_random(&chance) % 60; n > 0; n--)
            record_numbered(++number);
        assert_int_equal(pk_flush(), PK_OK);
        assert_int_equal(last_number(&t, path), number);
        assert_false(t.complete || t.has_report);
    }
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(last_number(&t, path), number);
    assert_true(t.has_report);
}

static void flushed(void **state)
{
    (void)state;
    after_each_flush(kit_path("flushed.json"));
}

static void flushed_compressed(void **state)
{
    (void)state;
    after_each_flush(kit_path("flushed.json.gz"));
}

/* ---- a program that is held at any moment ---- */

static uint64_t *returned; /* the last number whose end has returned */

static void *make_noise(void *argument)
{
    for (unsigned i = 0;; i++) {
        pk_region_begin(&other);
        pk_region_end(&other);
        if (i % 64 == 0)
            pk_counter_set(&counter, i);
        kit_sleep_us(100);
    }
    return argument;
}

static void run_for_ever(const char *path)
{
    pthread_t noise;
    kit_watchdog(240);
    must_equal(pk_start(pk_options(.trace_path = path, .flush_ms = 10, .backends = "none",
                                   .ring_records = 4096)),
               PK_OK);
    must(pthread_create(&noise, NULL, make_noise, NULL) == 0);
    for (uint64_t number = 1;; number++) {
        record_numbered(number);
        __atomic_store_n(returned, number, __ATOMIC_RELEASE);
        kit_sleep_us(100);
    }
}

/* Held: nobody is inside a write. */
static void hold_and_look(pid_t child, const char *path, uint64_t *seen)
{
    int status;
    trace t;
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    uint64_t last = last_number(&t, path);
    assert_true(last >= *seen);
    assert_true(last <= __atomic_load_n(returned, __ATOMIC_ACQUIRE) + 1);
    *seen = last;
    assert_int_equal(kill(child, SIGCONT), 0);
}

static void look_at(const char *path)
{
    int status;
    uint64_t seen = 0, chance = 99;
    *returned = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        run_for_ever(path);
    while (__atomic_load_n(returned, __ATOMIC_ACQUIRE) == 0 &&
           waitpid(child, &status, WNOHANG) == 0)
        kit_sleep_us(100);
    for (unsigned i = 0; i < kit_scaled(50); i++) {
        kit_sleep_us((unsigned)(kit_random(&chance) % 15000));
        hold_and_look(child, path, &seen);
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(seen > 0);
}

static void held(void **state)
{
    (void)state;
    look_at(kit_path("held.json"));
}

static void held_compressed(void **state)
{
    (void)state;
    look_at(kit_path("held.json.gz"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flushed),
        cmocka_unit_test(flushed_compressed),
        cmocka_unit_test(held),
        cmocka_unit_test(held_compressed),
    };
    returned =
        mmap(NULL, sizeof *returned, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (returned == MAP_FAILED)
        kit_skip("no memory to share with a child");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
