/* The system's watchdog, on its own thread and clock: no test asks how late it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "bench/watchdog.h"

#include <sched.h>
#include <time.h>

static unsigned barks;

static void bark(void *arg)
{
    assert_ptr_equal(arg, &barks);
    __atomic_fetch_add(&barks, 1, __ATOMIC_RELEASE);
}

static const pki_bench_watchdog *const w = &pki_bench_system_watchdog;

static void barks_once(void **state)
{
    (void)state;
    void *dog = w->open(bark, &barks);
    assert_non_null(dog);
    for (unsigned i = 1; i <= 2; i++) {
        w->set(dog, 1);
        while (pki_load_acquire(&barks) < i)
            sched_yield();
        assert_true(w->call_off(dog));
        assert_false(w->call_off(dog)); /* told once */
    }
    w->close(dog);
    assert_int_equal(barks, 2);
}

/* One that has nothing to do sleeps, and wakes when it has. */
static void sleeps_in_between(void **state)
{
    (void)state;
    const struct timespec longer = {0, 3 * (long)PKI_BENCH_WATCHDOG_LOOK};
    void *dog = w->open(bark, &barks);
    pki_store_release(&barks, 0);
    for (unsigned i = 1; i <= 3; i++) {
        w->set(dog, UINT64_C(3600000000000));
        assert_false(w->call_off(dog));
        nanosleep(&longer, NULL);
        w->set(dog, 1);
        while (pki_load_acquire(&barks) < i)
            sched_yield();
        assert_true(w->call_off(dog));
    }
    w->close(dog);
}

static void is_called_off(void **state)
{
    (void)state;
    void *dog = w->open(bark, &barks);
    barks = 0;
    assert_false(w->call_off(dog)); /* never set */
    w->set(dog, UINT64_C(3600000000000));
    assert_false(w->call_off(dog));
    w->set(dog, UINT64_C(3600000000000));
    w->close(dog);
    assert_int_equal(barks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(barks_once),
        cmocka_unit_test(sleeps_in_between),
        cmocka_unit_test(is_called_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
