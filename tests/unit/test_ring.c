/* A ring that is full: what it drops is counted, and no statistic misses it.
 *
 * The tests hold the lock under which the collector takes records, so that nothing is taken but at
 * their word. A ring of 64 records holds 63.
 */
#include "session.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "core/cursor.h"
#include "measure/fold/fold.h"
#include "session/report/run.h"

static pk_region outer = PK_REGION("outer"), middle = PK_REGION("middle"),
                 inner = PK_REGION("inner");
static pk_counter counter = PK_COUNTER("level", "");

static int start_held(void **state)
{
    (void)state;
    if (pk_start(pk_options(.clock = the_clock, .backends = "none", .ring_records = 64,
                            .report_threads = 1)))
        return -1;
    pk_region_mark(&outer); /* joins */
    pk_flush();
    pthread_mutex_lock(&pki_drain_lock);
    return 0;
}

static int stop_held(void **state)
{
    pthread_mutex_unlock(&pki_drain_lock);
    return stop_session(state);
}

static void let_go(void)
{
    pthread_mutex_unlock(&pki_drain_lock);
    assert_int_equal(pk_flush(), PK_OK);
    pthread_mutex_lock(&pki_drain_lock);
}

static pk_counts stop_now(void)
{
    pthread_mutex_unlock(&pki_drain_lock);
    pk_counts counts = stop_and_count();
    pthread_mutex_lock(&pki_drain_lock);
    return counts;
}

static void record(int n)
{
    for (int i = 0; i < n; i++) {
        pk_region_begin(&inner);
        pk_region_end(&inner);
    }
}

static void drops_are_counted_and_kept_in_statistics(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    record(10000);
    pk_region_end(&outer);
    uint64_t inner_sum = stats_of(&inner)->sum, buckets = 0;
    assert_true(the_stats.count == 10000 && the_stats.self == inner_sum);
    for (int i = 0; i < PK_STATS_BUCKETS; i++)
        buckets += the_stats.buckets[i];
    assert_int_equal(buckets, 10000);
    uint64_t outer_sum = stats_of(&outer)->sum;
    expect_sum(outer_sum, the_stats.self + inner_sum, 3);
    pk_counts counts = stop_now();
    assert_true(counts.begun == 10001 && counts.recorded == 63 && counts.dropped == 10001 - 63);
    assert_true(counts.unbalanced == 0 && counts.stray_ends == 0);
    assert_int_equal(count_of(&inner), 10000); /* and after the stop */
    assert_int_equal(count_of(&outer), 1);
}

/* However full it was: what is taken makes room for exactly as much. */
static void room_comes_back(void **state)
{
    uint64_t recorded = 0, begun = 0;
    (void)state;
    for (int i = 0; i < 200; i++) {
        int n = i * 37 % 100;
        record(n);
        recorded += n > 63 ? 63 : (uint64_t)n;
        begun += (uint64_t)n;
        let_go();
        pthread_mutex_unlock(&pki_drain_lock);
        pk_counts counts = counts_now();
        pthread_mutex_lock(&pki_drain_lock);
        assert_true(counts.recorded == recorded && counts.begun == begun);
        assert_int_equal(counts.dropped, begun - recorded);
    }
    assert_int_equal(count_of(&inner), begun);
}

/* Another kind of record in the very last slot: the fast path must not forget where it has to
 * stop. */
static void points_at_the_rings_end(void **state)
{
    (void)state;
    for (unsigned before = 1; before < 63; before++) {
        uint32_t at = (uint32_t)(pki_thread_head(pki_self) / sizeof(pki_record));
        record((int)(63 + 64 - at) % 64); /* up to the last slot but one */
        let_go();
        record((int)before);
        let_go();
        pk_counter_set(&counter, 1);
        record(200);
    }
    uint64_t count = count_of(&inner);
    pk_counts counts = stop_now();
    assert_int_equal(counts.begun, count);
}

static void a_point_in_the_last_slot(void **state)
{
    (void)state;
    record(63 - 1); /* the mark that joined took one */
    let_go();
    assert_int_equal(pki_thread_head(pki_self), 63 * sizeof(pki_record));
    pk_counter_set(&counter, 1);
    record(100); /* 62 find room */
    pk_counts counts = stop_now();
    assert_true(counts.recorded == 62 + 62 && counts.dropped == 38 && counts.begun == 162);
    assert_int_equal(count_of(&inner), 162);
}

