/* Regions through the public API. */
#include "session.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include "core/mirror.h"
#include "core/thread.h"

/* ---- regions through the public API ---- */

/* Nesting and self time, phases, work, marks, blocks. */

static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_COMPUTE, "inner");
static pk_region third = PK_REGION_OF(PK_IO, "third");

static void own_time_is_without_the_regions_inside(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        pk_region_begin(&outer);
        spend();
        for (int k = 0; k < 3; k++) {
            pk_region_begin(&inner);
            spend();
            pk_region_begin(&third);
            spend();
            pk_region_end(&third);
            pk_region_end(&inner);
        }
        pk_region_end(&outer);
    }
    uint64_t third_sum = stats_of(&third)->sum;
    assert_true(the_stats.count == 30 && the_stats.self == third_sum);
    uint64_t inner_sum = stats_of(&inner)->sum;
    assert_int_equal(the_stats.count, 30);
    expect_sum(inner_sum, the_stats.self + third_sum, 3);
    uint64_t outer_sum = stats_of(&outer)->sum;
    assert_int_equal(the_stats.count, 10);
    expect_sum(outer_sum, the_stats.self + inner_sum, 3);
    assert_true(third_sum < inner_sum && inner_sum < outer_sum);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 70 && counts.recorded == 70 && counts.unbalanced == 0 &&
                counts.threads == 1);
}

static void statistics_hang_together(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        pk_region_begin(&inner);
        if (i % 100 == 0)
            spend();
        pk_region_end(&inner);
    }
    const pk_stats *s = stats_of(&inner);
    uint64_t total = 0;
    for (int i = 0; i < PK_STATS_BUCKETS; i++)
        total += s->buckets[i];
    assert_true(total == 1000 && s->count == 1000);
    assert_true(s->min <= pk_stats_quantile(s, 0.5) && pk_stats_quantile(s, 0.5) <= s->max);
    assert_true(s->max >= 2000 && (double)s->min <= s->mean && s->mean <= (double)s->max);
    assert_true(s->sum >= 10 * 2000 && s->stddev > 0);
    assert_int_equal(pk_stats_quantile(s, 0), s->min);
    assert_int_equal(pk_stats_quantile(s, 1), s->max);
}

static void phases_share_their_edges(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    spend();
    pk_region_begin(&inner);
    spend();
    pk_region_next(&inner, &third);
    spend();
    pk_region_next(&third, &inner);
    pk_region_end(&inner);
    for (uint32_t i = 0; i < 2; i++) { /* one clock read: where one ends the other begins */
        const pki_record *before = &pki_self->ring[i], *after = &pki_self->ring[i + 1];
        assert_int_equal(before->start + before->value, after->start);
    }
    pk_region_end(&outer);
    uint64_t inner_sum = stats_of(&inner)->sum;
    assert_int_equal(the_stats.count, 2);
    uint64_t third_sum = stats_of(&third)->sum;
    assert_int_equal(the_stats.count, 1);
    uint64_t outer_sum = stats_of(&outer)->sum;
    expect_sum(outer_sum, the_stats.self + inner_sum + third_sum, 4);
    assert_int_equal(stop_and_count().begun, 4);
}

static void next_of_what_is_not_open(void **state)
{
    (void)state;
    pk_region_mark(&outer);
    pk_region_next(&inner, &third); /* a stray end, and a begin */
    pk_region_begin(&outer);
    pk_region_next(&third, &inner); /* closes what was left open inside */
    pk_region_end(&inner);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 3 && counts.stray_ends == 1 && counts.unbalanced == 1);
    assert_true(count_of(&third) == 1 && count_of(&outer) == 1 && count_of(&inner) == 1);
}

static void work_adds_up(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    pk_region_add(&outer, 100, 0);
    pk_region_begin(&inner);
    pk_region_add(&inner, 0, 7);
    pk_region_add(&outer, 20, 1); /* around the innermost */
    pk_region_add(&inner, 3, 70);
    pk_region_add(&third, 1000000, 1000000); /* not open: nobody's */
    pk_region_end(&inner);
    pk_region_add(&outer, 5, 2);
    pk_region_end(&outer);
    pk_region_begin(&outer); /* the next call starts from zero */
    pk_region_end(&outer);
    stats_of(&outer);
    assert_true(the_stats.bytes == 125 && the_stats.flops == 3 && the_stats.count == 2);
    stats_of(&inner);
    assert_true(the_stats.bytes == 3 && the_stats.flops == 77);
    assert_int_equal(pk_region_stats(&third, &the_stats), PK_ENOENT);
    assert_int_equal(stop_and_count().begun, 3);
}

