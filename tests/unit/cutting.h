/* cutting.h - windows that are cut at a test's word, while what they are cut from is half entered,
 * as by threads that lose calls meanwhile. What all windows have is summed up. */
#ifndef CUTTING_H
#define CUTTING_H

#include "session.h"

#include <pthread.h>

#include "measure/fold/fold.h"
#include "measure/window/seal.h"
#include "session/report/run.h"
#include "stats/tally.h"

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner");
static pk_counter level = PK_COUNTER("level", "");

static uint64_t moment; /* ns, of the next cut */

/* Of all windows so far. */
static pki_window_sum outer_sum, inner_sum;
static uint64_t outer_self, inner_self;
static pki_tally level_sum;

/* One call of each region, and one value. A ring of 64 records; nothing is taken from it but at a
 * test's word. */
static inline int start_cutting(void **state)
{
    (void)state;
    if (pk_start(pk_options(.clock = the_clock, .backends = "none", .ring_records = 64)))
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

static inline int stop_cutting(void **state)
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
static inline void let_go(void)
{
    pthread_mutex_unlock(&pki_drain_lock);
    pk_flush();
    pk_flush();
    pthread_mutex_lock(&pki_drain_lock);
}

/* ---- windows ---- */

static inline const pki_window_region *row_of(const pki_window *w, const pk_region *region)
{
    for (size_t i = 0; i < w->region_count; i++)
        if (w->regions[i].id == region->id)
            return &w->regions[i];
    return NULL;
}

static inline const pki_tally *values_of(const pki_window *w, const pk_counter *counter)
{
    for (size_t i = 0; i < w->counter_count; i++)
        if (w->counters[i].id == counter->id)
            return &w->counters[i].exact;
    return NULL;
}

static inline void add_row(const pki_window *w, const pk_region *region, pki_window_sum *sum,
                           uint64_t *self)
{
    const pki_window_region *row = row_of(w, region);
    if (!row)
        return;
    assert_true(row->exact.min <= row->exact.max);
    assert_true(pki_window_sum_add(sum, &row->exact));
    *self += row->self;
}

static inline void add_window(const pki_window *w)
{
    const pki_tally *values = values_of(w, &level);
    add_row(w, &outer, &outer_sum, &outer_self);
    add_row(w, &inner, &inner_sum, &inner_self);
    assert_true(!values || pki_tally_merge(&level_sum, values));
}

/* pki_window_finish is left to do. */
static inline pki_window cut(bool last)
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

static inline void cut_and_forget(bool last)
{
    pki_window w = cut(last);
    pki_window_finish(&w);
}

/* ---- what is there ---- */

static inline void expect_buckets(const pki_tally *a, const pki_tally *b)
{
    assert_int_equal(a->used, b->used);
    for (size_t i = 0; i < a->used; i++)
        assert_true(a->buckets[i].key == b->buckets[i].key &&
                    a->buckets[i].count == b->buckets[i].count);
}

/* The windows' sum is the run's. */
static inline void expect_whole(const pk_region *region, const pki_window_sum *sum, uint64_t self)
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

static inline void expect_all_values(void)
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

/* ---- halves ---- */

/* As pki_slot_count enters a call, up to its bucket. */
static inline void enter_sums(pki_slot *slot, uint64_t ns)
{
    pki_bump(&slot->count, 1);
    pki_slot_add_moments(slot, ns);
}

static inline void enter_bucket(pki_slot *slot, uint64_t ns)
{
    pki_slot_count_bucket(&pki_self->registry->arena->spans, &pki_self->lost.pool, slot,
                          pki_bucket(ns));
}

static inline pki_values *lose_value(double value)
{
    pki_values *v = (pki_values *)pki_lost_slot(pki_self, level.id);
    pki_values_add(&pki_self->registry->arena->spans, &pki_self->lost.pool, v, value, 1);
    return v;
}

#endif