/* With work a region takes two slots, in one piece, around the end of the ring too. */
static void two_slots_at_a_time(void **state)
{
    uint64_t recorded = 0;
    (void)state;
    for (int i = 0; i < 65; i++) {
        for (int k = 0; k < 40; k++) {
            pk_region_begin(&inner);
            pk_region_add(&inner, 1, 2);
            pk_region_end(&inner);
        }
        recorded += 31;
        record(1); /* the 63rd slot */
        recorded++;
        record(1);
        let_go();
    }
    stats_of(&inner);
    assert_true(the_stats.count == 65 * 42 && the_stats.bytes == 65 * 40 &&
                the_stats.flops == 2 * 65 * 40);
    pk_counts counts = stop_now();
    assert_true(counts.recorded == recorded && counts.begun == 65 * 42);
}

static void points_that_find_no_room(void **state)
{
    pki_value_stats values = {0};
    (void)state;
    record(63);
    for (int i = 1; i <= 1000; i++)
        pk_counter_set(&counter, i);
    pk_region_mark(&outer);
    for (int i = 0; i < 5; i++)
        pk_step(1);
    assert_int_equal(pk_step_stats(&the_stats), PK_OK);
    assert_int_equal(the_stats.count, 5); /* durations count all the same */
    pki_fold_lock();
    assert_true(pki_fold_values(pki_fold_now(), pki_counter_id(&counter), &values));
    pki_fold_unlock();
    assert_true(values.tally.moments.count == 1000 &&
                pki_moments_sum(&values.tally.moments) == 500500 && values.tally.moments.min == 1 &&
                values.tally.moments.max == 1000);
    assert_true(values.last == 1000);
    assert_true(fabs(pki_tally_quantile(&values.tally, 0.5) - 500) <= 5);
    pki_tally_finish(&values.tally);
    pk_counts counts = stop_now();
    assert_true(counts.points == 1 && counts.points_dropped == 1006 && counts.steps == 5);
    assert_true(counts.recorded == 63 && counts.dropped == 0);
}

/* Self time is credited to steps even if the record that says so finds no room. */
static void own_time_when_the_ring_is_full(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    spend();
    record(100);
    pk_step(0);
    spend();
    record(100);
    pk_step(0);
    pk_region_end(&outer);
    uint64_t inner_sum = stats_of(&inner)->sum;
    assert_int_equal(the_stats.self, inner_sum);
    uint64_t outer_sum = stats_of(&outer)->sum;
    expect_sum(outer_sum, the_stats.self + inner_sum, 5);
    stop_now();
}

static pki_summary summary;

static void stop_and_gather(void)
{
    stop_now();
    assert_true(pki_run_summarise(&pki_the_session, &summary));
}

/* What a report says of one thread is what the region's statistics say, drops or not. */
static void one_threads_self_time(void **state)
{
    uint64_t seen = 0;
    (void)state;
    pk_region_begin(&outer);
    for (int i = 0; i < 4; i++) {
        record(100);
        spend();
        if (i % 2)
            let_go();
        pk_step(1);
        let_go();
    }
    pk_region_end(&outer);
    stop_and_gather();
    uint64_t outer_self = stats_of(&outer)->self, inner_self = stats_of(&inner)->self;
    assert_int_equal(summary.thread_count, 1);
    for (size_t i = 0; i < summary.threads[0].region_count; i++) {
        const pki_region_row *row = &summary.threads[0].regions[i];
        expect_sum(row->self, strcmp(row->name, "outer") == 0 ? outer_self : inner_self, 1);
        seen += row->time.count;
    }
    assert_int_equal(seen, 401);
    pki_summary_finish(&summary);
}

/* Dropped regions around recorded ones, recorded ones around dropped ones: nobody's time is
 * another's. */
static void own_times_around_drops(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    for (int i = 0; i < 200; i++) {
        pk_region_begin(&middle);
        record(i * 37 % 100);
        if (i % 3 == 0)
            let_go();
        record(i * 11 % 40);
        if (i % 7 == 0)
            pk_step(1);
        pk_region_end(&middle);
        if (i % 5 == 0)
            let_go();
    }
    pk_region_end(&outer);
    uint64_t inner_sum = stats_of(&inner)->sum;
    assert_int_equal(the_stats.self, inner_sum);
    uint64_t middle_sum = stats_of(&middle)->sum;
    expect_sum(middle_sum, the_stats.self + inner_sum, 3);
    uint64_t outer_sum = stats_of(&outer)->sum;
    expect_sum(outer_sum, the_stats.self + middle_sum, 3);
    pk_counts counts = stop_now();
    assert_true(counts.dropped > 1000 && counts.recorded > 1000);
}

/* What needs two slots finds one: what needs only that is recorded, inside a region that will be
 * lost. */
