/* What windows have of what is lost meanwhile. */
#include "session.h"

#include <pthread.h>

#include "measure/fold/fold.h"
#include "measure/window/seal.h"
#include "session/report/run.h"
#include "stats/tally.h"

/* ---- windows that are cut at a test's word ---- */

/* While what they are cut from is half entered, as by threads that lose calls meanwhile. What all
 * windows have is summed up. */

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner");
static pk_counter level = PK_COUNTER("level", "");

static uint64_t moment; /* ns, of the next cut */

/* Of all windows so far. */
static pki_window_sum outer_sum, inner_sum;
static uint64_t outer_self, inner_self;
static pki_tally level_sum;

/* One call of each region, and one value. A ring of 64 records; nothing is taken from it but at a
 * test's word. */
static int start_cutting(void **state)
{
    (void)state;
    if (pk_start(pk_options(.backends = "none",
                            .tuning = kit_tuning("clock=%s,ring_records=64", the_clock))))
        return -1;
    pk_region_begin(&outer);
    pk_region_begin(&inner);
    pk_region_end(&inner);
    pk_region_end(&outer);
    pk_counter_set(&level, 1);
    pk_flush();
    pthread_mutex_lock(&pki_drain_lock);
    pki_fold_lock();
    pki_seal_start(pki_fold_now(), 0, 1);
    pki_fold_unlock();
    moment = 1000;
    return 0;
}

static int stop_cutting(void **state)
{
    pki_fold_lock();
    pki_seal_start(NULL, 0, 0);
    pki_fold_unlock();
    pki_tally_finish(&outer_sum.buckets);
    pki_tally_finish(&inner_sum.buckets);
    pki_tally_finish(&level_sum);
    outer_sum = inner_sum = (pki_window_sum){0};
    outer_self = inner_self = 0;
    pthread_mutex_unlock(&pki_drain_lock);
    return stop_session(state);
}

#define cutting(test) cmocka_unit_test_setup_teardown(test, start_cutting, stop_cutting)

/* All that is in the rings is taken, and threads that have ended are recycled. */
static void let_go(void)
{
    pthread_mutex_unlock(&pki_drain_lock);
    pk_flush();
    pk_flush();
    pthread_mutex_lock(&pki_drain_lock);
}

/* -- windows -- */

static const pki_window_region *row_of(const pki_window *w, const pk_region *region)
{
    for (size_t i = 0; i < w->region_count; i++)
        if (w->regions[i].id == region->id)
            return &w->regions[i];
    return NULL;
}

static const pki_tally *values_of(const pki_window *w, const pk_counter *counter)
{
    for (size_t i = 0; i < w->counter_count; i++)
        if (w->counters[i].id == counter->id)
            return &w->counters[i].exact;
    return NULL;
}

static void add_row(const pki_window *w, const pk_region *region, pki_window_sum *sum,
                    uint64_t *self)
{
    const pki_window_region *row = row_of(w, region);
    if (!row)
        return;
    assert_true(row->exact.min <= row->exact.max);
    assert_true(pki_window_sum_add(sum, &row->exact));
    *self += row->self;
}

static void add_window(const pki_window *w)
{
    const pki_tally *values = values_of(w, &level);
    add_row(w, &outer, &outer_sum, &outer_self);
    add_row(w, &inner, &inner_sum, &inner_self);
    assert_true(!values || pki_tally_merge(&level_sum, values));
}

/* pki_window_finish is left to do. */
static pki_window cut(bool last)
{
    pki_window w;
    pki_fold_lock();
    moment += 1000;
    if (last)
        pki_seal_last(pki_fold_now(), moment);
    else
        pki_seal_poll(pki_fold_now(), moment);
    pki_fold_unlock();
    assert_true(pki_seal_pop(&w));
    add_window(&w);
    return w;
}

static void cut_and_forget(bool last)
{
    pki_window w = cut(last);
    pki_window_finish(&w);
}

/* -- what is there -- */

static void expect_buckets(const pki_tally *a, const pki_tally *b)
{
    assert_int_equal(a->used, b->used);
    for (size_t i = 0; i < a->used; i++)
        assert_true(a->buckets[i].key == b->buckets[i].key &&
                    a->buckets[i].count == b->buckets[i].count);
}

/* The windows' sum is the run's. */
static void expect_whole(const pk_region *region, const pki_window_sum *sum, uint64_t self)
{
    static pk_stats stats;
    pki_window_sum whole;
    pki_stats_begin(&stats);
    pki_fold_lock();
    pki_fold_stats(pki_fold_now(), region->id, &stats);
    pki_fold_unlock();
    assert_true(pki_window_sum_of_stats(&stats, &whole));
    assert_true(sum->count == whole.count && sum->sum == whole.sum);
    assert_int_equal(sum->min, whole.min);
    assert_int_equal(sum->max, whole.max);
    assert_true(sum->squares_low == whole.squares_low && sum->squares_high == whole.squares_high);
    expect_buckets(&sum->buckets, &whole.buckets);
    assert_int_equal(self, stats.self);
    pki_tally_finish(&whole.buckets);
}

static void expect_all_values(void)
{
    pki_value_stats all = {0};
    pki_fold_lock();
    assert_true(pki_fold_values(pki_fold_now(), level.id, &all));
    pki_fold_unlock();
    pki_dist a = pki_tally_dist(&level_sum), b = pki_tally_dist(&all.tally);
    assert_memory_equal(&a, &b, sizeof a);
    expect_buckets(&level_sum, &all.tally);
    pki_tally_finish(&all.tally);
}

