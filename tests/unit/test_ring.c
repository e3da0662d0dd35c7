/* Rings that are full, and that are left and come back to. */
#include "spares.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "core/ring.h"
#include "core/registry.h"
#include "measure/fold/fold.h"
#include "session/report/run.h"

/* ---- a ring that is full ---- */

/* What it drops is counted, and no statistic misses it.
 *
 * The tests hold the lock under which the collector takes records, so that nothing is taken but at
 * their word. A ring of 64 records holds 63. */

static pk_region outer = PK_REGION("outer"), middle = PK_REGION("middle"),
                 inner = PK_REGION("inner");
static pk_counter counter = PK_COUNTER("level", "");

static int start_held(void **state)
{
    (void)state;
    if (pk_start(pk_options(.backends = "none",
                            .tuning = kit_tuning("clock=%s,ring_records=64,report_threads=1",
                                                 the_clock))))
        return -1;
    pk_region_mark(&outer); /* joins */
    pk_flush();
    pthread_mutex_lock(&pki_drain_lock);
    return 0;
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

static const struct CMUnitTest ring[] = {
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

/* ---- what a handler has recorded, and the store behind it has undone ---- */

/* What a handler that has interrupted the fast path has recorded, and the store of `state` behind
 * it has undone, as a ring is left or come back to: what was folded is not folded again, and what
 * follows is. The store is made by hand. */

enum { SLOT = sizeof(pki_record) };

static pk_region undone_inner = PK_REGION("inner");

static int undone_start_held(void **state)
{
    (void)state;
    return start_with_spares(NULL, 3);
}

static void undone_record(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pk_region_begin(&undone_inner);
        pk_region_end(&undone_inner);
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
    undone_record(50 - at);
    let_go();
    undone_record(10);
    uint64_t before = pki_load(&t->state);
    undone_record(10);
    let_go();
    assert_true(t->released == pki_cursor_of(turn, 6 * SLOT) && t->folded == t->released);
    go_on_from(t, before);
    undone_record(3 + 5); /* up to the ring's end, and to what passes for the last free slot */
    assert_false(pki_is_in_segment(t));
    undone_record(4);
    assert_true(pki_is_in_segment(t));
    assert_int_equal(pki_turn_at(t, turn)->end, 5 * SLOT);
    assert_int_equal(count_of(&undone_inner), 50 - at + 20 + 4);
    assert_int_equal(pki_turn_at(t, turn)->end, 6 * SLOT); /* for who takes records, too */
    let_go();
    assert_true(pki_load(&pki_the_session.fullest) < HOLDS);
    undone_record(HOLDS);
    let_go();
    assert_int_equal(count_of(&undone_inner), 50 - at + 24 + HOLDS);
    assert_int_equal(stop_now().dropped, 0);
}

/* From far into a segment the handler has come back to the ring's start: what lies between is no
 * record. */
static void a_ring_come_back_to_in_its_middle(void **state)
{
    pki_thread *t = pki_own;
    (void)state;
    undone_record(HOLDS + 45);
    uint32_t turn = t->turn;
    uint64_t before = pki_load(&t->state);
    unsigned all = HOLDS + 45;
    assert_true(before >> 32 > RING / 2 * SLOT);
    let_go();
    undone_record(10);
    all += 10;
    assert_int_equal(t->turn, turn + 1);
    assert_false(pki_is_in_segment(t));
    assert_int_equal(count_of(&undone_inner), all);
    go_on_from(t, before);
    undone_record(10);
    all += 10;
    assert_int_equal(count_of(&undone_inner), all);
    for (int i = 0; i < 20; i++) {
        let_go();
        undone_record(30);
        all += 30;
    }
    assert_int_equal(count_of(&undone_inner), all);
    assert_int_equal(stop_now().dropped, 0);
}

/* -- without a segment -- */

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
    undone_record((from + RING - slot_of(pki_load(&t->state))) % RING);
    let_go();
    uint64_t before = pki_load(&t->state), dropped = t->dropped;
    undone_record(10);
    let_go();
    assert_int_equal(pki_cursor_offset(t->released), (from + 10) % RING * SLOT);
    go_on_from(t, before);
    t->stop = 0; /* it looks, as it does each eighth of a ring */
    undone_record(10 - 1 - by);
    assert_int_equal(t->dropped, dropped);
    undone_record(20); /* some of them as readers are told of it */
    uint64_t some = t->dropped - dropped;
    assert_true(some >= 20 - by);
    let_go();
    for (int i = 0; i < 5; i++) {
        undone_record(40);
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
    assert_true(count_of(&undone_inner) > 10 * 200);
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
    undone_record(30);
    let_go();
    uint64_t before = pki_load(&t->state);
    undone_record(10);
    let_go();
    go_on_from(t, before);
    undone_record(2);
    let_go(); /* told */
    assert_true(t->undone_turn == t->turn && t->undone_until > 0);
    undone_record(7 + HOLDS);
    assert_int_equal(t->dropped, 0);
    undone_record(5);
    assert_int_equal(t->dropped, 5);
    let_go();
    undone_record(10);
    assert_int_equal(t->dropped, 5);
    stop_now();
}

#define alone(test) cmocka_unit_test_setup_teardown(test, start_alone, stop_held)
#define undone_held(test) cmocka_unit_test_setup_teardown(test, undone_start_held, stop_held)

static const struct CMUnitTest undone[] = {
    undone_held(a_ring_that_is_left_behind_readers),
    undone_held(a_ring_come_back_to_in_its_middle),
    alone(a_ring_that_is_short_of_readers),
    alone(and_across_its_end),
    alone(a_full_ring_behind_readers),
};

/* ---- a segment that a thread has left is kept for it while a store of it may still come ---- */

/* Nobody else has it. */

enum { SEGMENTS = 3 };

static pk_region spare_kept_outer = PK_REGION("outer"), spare_kept_middle = PK_REGION("middle"),
                 spare_kept_inner = PK_REGION("inner");

static int spare_kept_start_held(void **state)
{
    (void)state;
    return start_with_spares(NULL, SEGMENTS);
}

static void spare_kept_record(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pk_region_begin(&spare_kept_inner);
        pk_region_end(&spare_kept_inner);
    }
}

static void *record_much(void *times)
{
    spare_kept_record(*(unsigned *)times);
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
    spare_kept_record(HOLDS);
    assert_false(pki_is_in_segment(pki_own));
    let_go();
}

/* A store that a handler has interrupted may still come, into the segment that was left. */
static void one_is_kept_while_a_region_is_open(void **state)
{
    (void)state;
    pk_region_begin(&spare_kept_outer);
    spare_kept_record(3 * HOLDS);
    come_home();
    expect_kept(2);
    pk_region_begin(&spare_kept_middle);
    spare_kept_record(3 * HOLDS); /* the same ones */
    come_home();
    expect_kept(2);
    pk_region_end(&spare_kept_middle);
    let_go();
    expect_kept(2);
    pk_region_end(&spare_kept_outer);
    let_go();
    expect_kept(0);
    spare_kept_record(3 * HOLDS);
    come_home();
    expect_kept(0);
    assert_int_equal(pki_own->dropped, 0);
    stop_now();
}

static void until_another_one_is(void **state)
{
    (void)state;
    pk_region_begin(&spare_kept_outer);
    spare_kept_record(2 * HOLDS);
    come_home();
    expect_kept(1);
    pk_region_end(&spare_kept_outer);
    spend();
    pk_region_begin(&spare_kept_outer);
    let_go();
    expect_kept(0);
    pk_region_end(&spare_kept_outer);
    stop_now();
}

/* Given back to the system, it is still that one's. */
static void one_is_kept_without_memory(void **state)
{
    const uint32_t bytes = RING * sizeof(pki_record);
    (void)state;
    pk_region_begin(&spare_kept_outer);
    spare_kept_record(2 * HOLDS);
    come_home();
    for (int i = 0; i < SEGMENTS; i++)
        assert_true(pki_spare_unmake(the_spares(), pki_the_session.arena, bytes));
    assert_int_equal(pki_spares_there(the_spares()), 0);
    for (int i = 0; i < SEGMENTS; i++)
        assert_true(make_one());
    expect_kept(1);
    pk_region_end(&spare_kept_outer);
    stop_now();
}

#define spare_kept_held(test)                                                                      \
    cmocka_unit_test_setup_teardown(test, spare_kept_start_held, stop_held)

static const struct CMUnitTest kept[] = {
    spare_kept_held(one_is_kept_while_a_region_is_open),
    spare_kept_held(until_another_one_is),
    spare_kept_held(one_is_kept_without_memory),
};

int main(void)
{
    int failed = both_clocks(ring);
    failed += both_clocks(undone);
    failed += both_clocks(kept);
    return failed;
}
