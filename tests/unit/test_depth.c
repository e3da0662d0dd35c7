/* Deeper than 64, and what is left open: every begin and every end finds its partner or is
 * counted. */
#include "session.h"

#include <setjmp.h>
#include <string.h>

#include "core/thread.h"

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner"), again = PK_REGION("again");
static pk_region levels[200];

static void name_levels(void)
{
    for (int i = 0; i < 200; i++)
        levels[i] = *pk_region_variant(&outer, "level", i);
}

static void descend(int from, int to)
{
    for (int i = from; i < to; i++)
        pk_region_begin(&levels[i]);
}

static void ascend(int from, int to)
{
    for (int i = from; i-- > to;)
        pk_region_end(&levels[i]);
}

static void sixty_four_levels(void **state)
{
    (void)state;
    name_levels();
    for (int round = 0; round < 3; round++) {
        descend(0, 64);
        ascend(64, 0);
    }
    for (int i = 0; i < 64; i++)
        assert_int_equal(count_of(&levels[i]), 3);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 3 * 64 && counts.recorded == 3 * 64 && counts.too_deep == 0);
    assert_true(counts.unbalanced == 0 && counts.stray_ends == 0 && counts.dropped == 0);
}

static void beyond_is_counted_and_its_ends_are_known(void **state)
{
    static const int depths[] = {65, 66, 100, 128, 129, 200};
    uint64_t too_deep = 0, begun = 0;
    (void)state;
    name_levels();
    for (size_t k = 0; k < sizeof depths / sizeof *depths; k++) {
        descend(0, depths[k]);
        ascend(depths[k], 0);
        too_deep += (uint64_t)depths[k] - 64;
        begun += (uint64_t)depths[k];
        pk_counts counts = counts_now();
        assert_true(counts.too_deep == too_deep && counts.dropped == too_deep &&
                    counts.begun == begun);
    }
    pk_region_begin(&again); /* and all is as before */
    pk_region_end(&again);
    assert_int_equal(count_of(&levels[63]), 6);
    assert_int_equal(pk_region_stats(&levels[64], &the_stats), PK_ENOENT);
    pk_counts counts = stop_and_count();
    assert_true(counts.stray_ends == 0 && counts.unbalanced == 0 && counts.recorded == 6 * 64 + 1);
}

static void recursion(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++)
        pk_region_begin(&again);
    for (int i = 0; i < 200; i++)
        pk_region_end(&again);
    assert_int_equal(count_of(&again), 64);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 200 && counts.too_deep == 136 && counts.recorded == 64);
    assert_true(counts.stray_ends == 0 && counts.unbalanced == 0);
}

/* Up and down around the limit: each end is its own begin's. */
static void around_the_limit(void **state)
{
    (void)state;
    name_levels();
    descend(0, 62);
    for (int i = 0; i < 50; i++) {
        descend(62, 67);
        pk_region_begin(&again);
        pk_region_end(&again);
        ascend(67, 63);
        descend(63, 66);
        ascend(66, 62);
    }
    ascend(62, 0);
    assert_int_equal(count_of(&levels[62]), 50);
    assert_int_equal(count_of(&levels[63]), 100);
    pk_counts counts = stop_and_count();
    assert_true(counts.too_deep == 50 * (3 + 1 + 2) && counts.stray_ends == 0 &&
                counts.unbalanced == 0);
}

static void time_too_deep_is_the_64ths(void **state)
{
    (void)state;
    name_levels();
    descend(0, 64);
    pk_region_begin(&again);
    spend();
    pk_region_end(&again);
    ascend(64, 0);
    const pk_stats *s = stats_of(&levels[63]);
    assert_true(s->self == s->sum && s->sum >= SPENT_NS);
}

static void next_at_the_limit(void **state)
{
    (void)state;
    name_levels();
    descend(0, 64);
    pk_region_next(&levels[63], &again); /* takes no more room */
    pk_region_begin(&inner);             /* the 65th */
    pk_region_next(&inner, &outer);      /* again the 65th */
    pk_region_end(&outer);
    pk_region_end(&again);
    ascend(63, 0);
    assert_true(count_of(&levels[63]) == 1 && count_of(&again) == 1);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 67 && counts.too_deep == 2 && counts.recorded == 65);
    assert_true(counts.stray_ends == 0 && counts.unbalanced == 0);
}

static void an_outer_end_closes_what_is_too_deep_as_well(void **state)
{
    (void)state;
    name_levels();
    descend(0, 70);
    pk_region_end(&levels[9]); /* 54 above it, and six that were only counted */
    pk_counts counts = counts_now();
    assert_true(counts.unbalanced == 54 && counts.too_deep == 6);
    pk_region_begin(&again);
    pk_region_end(&again);
    ascend(9, 0);
    assert_int_equal(count_of(&again), 1);
    counts = stop_and_count();
    assert_true(counts.begun == 71 && counts.recorded == 65 && counts.stray_ends == 0);
    assert_int_equal(counts.unbalanced, 54);
}