/* -- halves -- */

/* As pki_slot_count enters a call, up to its bucket. */
static void enter_sums(pki_slot *slot, uint64_t ns)
{
    pki_bump(&slot->count, 1);
    pki_slot_add_moments(slot, ns);
}

static void enter_bucket(pki_slot *slot, uint64_t ns)
{
    pki_slot_count_bucket(&pki_self->registry->arena->spans, &pki_self->lost.pool, slot,
                          pki_bucket(ns));
}

static pki_values *lose_value(double value)
{
    pki_values *v = (pki_values *)pki_lost_slot(pki_self, level.id);
    pki_values_add(&pki_self->registry->arena->spans, &pki_self->lost.pool, v, value, 1);
    return v;
}

/* ---- what windows have of calls whose records are dropped meanwhile ---- */

/* However little of a call is there when a window is cut, the sum of them all is the run's, to the
 * last digit. */

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

/* -- halves -- */

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

/* -- threads that have ended -- */

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

/* -- self time -- */

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

static const struct CMUnitTest windows_lost_tests[] = {
    cutting(a_call_without_its_bucket),    cutting(a_bucket_behind_its_call),
    cutting(the_largest_behind_its_count), cutting(the_smallest_behind_its_count),
    cutting(a_square_before_its_call),     cutting(a_call_without_room),
    cutting(a_thread_that_has_ended),      cutting(calls_that_are_gone),
    cutting(calls_inside_a_lost_one),
};

/* ---- what windows have of a counter's values whose records are dropped meanwhile ---- */

/* Half entered when a window is cut: their sum is the run's, to the last bit. */

/* The only bucket with something in it. */
static uint32_t *bucket_of_value(pki_values *v)
{
    for (uint32_t i = 0; i < PKI_VALUE_BANKS * PK_STATS_BUCKETS; i++) {
        pki_slot *bank = &v->banks[i / PK_STATS_BUCKETS];
        uint32_t bucket = i % PK_STATS_BUCKETS;
        if (pki_slot_bucket(bank, bucket))
            return (uint32_t *)pki_follow(bank, bank->chunks[bucket / PKI_CHUNK_BUCKETS]) +
                   bucket % PKI_CHUNK_BUCKETS;
    }
    return NULL;
}

static void a_value_without_its_bucket(void **state)
{
    (void)state;
    uint32_t *bucket = bucket_of_value(lose_value(300));
    *bucket = 0;
    cut_and_forget(false);
    assert_true(level_sum.moments.count == 2 && level_sum.used == 1);
    *bucket = 1;
    cut_and_forget(false);
    assert_true(level_sum.moments.count == 2 && level_sum.used == 1); /* a bucket alone waits */
    cut_and_forget(true);
    expect_all_values();
}

/* The count is the last of its moments, and the bucket comes behind them all. */
static void the_sums_before_the_count(double first, double second)
{
    cut_and_forget(false);
    pki_values *v = lose_value(first);
    cut_and_forget(false);
    uint32_t *bucket = bucket_of_value(v);
    lose_value(second);
    assert_int_equal(*bucket, 2); /* both are in it */
    v->moments.count--;
    (*bucket)--;
    cut_and_forget(false);
    v->moments.count++;
    cut_and_forget(false);
    (*bucket)++;
    cut_and_forget(false);
    cut_and_forget(true);
    expect_all_values();
}

static void sums_without_their_count(void **state)
{
    (void)state;
    the_sums_before_the_count(100, 100.5);
}

/* Beyond what buckets tell apart. */
static void an_extreme_without_its_count(void **state)
{
    (void)state;
    the_sums_before_the_count(1e29, 1e30);
}

/* As without memory for it. It is no extreme of the run, and yet has some. */
static void a_value_without_room(void **state)
{
    (void)state;
    cut_and_forget(false);
    *bucket_of_value(lose_value(1)) = 0;
    cut_and_forget(false);
    pki_window w = cut(false);
    assert_int_equal(w.counter_count, 1);
    const pki_moments *m = &values_of(&w, &level)->moments;
    assert_true(m->count == 1 && m->min == 1 && m->max == 1);
    pki_window_finish(&w);
    cut_and_forget(true);
    expect_all_values();
}

/* A thread has ended, and the table of all had no memory for its counter: the run has fewer. */
static void values_that_are_gone(void **state)
{
    (void)state;
    pki_values *v = lose_value(300);
    cut_and_forget(false);
    v->moments.count = 0;
    for (int i = 0; i < 2; i++) { /* halves of a value would not wait twice */
        pki_window w = cut(i == 1);
        assert_int_equal(w.counter_count, 0);
        pki_window_finish(&w);
    }
    assert_int_equal(level_sum.moments.count, 2);
}

static const struct CMUnitTest windows_lost_values_tests[] = {
    cutting(a_value_without_its_bucket),   cutting(sums_without_their_count),
    cutting(an_extreme_without_its_count), cutting(a_value_without_room),
    cutting(values_that_are_gone),
};

int main(void)
{
    int failed = cmocka_run_group_tests(windows_lost_tests, NULL, NULL);
    failed += cmocka_run_group_tests(windows_lost_values_tests, NULL, NULL);
    return failed;
}