static void work_of_a_recursive_region_is_the_innermost_calls(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    pk_region_begin(&outer);
    pk_region_add(&outer, UINT64_MAX - 5, 0);
    pk_region_end(&outer);
    assert_int_equal(stats_of(&outer)->bytes, UINT64_MAX - 5);
    pk_region_add(&outer, 5, 0);
    pk_region_end(&outer);
    assert_int_equal(stats_of(&outer)->bytes, UINT64_MAX);
}

static void work_of_regions_that_others_end(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    pk_region_begin(&inner);
    pk_region_add(&inner, 11, 0);
    pk_region_end(&outer);
    pk_region_begin(&inner);
    pk_region_add(&inner, 100, 0);
    pk_region_next(&inner, &third);
    pk_region_add(&third, 1, 1);
    pk_region_begin(&inner);
    pk_region_add(&inner, 1000, 2); /* open, like the one around it, when the session ends */
    assert_int_equal(stop_and_count().unbalanced, 3);
    stats_of(&inner);
    assert_true(the_stats.bytes == 1111 && the_stats.flops == 2);
    stats_of(&third);
    assert_true(the_stats.bytes == 1 && the_stats.flops == 1);
}

static void marks_are_points(void **state)
{
    static pk_region mark = PK_REGION("mark");
    (void)state;
    pk_region_mark(&mark);
    pk_region_begin(&outer);
    pk_region_mark(&mark);
    pk_region_end(&outer);
    assert_int_equal(pk_region_stats(&mark, &the_stats), PK_ENOENT);
    pk_counts counts = stop_and_count();
    assert_true(counts.points == 2 && counts.points_dropped == 0 && counts.begun == 1);
}

static void same_name_is_one_distribution(void **state)
{
    static pk_region here = PK_REGION("outer"), other_kind = PK_REGION_OF(PK_WAIT, "outer");
    (void)state;
    pk_region_begin(&outer);
    pk_region_end(&here); /* the same region, whichever pk_region names it */
    pk_region_begin(&here);
    pk_region_end(&outer);
    pk_region_begin(pk_region_named("outer"));
    pk_region_end(&here);
    pk_region_begin(&other_kind);
    pk_region_end(&other_kind);
    assert_int_equal(count_of(&here), 3);
    assert_int_equal(count_of(&outer), 3);
    assert_int_equal(count_of(&other_kind), 1);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 4 && counts.stray_ends == 0 && counts.unbalanced == 0);
}

/* A region that is static in a header is another one in each file: begun in one, ended and added to
 * in another. */
static void a_copy_that_was_never_begun(void **state)
{
    static pk_region copy = PK_REGION("in a header"), second = PK_REGION("in a header");
    static pk_region third_copy = PK_REGION("in a header"), fourth = PK_REGION("in a header");
    (void)state;
    pk_region_begin(&copy);
    pk_region_add(&second, 5, 6);
    pk_region_next(&third_copy, &copy);
    pk_region_end(&fourth);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 2 && counts.stray_ends == 0 && counts.unbalanced == 0);
    assert_int_equal(stats_of(&copy)->bytes, 5);
}

static int leave_by_return(void)
{
    {
        PK_REGION_SCOPE(outer);
        {
            PK_REGION_SCOPE(inner);
            return 1;
        }
    }
    return 0;
}

static void blocks_close_on_every_way_out(void **state)
{
    int loops = 0;
    (void)state;
    assert_int_equal(leave_by_return(), 1);
    for (int i = 0; i < 3; i++) {
        loops++;
        {
            PK_REGION_SCOPE(inner);
            if (i == 0)
                continue;
            if (i == 2)
                break;
            loops += 10;
        }
        loops += 100;
    }
    assert_int_equal(loops, 113);
    {
        PK_REGION_SCOPE(outer);
        {
            PK_REGION_SCOPE_NAMED("named");
            goto out;
        }
    }
out:
    if (loops) {
        PK_REGION_SCOPE(third);
        loops = 0;
    } else
        fail();
    assert_int_equal(loops, 0);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 8 && counts.unbalanced == 0 && counts.stray_ends == 0);
    assert_true(count_of(&outer) == 2 && count_of(&inner) == 4 && count_of(&third) == 1);
    assert_int_equal(count_of(pk_region_named("named")), 1);
}

