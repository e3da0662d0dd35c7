/* A segment that a thread has left is kept for it while a store of it may still come: nobody else
 * has it. */
#include "spares.h"

#include "core/registry.h"

enum { SEGMENTS = 3 };

static pk_region outer = PK_REGION("outer"), middle = PK_REGION("middle"),
                 inner = PK_REGION("inner");

static int start_held(void **state)
{
    (void)state;
    return start_with_spares(NULL, SEGMENTS);
}

static void record(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pk_region_begin(&inner);
        pk_region_end(&inner);
    }
}

static void *record_much(void *times)
{
    record(*(unsigned *)times);
    return pki_own;
}

static uint64_t dropped_by_another(unsigned many)
{
    pthread_t thread;
    void *block;
    assert_int_equal(pthread_create(&thread, NULL, record_much, &many), 0);
    assert_int_equal(pthread_join(thread, &block), 0);
    uint64_t dropped = ((pki_thread *)block)->dropped;
    let_go();
    let_go();
    return dropped;
}

/* All but those that this thread keeps, and its own ring. */
static void expect_kept(uint32_t kept)
{
    const unsigned most = (1 + SEGMENTS) * HOLDS;
    assert_int_equal(pki_spares_kept(the_spares()), kept);
    assert_int_equal(count_free(), SEGMENTS);
    assert_int_equal(dropped_by_another(most), kept * HOLDS);
}

static void come_home(void)
{
    let_go();
    record(HOLDS);
    assert_false(pki_is_in_segment(pki_own));
    let_go();
}

/* A store that a handler has interrupted may still come, into the segment that was left. */
static void one_is_kept_while_a_region_is_open(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    record(3 * HOLDS);
    come_home();
    expect_kept(2);
    pk_region_begin(&middle);
    record(3 * HOLDS); /* the same ones */
    come_home();
    expect_kept(2);
    pk_region_end(&middle);
    let_go();
    expect_kept(2);
    pk_region_end(&outer);
    let_go();
    expect_kept(0);
    record(3 * HOLDS);
    come_home();
    expect_kept(0);
    assert_int_equal(pki_own->dropped, 0);
    stop_now();
}

static void until_another_one_is(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    record(2 * HOLDS);
    come_home();
    expect_kept(1);
    pk_region_end(&outer);
    spend();
    pk_region_begin(&outer);
    let_go();
    expect_kept(0);
    pk_region_end(&outer);
    stop_now();
}

/* Given back to the system, it is still that one's. */
static void one_is_kept_without_memory(void **state)
{
    const uint32_t bytes = RING * sizeof(pki_record);
    (void)state;
    pk_region_begin(&outer);
    record(2 * HOLDS);
    come_home();
    for (int i = 0; i < SEGMENTS; i++)
        assert_true(pki_spare_unmake(the_spares(), pki_the_session.arena, bytes));
    assert_int_equal(pki_spares_there(the_spares()), 0);
    for (int i = 0; i < SEGMENTS; i++)
        assert_true(make_one());
    expect_kept(1);
    pk_region_end(&outer);
    stop_now();
}

#define held(test) cmocka_unit_test_setup_teardown(test, start_held, stop_held)

int main(void)
{
    const struct CMUnitTest kept[] = {
        held(one_is_kept_while_a_region_is_open),
        held(until_another_one_is),
        held(one_is_kept_without_memory),
    };
    return both_clocks(kept);
}