static void a_small_record_behind_a_loss(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    record(62);
    pk_region_begin(&inner);
    pk_region_add(&inner, 1, 0);
    pk_region_end(&inner);
    pk_region_begin(&middle);
    spend();
    pk_region_begin(&inner);
    spend(); /* on every clock */
    pk_region_end(&inner);
    pk_region_end(&middle);
    uint64_t middle_self = stats_of(&middle)->self, middle_sum = the_stats.sum;
    assert_true(middle_self < middle_sum);
    pk_region_end(&outer);
    uint64_t inner_sum = stats_of(&inner)->sum;
    uint64_t outer_sum = stats_of(&outer)->sum;
    expect_sum(outer_sum, the_stats.self + middle_self + inner_sum, 3);
    pk_counts counts = stop_now();
    assert_true(counts.recorded == 63 && counts.dropped == 3);
}

/* Each step's breakdown is its own, complete, or not there at all. */
static void breakdowns_around_drops(void **state)
{
    static const bool known[] = {true, true, false, false, true, true};
    (void)state;
    pk_region_begin(&outer);
    for (int i = 0; i < 6; i++) {
        record(i == 2 ? 100 : 20);
        spend();
        if (i == 1) {
            record(100); /* drops, but at its end there is room to tell */
            let_go();
        }
        pk_step(1);
        if (i != 2)
            let_go();
        if (i == 2) {
            record(3);
            let_go(); /* the next one's record finds room, this one's did not */
        }
    }
    pk_region_end(&outer);
    stop_and_gather();
    assert_true(summary.steps.count == 5 && summary.counts.steps == 6);
    assert_int_equal(summary.counts.points_dropped, 1);
    size_t row = 0;
    for (int i = 0; i < 6; i++) {
        if (i == 2)
            continue; /* only its duration is known, and it has no place in the series */
        uint64_t total = 0;
        const pki_series_row *r = &summary.steps.series[row++];
        for (int k = 0; k < PKI_SHARES; k++)
            total += r->kinds[k];
        assert_int_equal(r->index, i);
        assert_int_equal(total, known[i] ? r->duration : 0);
        assert_int_equal(r->kinds[PKI_UNTRACKED] > r->duration / 2, i == 0 && known[i]);
    }
    pki_summary_finish(&summary);
}

static void not_finite(void **state)
{
    pki_value_stats values = {0};
    (void)state;
    pk_counter_set(&counter, (double)NAN);
    pk_counter_set(&counter, (double)INFINITY);
    pk_counter_set(&counter, -(double)INFINITY);
    pk_counter_set(&counter, -3);
    pki_fold_lock();
    pki_fold_all(pki_fold_now());
    assert_true(pki_fold_values(pki_fold_now(), pki_counter_id(&counter), &values));
    pki_fold_unlock();
    assert_true(values.tally.moments.count == 1 && pki_moments_sum(&values.tally.moments) == -3 &&
                values.last == -3);
    pki_tally_finish(&values.tally);
    pk_counts counts = stop_now();
    assert_true(counts.points == 2 && counts.points_dropped == 0 && counts.not_finite == 3);
}

/* A handler has recorded, a reader has folded that, and the store of whom the handler interrupted
 * undoes it: longer records come in its place, one of them across where folding goes on. */
static void what_replaces_the_undone(void **state)
{
    (void)state;
    let_go();
    pki_thread *t = pki_own;
    uint64_t before = pki_load(&t->state);
    record(3);
    assert_int_equal(count_of(&inner), 3);
    pki_store_release(&t->state, before);
    for (int i = 0; i < 4; i++) {
        pk_region_begin(&middle);
        pk_region_add(&middle, 8, 1);
        pk_region_end(&middle);
    }
    assert_int_equal(count_of(&middle), 2); /* two lie before that */
    pk_counts counts = stop_now();
    assert_int_equal(counts.recorded + counts.dropped, counts.begun);
    assert_true(counts.recorded == 5 && counts.dropped == 0 && counts.points == 1);
}

#define held(test) cmocka_unit_test_setup_teardown(test, start_held, stop_held)

int main(void)
{
    const struct CMUnitTest ring[] = {
        held(drops_are_counted_and_kept_in_statistics),
        held(room_comes_back),
        held(points_at_the_rings_end),
        held(a_point_in_the_last_slot),
        held(two_slots_at_a_time),
        held(points_that_find_no_room),
        held(own_time_when_the_ring_is_full),
        held(one_threads_self_time),
        held(own_times_around_drops),
        held(a_small_record_behind_a_loss),
        held(breakdowns_around_drops),
        held(what_replaces_the_undone),
        held(not_finite),
    };
    return both_clocks(ring);
}