/* The way out of a loop is the one that the program has written. */
static int count_until(int last)
{
    int counted = 0;
    for (int i = 0; i < 10; i++) {
        PK_REGION_SCOPE(outer);
        PK_REGION_SCOPE_NAMED("declared");
        if (i % 2)
            continue;
        if (i == last)
            break;
        PK_REGION_SCOPE(inner);
        counted++;
    }
    return counted;
}

static void declared_scopes_are_no_loops(void **state)
{
    (void)state;
    assert_int_equal(count_until(4), 2);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 12 && counts.unbalanced == 0 && counts.stray_ends == 0);
    assert_true(count_of(&outer) == 5 && count_of(&inner) == 2);
    assert_int_equal(count_of(pk_region_named("declared")), 5);
}

static void the_argument_is_evaluated_once(void **state)
{
    static pk_region list[2] = {PK_REGION("list 0"), PK_REGION("list 1")};
    int i = 0;
    (void)state;
    {
        PK_REGION_SCOPE(list[i++]);
        assert_int_equal(i, 1);
    }
    assert_int_equal(i, 1);
    assert_int_equal(count_of(&list[0]), 1);
}

static void variants_are_regions_of_their_own(void **state)
{
    static pk_region attention = PK_REGION_OF(PK_COMPUTE, "attention");
    (void)state;
    for (int64_t length = 128; length <= 512; length *= 2)
        for (int64_t i = 0; i < length; i += 128) {
            PK_REGION_SCOPE(*pk_region_variant(&attention, "seq", length));
        }
    assert_int_equal(count_of(pk_region_variant(&attention, "seq", 128)), 1);
    assert_int_equal(count_of(pk_region_variant(&attention, "seq", 512)), 4);
    assert_int_equal(pk_region_stats(&attention, &the_stats), PK_ENOENT);
    assert_int_equal(the_stats.count, 0);
}

static const struct CMUnitTest regions[] = {
    with_session(own_time_is_without_the_regions_inside),
    with_session(statistics_hang_together),
    with_session(phases_share_their_edges),
    with_session(next_of_what_is_not_open),
    with_session(work_adds_up),
    with_session(work_of_a_recursive_region_is_the_innermost_calls),
    with_session(work_of_regions_that_others_end),
    with_session(marks_are_points),
    with_session(same_name_is_one_distribution),
    with_session(a_copy_that_was_never_begun),
    with_session(blocks_close_on_every_way_out),
    with_session(declared_scopes_are_no_loops),
    with_session(the_argument_is_evaluated_once),
    with_session(variants_are_regions_of_their_own),
};

/* ---- deeper than 64, and what is left open ---- */

/* Every begin and every end finds its partner or is counted. */

static pk_region depth_outer = PK_REGION("outer"), depth_inner = PK_REGION("inner"),
                 again = PK_REGION("again");
static pk_region levels[200];

static void name_levels(void)
{
    for (int i = 0; i < 200; i++)
        levels[i] = *pk_region_variant(&depth_outer, "level", i);
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
    pk_region_next(&levels[63], &again);        /* takes no more room */
    pk_region_begin(&depth_inner);              /* the 65th */
    pk_region_next(&depth_inner, &depth_outer); /* again the 65th */
    pk_region_end(&depth_outer);
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
    pk_region_begin(&depth_outer);
    pk_region_begin(&depth_inner);
    spend();
    pk_region_begin(&again);
    pk_region_end(&depth_outer); /* closes all three */
    pk_counts counts = counts_now();
    assert_true(counts.unbalanced == 2 && counts.recorded <= 3 && counts.stray_ends == 0);
    uint64_t again_sum = stats_of(&again)->sum, inner_sum = stats_of(&depth_inner)->sum;
    expect_sum(inner_sum, the_stats.self + again_sum, 2);
    uint64_t outer_sum = stats_of(&depth_outer)->sum;
    expect_sum(outer_sum, the_stats.self + inner_sum, 2);
    pk_region_end(&depth_inner); /* too late */
    counts = stop_and_count();
    assert_true(counts.begun == 3 && counts.recorded == 3 && counts.stray_ends == 1);
}

