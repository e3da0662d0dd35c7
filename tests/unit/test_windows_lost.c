/* What windows have of calls whose records are dropped meanwhile: however little of a call is there
 * when a window is cut, the sum of them all is the run's, to the last digit.
 *
 * A ring of 64 records is not drained, and half entered is what this test enters by halves.
 */
#include "session.h"

#include <pthread.h>

#include "measure/fold/fold.h"
#include "measure/window/seal.h"
#include "session/report/run.h"
#include "stats/values.h"

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner");
static pk_counter level = PK_COUNTER("level", "");

static uint64_t moment;                     /* ns, of the next cut */
static pki_window_sum outer_sum, inner_sum; /* of all windows so far */
static uint64_t outer_self, inner_self;
static pki_tally level_sum;

static int start_cutting(void **state)
{
    (void)state;
    if (pk_start(pk_options(.clock = the_clock, .backends = "none", .ring_records = 64)))
        return -1;
    pk_region_begin(&outer); /* both have their names */
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

/* ---- windows ---- */

static const pki_window_region *row_of(const pki_window *w, const pk_region *region)
{
    for (size_t i = 0; i < w->region_count; i++)
        if (w->regions[i].id == region->id)
            return &w->regions[i];
    return NULL;
}

static void add_row(const pki_window *w, const pk_region *region, pki_window_sum *sum,
                    uint64_t *self)
{
    const pki_window_region *row = row_of(w, region);
    if (!row)
        return;
    assert_true(pki_window_sum_add(sum, &row->exact));
    *self += row->self;
}

static void add_window(const pki_window *w)
{
    add_row(w, &outer, &outer_sum, &outer_self);
    add_row(w, &inner, &inner_sum, &inner_self);
    for (size_t i = 0; i < w->counter_count; i++)
        assert_true(w->counters[i].id != level.id ||
                    pki_tally_merge(&level_sum, &w->counters[i].exact));
}

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

static void expect_tally(const pki_tally *a, const pki_tally *b)
{
    assert_int_equal(a->used, b->used);
    for (size_t i = 0; i < a->used; i++)
        assert_true(a->buckets[i].key == b->buckets[i].key &&
                    a->buckets[i].count == b->buckets[i].count);
}

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
    assert_true(sum->min == whole.min && sum->max == whole.max);
    assert_true(sum->squares_low == whole.squares_low && sum->squares_high == whole.squares_high);
    expect_tally(&sum->buckets, &whole.buckets);
    assert_int_equal(self, stats.self);
    pki_tally_finish(&whole.buckets);
}

/* ---- halves ---- */

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

static void a_call_without_its_bucket(void **state)
{
    (void)state;
    expect_row(&inner, 1, 1);
    pki_slot *slot = pki_lost_slot(pki_self, inner.id);
    enter_sums(slot, 5000000);
    expect_row(&inner, 0, 0); /* nothing but a half */
    enter_bucket(slot, 5000000);
    expect_row(&inner, 1, 1);
    enter_sums(slot, 7000000);
    cut_and_forget(true); /* nobody would enter any more */
    assert_int_equal(inner_sum.count, 3);
    assert_int_equal(inner_sum.max, 7000000);
    enter_bucket(slot, 7000000);
}

/* Beside whole ones; then its bucket alone is in the last window. */
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

/* The bucket that the value is in, one value less in it; and back. */
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
    pki_values *v = (pki_values *)pki_lost_slot(pki_self, level.id);
    pki_values_add(&pki_self->registry->arena->spans, &pki_self->lost.pool, v, 300, 1);
    uint32_t *bucket = bucket_of_value(v);
    *bucket = 0;
    cut_and_forget(false);
    assert_true(level_sum.moments.count == 2 && level_sum.used == 1);
    *bucket = 1;
    cut_and_forget(false);
    assert_true(level_sum.moments.count == 2 && level_sum.used == 1); /* a bucket alone waits */
    cut_and_forget(true);
    pki_value_stats all = {0};
    pki_fold_lock();
    assert_true(pki_fold_values(pki_fold_now(), level.id, &all));
    pki_fold_unlock();
    pki_dist a = pki_tally_dist(&level_sum), b = pki_tally_dist(&all.tally);
    assert_memory_equal(&a, &b, sizeof a);
    expect_tally(&level_sum, &all.tally);
    pki_tally_finish(&all.tally);
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
        pthread_mutex_unlock(&pki_drain_lock);
        pk_flush();
        pthread_mutex_lock(&pki_drain_lock);
    }
    cut_and_forget(true);
    assert_int_equal(outer_sum.count, 4);
    assert_true(pki_self->losses_made > 0); /* as it was meant to be */
    expect_whole(&outer, &outer_sum, outer_self);
    expect_whole(&inner, &inner_sum, inner_self);
}

#define cutting(test) cmocka_unit_test_setup_teardown(test, start_cutting, stop_cutting)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cutting(a_call_without_its_bucket),
        cutting(a_bucket_behind_its_call),
        cutting(a_value_without_its_bucket),
        cutting(calls_inside_a_lost_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
