/* Mirrors: every begin that they are told of has its end, in order, whatever closes the region. */
#include "session.h"

#include <pthread.h>
#include <stdbool.h>

#include "core/mirror.h"

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner"), echo = PK_REGION("echo");

enum { MOST = 256 };
static _Thread_local uint32_t open_ids[MOST];
static _Thread_local unsigned open_count, told, marks, wrong;
static _Thread_local uint64_t bytes;
static _Thread_local bool recursive, inside;
static unsigned others_left; /* of threads that have ended */

static void hear_begin(uint32_t id, unsigned depth)
{
    if (depth == 0 && !inside)
        open_count = 0;
    wrong += depth < open_count && !inside; /* within, the outer one is not open yet */
    open_ids[open_count++] = id;
    told++;
    if (recursive && !inside) {
        inside = true;
        pk_region_begin(&echo);
        pk_region_end(&echo);
        inside = false;
    }
}

static void hear_end(uint32_t id, const pki_work *work)
{
    if (open_count == 0 || open_ids[--open_count] != id)
        wrong++;
    bytes += work->bytes;
}

static void hear_mark(uint32_t id)
{
    marks += id != 0;
}

static const pki_mirror mirror = {hear_begin, hear_end, hear_mark};
static const pki_mirror *const mirrors[] = {&mirror};

static int start(void **state)
{
    told = marks = wrong = open_count = 0;
    bytes = 0;
    recursive = false;
    if (start_session(state))
        return -1;
    pki_mirrors_open(mirrors, 1);
    return 0;
}

static int stop(void **state)
{
    pki_mirrors_close();
    return stop_session(state);
}

static void pairs(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        pk_region_begin(&outer);
        pk_region_begin(&inner);
        pk_region_add(&inner, 7, 1);
        pk_region_next(&inner, &echo);
        pk_region_mark(&outer);
        pk_region_end(&echo);
        pk_region_end(&outer);
    }
    assert_int_equal(told, 30);
    assert_int_equal(marks, 10);
    assert_int_equal(bytes, 70);
    assert_int_equal(wrong + open_count, 0);
    assert_int_equal(stop_and_count().recorded, 30);
}

/* Frames that were open before have no end to tell. */
static void begun_before(void **state)
{
    (void)state;
    pki_mirrors_close();
    pk_region_begin(&outer);
    pk_region_add(&outer, 5, 0);
    pki_mirrors_open(mirrors, 1);
    pk_region_begin(&inner);
    pk_region_end(&inner);
    pk_region_end(&outer);
    assert_int_equal(told, 1);
    assert_int_equal(bytes, 0);
    assert_int_equal(wrong + open_count, 0);
}

static void closed_by_others(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    pk_region_begin(&inner);
    pk_region_begin(&echo);
    pk_region_end(&outer);
    assert_int_equal(told, 3);
    assert_int_equal(wrong + open_count, 0);
    assert_int_equal(stop_and_count().unbalanced, 2);
}

static void too_deep(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        pk_region_begin(&inner);
    for (int i = 0; i < 100; i++)
        pk_region_end(&inner);
    assert_int_equal(told, PKI_DEPTH_MAX);
    assert_int_equal(wrong + open_count, 0);
    assert_int_equal(stop_and_count().too_deep, 36);
}

/* A tool may use perfkit itself. */
static void from_within(void **state)
{
    (void)state;
    recursive = true;
    pk_region_begin(&outer);
    pk_region_end(&outer);
    assert_int_equal(told, 2);
    assert_int_equal(wrong + open_count, 0);
    assert_int_equal(stop_and_count().recorded, 2);
}

static void *leave_open(void *unused)
{
    pk_region_begin(&outer);
    pk_region_begin(&inner);
    return unused;
}

static void count_at_exit(void *unused)
{
    (void)unused;
    others_left += open_count + wrong + (told != 2);
}

static void *leave_open_and_count(void *unused)
{
    static pthread_key_t late; /* made after perfkit's: destroyed after it */
    pthread_key_create(&late, count_at_exit);
    pthread_setspecific(late, &late);
    leave_open(NULL);
    return unused;
}

static void closed_at_exit(void **state)
{
    pthread_t thread;
    (void)state;
    others_left = 0;
    pthread_create(&thread, NULL, leave_open_and_count, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(others_left, 0);
}

/* What was open at pk_stop has no end; the thread's depth starts again. */
static void open_at_stop(void **state)
{
    leave_open(NULL);
    assert_int_equal(open_count, 2);
    stop(state);
    pk_region_end(&inner);
    assert_int_equal(open_count, 2);
    assert_int_equal(start_session(state), 0);
    pki_mirrors_open(mirrors, 1);
    pk_region_begin(&echo);
    assert_int_equal(open_count, 1);
    pk_region_end(&echo);
    assert_int_equal(wrong + open_count, 0);
}

static void nobody_after_the_close(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    pki_mirrors_close();
    pk_region_begin(&inner);
    pk_region_end(&inner);
    pk_region_end(&outer);
    assert_int_equal(told, 1);
    assert_int_equal(stop_and_count().recorded, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pairs, start, stop),
        cmocka_unit_test_setup_teardown(begun_before, start, stop),
        cmocka_unit_test_setup_teardown(closed_by_others, start, stop),
        cmocka_unit_test_setup_teardown(too_deep, start, stop),
        cmocka_unit_test_setup_teardown(from_within, start, stop),
        cmocka_unit_test_setup_teardown(closed_at_exit, start, stop),
        cmocka_unit_test_setup_teardown(open_at_stop, start, stop),
        cmocka_unit_test_setup_teardown(nobody_after_the_close, start, stop),
    };
    return both_clocks(tests);
}