static void stray_ends(void **state)
{
    static pk_region never = PK_REGION("never begun");
    (void)state;
    pk_region_begin(&depth_outer);
    pk_region_end(&never);
    pk_region_end(&depth_inner);
    pk_region_end(&depth_outer);
    pk_region_end(&depth_outer);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 1 && counts.stray_ends == 3 && counts.unbalanced == 0);
    assert_int_equal(count_of(&depth_outer), 1);
    assert_int_equal(pk_region_stats(&never, &the_stats), PK_ENOENT);
}

static jmp_buf back;

static void jump_out(void)
{
    pk_region_begin(&depth_inner);
    pk_region_begin(&again);
    longjmp(back, 1);
}

static void longjmp_over_open_regions(void **state)
{
    (void)state;
    for (volatile int i = 0; i < 100; i++) { /* again and again: nothing piles up */
        pk_region_begin(&depth_outer);
        if (setjmp(back) == 0)
            jump_out();
        pk_region_end(&depth_outer);
    }
    assert_true(count_of(&depth_outer) == 100 && count_of(&depth_inner) == 100 &&
                count_of(&again) == 100);
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
    assert_int_equal(count_of(&depth_inner) + count_of(&again), 64);
}

static void open_at_the_stop(void **state)
{
    (void)state;
    pk_region_begin(&depth_outer);
    spend();
    pk_region_begin(&depth_inner);
    spend();
    pk_counts counts = counts_now();
    assert_true(counts.begun == 2 && counts.recorded == 0);
    counts = stop_and_count();
    assert_true(counts.recorded == 2 && counts.unbalanced == 2);
    uint64_t inner_sum = stats_of(&depth_inner)->sum;
    assert_int_equal(the_stats.self, inner_sum);
    uint64_t outer_sum = stats_of(&depth_outer)->sum;
    expect_sum(outer_sum, the_stats.self + inner_sum, 2);
    pk_region_end(&depth_inner); /* of a session that is over: nobody minds */
    pk_region_end(&depth_outer);
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

static const struct CMUnitTest depth_depth[] = {
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

/* ---- PK_FUNCTION ---- */

/* The function around it as a region, on every way out. */

static uint64_t calls_of(const char *name)
{
    return count_of(pk_region_named(name));
}

static int returns_early(int n)
{
    PK_FUNCTION();
    if (n == 0)
        return -1;
    for (int i = 0; i < 10; i++) {
        if (i == 1)
            continue;
        if (i == n)
            break; /* out of the loop: the region is the function */
        spend();
    }
    return n;
}

static void every_way_out(void **state)
{
    (void)state;
    assert_int_equal(returns_early(0), -1);
    assert_int_equal(returns_early(3), 3);
    assert_int_equal(returns_early(20), 20);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 3 && counts.unbalanced == 0 && counts.stray_ends == 0);
    assert_int_equal(calls_of("returns_early"), 3);
    assert_true(the_stats.max >= 9 * 2000);
}

static int recursive(int depth)
{
    PK_FUNCTION();
    return depth > 0 ? 1 + recursive(depth - 1) : 0;
}

static void recursion_nests(void **state)
{
    (void)state;
    assert_int_equal(recursive(9), 9);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 10 && counts.unbalanced == 0);
    assert_int_equal(calls_of("recursive"), 10);
    assert_int_equal(the_stats.self, the_stats.max); /* the outermost call holds all the others */
}

static void of_a_kind(void)
{
    PK_FUNCTION_OF(PK_DATA);
    PK_REGION_SCOPE_NAMED("beside it");
}

static void kinds(void **state)
{
    (void)state;
    of_a_kind();
    assert_int_equal(count_of(pk_region_named_of(PK_DATA, "of_a_kind")), 1);
    assert_int_equal(calls_of("beside it"), 1);
    assert_int_equal(pk_region_stats(pk_region_named("of_a_kind"), &the_stats), PK_ENOENT);
}

static jmp_buf function_back;

static void jumps_out(void)
{
    PK_FUNCTION();
    longjmp(function_back, 1);
}

static void longjmp_leaves_it_open(void **state)
{
    static pk_region around = PK_REGION("around");
    (void)state;
    pk_region_begin(&around);
    if (!setjmp(function_back))
        jumps_out();
    pk_region_end(&around); /* closes what was left open inside */
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 2 && counts.recorded == 2 && counts.unbalanced == 1);
    assert_int_equal(calls_of("jumps_out"), 1);
}

