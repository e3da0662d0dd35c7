/* What a handler that has interrupted the fast path has recorded, and the store of `state` behind
 * it has undone, as a ring is left or come back to: what was folded is not folded again, and what
 * follows is. The store is made by hand.
 */
#include "spares.h"

#include "core/registry.h"

enum { SLOT = sizeof(pki_record) };

static pk_region inner = PK_REGION("inner");

static int start_held(void **state)
{
    (void)state;
    return start_with_spares(NULL, 3);
}

static void record(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pk_region_begin(&inner);
        pk_region_end(&inner);
    }
}

static void go_on_from(pki_thread *t, uint64_t before)
{
    pki_store_release(&t->state, before + ((uint64_t)SLOT << 32));
}

/* The handler has come round and all of that is taken; then the ring is full at once, short of
 * where it had been. */
static void a_ring_that_is_left_behind_readers(void **state)
{
    pki_thread *t = pki_own;
    uint32_t turn = t->turn, at = (uint32_t)(pki_load(&t->state) >> 32) / SLOT;
    (void)state;
    record(50 - at);
    let_go();
    record(10);
    uint64_t before = pki_load(&t->state);
    record(10);
    let_go();
    assert_true(t->released == pki_cursor_of(turn, 6 * SLOT) && t->folded == t->released);
    go_on_from(t, before);
    record(3 + 5); /* up to the ring's end, and to what passes for the last free slot */
    assert_false(pki_is_in_segment(t));
    record(4);
    assert_true(pki_is_in_segment(t));
    assert_int_equal(pki_turn_at(t, turn)->end, 5 * SLOT);
    assert_int_equal(count_of(&inner), 50 - at + 20 + 4);
    assert_int_equal(pki_turn_at(t, turn)->end, 6 * SLOT); /* for who takes records, too */
    let_go();
    assert_true(pki_load(&pki_the_session.fullest) < HOLDS);
    record(HOLDS);
    let_go();
    assert_int_equal(count_of(&inner), 50 - at + 24 + HOLDS);
    assert_int_equal(stop_now().dropped, 0);
}

/* From far into a segment the handler has come back to the ring's start: what lies between is no
 * record. */
static void a_ring_come_back_to_in_its_middle(void **state)
{
    pki_thread *t = pki_own;
    (void)state;
    record(HOLDS + 45);
    uint32_t turn = t->turn;
    uint64_t before = pki_load(&t->state);
    unsigned all = HOLDS + 45;
    assert_true(before >> 32 > RING / 2 * SLOT);
    let_go();
    record(10);
    all += 10;
    assert_int_equal(t->turn, turn + 1);
    assert_false(pki_is_in_segment(t));
    assert_int_equal(count_of(&inner), all);
    go_on_from(t, before);
    record(10);
    all += 10;
    assert_int_equal(count_of(&inner), all);
    for (int i = 0; i < 20; i++) {
        let_go();
        record(30);
        all += 30;
    }
    assert_int_equal(count_of(&inner), all);
    assert_int_equal(stop_now().dropped, 0);
}

/* ---- without a segment ---- */

static int start_alone(void **state)
{
    (void)state;
    return start_with_spares(NULL, 0);
}

static unsigned slot_of(uint64_t state)
{
    return (unsigned)(state >> 32) / SLOT;
}

/* Goes on from there with what is short of readers by so many slots, which are as good as none,
 * until it has looked; from then on there is room. */
static void short_of_readers(unsigned from, unsigned by)
{
    pki_thread *t = pki_own;
    record((from + RING - slot_of(pki_load(&t->state))) % RING);
    let_go();
    uint64_t before = pki_load(&t->state), dropped = t->dropped;
    record(10);
    let_go();
    assert_int_equal(pki_cursor_offset(t->released), (from + 10) % RING * SLOT);
    go_on_from(t, before);
    t->stop = 0; /* it looks, as it does each eighth of a ring */
    record(10 - 1 - by);
    assert_int_equal(t->dropped, dropped);
    record(20); /* some of them as readers are told of it */
    uint64_t some = t->dropped - dropped;
    assert_true(some >= 20 - by);
    let_go();
    for (int i = 0; i < 5; i++) {
        record(40);
        let_go();
    }
    assert_int_equal(t->dropped - dropped, some);
    assert_int_equal(slot_of(pki_load(&t->state)), (from + 10 + 200) % RING);
}

static void a_ring_that_is_short_of_readers(void **state)
{
    (void)state;
    short_of_readers(20, 1); /* in the first round */
    short_of_readers(40, 3);
    for (unsigned by = 1; by < 9; by++)
        short_of_readers(50, by);
    assert_true(count_of(&inner) > 10 * 200);
    stop_now();
}

/* The handler has come round, or the owner comes round behind it. */
static void and_across_its_end(void **state)
{
    (void)state;
    short_of_readers(50, 3);
    for (unsigned from = 54; from < RING; from++)
        short_of_readers(from, 3);
    stop_now();
}

/* It has come past where readers are by itself, and round: then full is full. */
static void a_full_ring_behind_readers(void **state)
{
    pki_thread *t = pki_own;
    (void)state;
    record(30);
    let_go();
    uint64_t before = pki_load(&t->state);
    record(10);
    let_go();
    go_on_from(t, before);
    record(2);
    let_go(); /* told */
    assert_true(t->undone_turn == t->turn && t->undone_until > 0);
    record(7 + HOLDS);
    assert_int_equal(t->dropped, 0);
    record(5);
    assert_int_equal(t->dropped, 5);
    let_go();
    record(10);
    assert_int_equal(t->dropped, 5);
    stop_now();
}

#define alone(test) cmocka_unit_test_setup_teardown(test, start_alone, stop_held)
#define held(test) cmocka_unit_test_setup_teardown(test, start_held, stop_held)

int main(void)
{
    const struct CMUnitTest undone[] = {
        held(a_ring_that_is_left_behind_readers), held(a_ring_come_back_to_in_its_middle),
        alone(a_ring_that_is_short_of_readers),   alone(and_across_its_end),
        alone(a_full_ring_behind_readers),
    };
    return both_clocks(undone);
}