static void a_too_deep_end_closes_those_above_it(void **state)
{
    (void)state;
    name_levels();
    descend(0, 70);
    pk_region_end(&levels[66]); /* and with it 67 to 69 */
    assert_int_equal(pki_self->over, 2);
    pk_region_end(&levels[65]);
    pk_region_end(&levels[64]);
    ascend(64, 0);
    pk_counts counts = stop_and_count();
    assert_true(counts.stray_ends == 0 && counts.unbalanced == 0 && counts.recorded == 64);
}

static void unbalanced_ends(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    pk_region_begin(&inner);
    spend();
    pk_region_begin(&again);
    pk_region_end(&outer); /* closes all three */
    pk_counts counts = counts_now();
    assert_true(counts.unbalanced == 2 && counts.recorded <= 3 && counts.stray_ends == 0);
    uint64_t again_sum = stats_of(&again)->sum, inner_sum = stats_of(&inner)->sum;
    expect_sum(inner_sum, the_stats.self + again_sum, 2);
    uint64_t outer_sum = stats_of(&outer)->sum;
    expect_sum(outer_sum, the_stats.self + inner_sum, 2);
    pk_region_end(&inner); /* too late */
    counts = stop_and_count();
    assert_true(counts.begun == 3 && counts.recorded == 3 && counts.stray_ends == 1);
}

static void stray_ends(void **state)
{
    static pk_region never = PK_REGION("never begun");
    (void)state;
    pk_region_begin(&outer);
    pk_region_end(&never);
    pk_region_end(&inner);
    pk_region_end(&outer);
    pk_region_end(&outer);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 1 && counts.stray_ends == 3 && counts.unbalanced == 0);
    assert_int_equal(count_of(&outer), 1);
    assert_int_equal(pk_region_stats(&never, &the_stats), PK_ENOENT);
}

static jmp_buf back;

static void jump_out(void)
{
    pk_region_begin(&inner);
    pk_region_begin(&again);
    longjmp(back, 1);
}

static void longjmp_over_open_regions(void **state)
{
    (void)state;
    for (volatile int i = 0; i < 100; i++) { /* again and again: nothing piles up */
        pk_region_begin(&outer);
        if (setjmp(back) == 0)
            jump_out();
        pk_region_end(&outer);
    }
    assert_true(count_of(&outer) == 100 && count_of(&inner) == 100 && count_of(&again) == 100);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 300 && counts.unbalanced == 200 && counts.too_deep == 0);
}

/* Without a region around it that ends, what longjmp leaves open is closed by pk_stop. */
static void longjmp_with_nothing_around(void **state)
{
    (void)state;
    for (volatile int i = 0; i < 40; i++)
        if (setjmp(back) == 0)
            jump_out();
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 80 && counts.too_deep == 16 && counts.unbalanced == 64);
    assert_int_equal(count_of(&inner) + count_of(&again), 64);
}

static void open_at_the_stop(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    spend();
    pk_region_begin(&inner);
    spend();
    pk_counts counts = counts_now();
    assert_true(counts.begun == 2 && counts.recorded == 0);
    counts = stop_and_count();
    assert_true(counts.recorded == 2 && counts.unbalanced == 2);
    uint64_t inner_sum = stats_of(&inner)->sum;
    assert_int_equal(the_stats.self, inner_sum);
    uint64_t outer_sum = stats_of(&outer)->sum;
    expect_sum(outer_sum, the_stats.self + inner_sum, 2);
    pk_region_end(&inner); /* of a session that is over: nobody minds */
    pk_region_end(&outer);
    assert_int_equal(counts_now().stray_ends, 0);
}

/* Counters that advance in steps are a tick off now and then. */
static void beginnings_in_one_nanosecond(void **state)
{
    pki_frame frames[] = {{.start = UINT64_MAX},
                          {.start = 100},
                          {.start = 100 + PKI_TICKS_IN_NS},
                          {.start = 100 + 2 * PKI_TICKS_IN_NS},
                          {.start = 101 + 3 * PKI_TICKS_IN_NS}};
    static const unsigned ties[] = {0, 0, 1, 2, 0};
    (void)state;
    for (unsigned i = 1; i < 5; i++)
        assert_int_equal(pki_count_ties(&frames[i]), ties[i]);
}

int main(void)
{
    const struct CMUnitTest depth[] = {
        cmocka_unit_test(beginnings_in_one_nanosecond),
        with_session(sixty_four_levels),
        with_session(beyond_is_counted_and_its_ends_are_known),
        with_session(recursion),
        with_session(around_the_limit),
        with_session(time_too_deep_is_the_64ths),
        with_session(next_at_the_limit),
        with_session(an_outer_end_closes_what_is_too_deep_as_well),
        with_session(a_too_deep_end_closes_those_above_it),
        with_session(unbalanced_ends),
        with_session(stray_ends),
        with_session(longjmp_over_open_regions),
        with_session(longjmp_with_nothing_around),
        with_session(open_at_the_stop),
    };
    return both_clocks(depth);
}
