/* What windows have of calls whose records are dropped meanwhile: however little of a call is there
 * when a window is cut, the sum of them all is the run's, to the last digit. */
#include "cutting.h"

/* Of this region's row, which may have none. */
static void expect_row(const pk_region *region, uint64_t count, uint64_t in_buckets)
{
    pki_window w = cut(false);
    const pki_window_region *row = row_of(&w, region);
    assert_int_equal(row ? row->exact.count : 0, count);
    uint64_t calls = 0;
    for (size_t i = 0; row && i < row->exact.buckets.used; i++)
        calls += row->exact.buckets.buckets[i].count;
    assert_int_equal(calls, in_buckets);
    pki_window_finish(&w);
}

/* ---- halves ---- */

static void a_call_without_its_bucket(void **state)
{
    (void)state;
    expect_row(&inner, 1, 1);
    pki_slot *slot = pki_lost_slot(pki_self, inner.id);
    enter_sums(slot, 5000000);
    expect_row(&inner, 0, 0); /* nothing but a half: it waits */
    enter_bucket(slot, 5000000);
    expect_row(&inner, 1, 1);
    cut_and_forget(true);
    expect_whole(&inner, &inner_sum, inner_self);
}

/* Beside whole ones; then its bucket is alone. */
static void a_bucket_behind_its_call(void **state)
{
    (void)state;
    pki_slot *slot = pki_lost_slot(pki_self, inner.id);
    enter_sums(slot, 5000000);
    expect_row(&inner, 2, 1);
    enter_bucket(slot, 5000000);
    expect_row(&inner, 0, 0);
    cut_and_forget(true);
    expect_whole(&inner, &inner_sum, inner_self);
    assert_int_equal(inner_sum.max, 5000000);
}

/* All but its count comes behind a window with whole calls, and nothing after it. */
static void the_count_before_all_else(uint64_t ns)
{
    pki_slot *slot = pki_lost_slot(pki_self, inner.id);
    pki_bump(&slot->count, 1);
    expect_row(&inner, 2, 1);
    pki_slot_add_moments(slot, ns);
    enter_bucket(slot, ns);
    cut_and_forget(true);
    expect_whole(&inner, &inner_sum, inner_self);
}

static void the_largest_behind_its_count(void **state)
{
    (void)state;
    the_count_before_all_else(5000000);
    assert_int_equal(inner_sum.max, 5000000);
}

static void the_smallest_behind_its_count(void **state)
{
    (void)state;
    the_count_before_all_else(0);
    assert_int_equal(inner_sum.min, 0);
}

/* As who has read the count before the call, and its square after it. */
static void a_square_before_its_call(void **state)
{
    (void)state;
    cut_and_forget(false);
    pki_slot *slot = pki_lost_slot(pki_self, inner.id);
    uint64_t ns = 5000000, before = slot->squares_low;
    slot->squares_low += ns * ns;
    expect_row(&inner, 0, 0);
    slot->squares_low = before;
    enter_sums(slot, ns);
    enter_bucket(slot, ns);
    expect_row(&inner, 1, 1);
    cut_and_forget(true);
    expect_whole(&inner, &inner_sum, inner_self);
}

/* The bucket never comes, since there was no memory for it: the call waits once, not for ever. */
static void a_call_without_room(void **state)
{
    (void)state;
    cut_and_forget(false);
    enter_sums(pki_lost_slot(pki_self, inner.id), inner_sum.min); /* no extreme of the run */
    expect_row(&inner, 0, 0);
    expect_row(&inner, 1, 0);
    cut_and_forget(true);
    expect_whole(&inner, &inner_sum, inner_self);
}

/* ---- threads that have ended ---- */

/* They were its own in a window before: what a table takes over is not new. */
static void *lose_calls(void *barrier)
{
    pki_slot *slot;
    pk_region_begin(&inner);
    pk_region_end(&inner);
    slot = pki_lost_slot(pki_self, inner.id);
    enter_sums(slot, 6000000);
    enter_bucket(slot, 6000000);
    lose_value(300);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    return NULL;
}

static void a_thread_that_has_ended(void **state)
{
    pthread_t thread;
    pthread_barrier_t barrier;
    (void)state;
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, lose_calls, &barrier), 0);
    pthread_barrier_wait(&barrier);
    cut_and_forget(false);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    let_go();
    pk_region_begin(&inner);
    pk_region_end(&inner);
    pk_counter_set(&level, 2);
    let_go();
    pki_window w = cut(false);
    const pki_window_sum *sum = &row_of(&w, &inner)->exact;
    assert_int_equal(sum->count, 2); /* the thread's first one was not folded before */
    assert_in_range(sum->max, 0, sum->sum);
    assert_true(values_of(&w, &level)->moments.max == 2);
    pki_window_finish(&w);
    cut_and_forget(true);
    expect_whole(&inner, &inner_sum, inner_self);
    expect_all_values();
    pthread_barrier_destroy(&barrier);
}

/* Without memory such calls get another name, and this one has fewer than before. */
static void calls_that_are_gone(void **state)
{
    (void)state;
    pki_slot *slot = pki_lost_slot(pki_self, inner.id);
    enter_sums(slot, 700);
    enter_bucket(slot, 700);
    expect_row(&inner, 2, 2);
    slot->count = 0;
    expect_row(&inner, 0, 0);
    expect_row(&inner, 0, 0); /* halves of a call would not wait twice */
    slot->count = 1;
    enter_sums(slot, 900);
    enter_bucket(slot, 900);
    expect_row(&inner, 1, 1);
}

/* ---- self time ---- */

/* What metrics have: a counter that falls is taken for one that began anew. */
static void expect_growth(void)
{
    static uint64_t before;
    pki_fold_sum sum;
    pki_fold_lock();
    assert_true(pki_fold_sums(pki_fold_now(), outer.id, &sum));
    pki_fold_unlock();
    assert_true(sum.self >= before);
    before = sum.self;
}

/* The fold has not come to the calls that were recorded inside a lost one when a window is cut: how
 * much of its time was its own nobody knows then. */
static void calls_inside_a_lost_one(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        pk_region_begin(&outer);
        for (int i = 0; i < 100; i++) {
            pk_region_begin(&inner);
            pk_region_end(&inner);
        }
        pk_region_end(&outer);
        cut_and_forget(false);
        expect_growth();
        if (round != 1)
            stats_of(&outer); /* which folds */
        expect_growth();
        if (round == 0)
            cut_and_forget(false);
        let_go();
    }
    cut_and_forget(true);
    assert_int_equal(outer_sum.count, 4);
    assert_true(pki_self->losses_made > 0); /* as it was meant to be */
    expect_whole(&outer, &outer_sum, outer_self);
    expect_whole(&inner, &inner_sum, inner_self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cutting(a_call_without_its_bucket),    cutting(a_bucket_behind_its_call),
        cutting(the_largest_behind_its_count), cutting(the_smallest_behind_its_count),
        cutting(a_square_before_its_call),     cutting(a_call_without_room),
        cutting(a_thread_that_has_ended),      cutting(calls_that_are_gone),
        cutting(calls_inside_a_lost_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