static const struct CMUnitTest functions[] = {
    with_session(every_way_out),
    with_session(recursion_nests),
    with_session(kinds),
    with_session(longjmp_leaves_it_open),
};

/* ---- mirrors ---- */

/* Every begin that they are told of has its end, in order, whatever closes the region. */

static pk_region mirror_outer = PK_REGION("outer"), mirror_inner = PK_REGION("inner"),
                 echo = PK_REGION("echo");

enum { MOST = 256 };
static _Thread_local uint32_t open_ids[MOST];
static _Thread_local unsigned open_count, told, marks, wrong;
static _Thread_local uint64_t bytes;
static _Thread_local bool mirror_recursive, inside;
static unsigned others_left; /* of threads that have ended */

static void hear_begin(uint32_t id, unsigned depth)
{
    if (depth == 0 && !inside)
        open_count = 0;
    wrong += depth < open_count && !inside; /* within, the outer one is not open yet */
    open_ids[open_count++] = id;
    told++;
    if (mirror_recursive && !inside) {
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
    mirror_recursive = false;
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
        pk_region_begin(&mirror_outer);
        pk_region_begin(&mirror_inner);
        pk_region_add(&mirror_inner, 7, 1);
        pk_region_next(&mirror_inner, &echo);
        pk_region_mark(&mirror_outer);
        pk_region_end(&echo);
        pk_region_end(&mirror_outer);
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
    pk_region_begin(&mirror_outer);
    pk_region_add(&mirror_outer, 5, 0);
    pki_mirrors_open(mirrors, 1);
    pk_region_begin(&mirror_inner);
    pk_region_end(&mirror_inner);
    pk_region_end(&mirror_outer);
    assert_int_equal(told, 1);
    assert_int_equal(bytes, 0);
    assert_int_equal(wrong + open_count, 0);
}

static void closed_by_others(void **state)
{
    (void)state;
    pk_region_begin(&mirror_outer);
    pk_region_begin(&mirror_inner);
    pk_region_begin(&echo);
    pk_region_end(&mirror_outer);
    assert_int_equal(told, 3);
    assert_int_equal(wrong + open_count, 0);
    assert_int_equal(stop_and_count().unbalanced, 2);
}

static void too_deep(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        pk_region_begin(&mirror_inner);
    for (int i = 0; i < 100; i++)
        pk_region_end(&mirror_inner);
    assert_int_equal(told, PKI_DEPTH_MAX);
    assert_int_equal(wrong + open_count, 0);
    assert_int_equal(stop_and_count().too_deep, 36);
}

/* A tool may use perfkit itself. */
static void from_within(void **state)
{
    (void)state;
    mirror_recursive = true;
    pk_region_begin(&mirror_outer);
    pk_region_end(&mirror_outer);
    assert_int_equal(told, 2);
    assert_int_equal(wrong + open_count, 0);
    assert_int_equal(stop_and_count().recorded, 2);
}

static void *leave_open(void *unused)
{
    pk_region_begin(&mirror_outer);
    pk_region_begin(&mirror_inner);
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
    pk_region_end(&mirror_inner);
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
    pk_region_begin(&mirror_outer);
    pki_mirrors_close();
    pk_region_begin(&mirror_inner);
    pk_region_end(&mirror_inner);
    pk_region_end(&mirror_outer);
    assert_int_equal(told, 1);
    assert_int_equal(stop_and_count().recorded, 2);
}

static const struct CMUnitTest mirror_tests[] = {
    cmocka_unit_test_setup_teardown(pairs, start, stop),
    cmocka_unit_test_setup_teardown(begun_before, start, stop),
    cmocka_unit_test_setup_teardown(closed_by_others, start, stop),
    cmocka_unit_test_setup_teardown(too_deep, start, stop),
    cmocka_unit_test_setup_teardown(from_within, start, stop),
    cmocka_unit_test_setup_teardown(closed_at_exit, start, stop),
    cmocka_unit_test_setup_teardown(open_at_stop, start, stop),
    cmocka_unit_test_setup_teardown(nobody_after_the_close, start, stop),
};

int main(void)
{
    int failed = both_clocks(regions);
    failed += both_clocks(depth_depth);
    failed += both_clocks(functions);
    failed += both_clocks(mirror_tests);
    return failed;
}
