/* Regions through the public API: nesting and self time, phases, work, marks, blocks. */
#include "session.h"

#include "core/thread.h"

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
    PK_SCOPE(outer) {
        PK_SCOPE(inner) {
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
        PK_SCOPE(inner) {
            if (i == 0)
                continue; /* leaves the block, not the loop */
            if (i == 1)
                break;
            loops += 10;
        }
        loops += 100;
    }
    assert_int_equal(loops, 313);
    PK_SCOPE(outer)
        PK_SCOPE_NAMED("named") {
            goto out;
        }
out:
    if (loops)
        PK_SCOPE(third)
            loops = 0;
    else
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
    PK_SCOPE(list[i++]) {
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
        for (int64_t i = 0; i < length; i += 128)
            PK_SCOPE(*pk_region_variant(&attention, "seq", length)) {
            }
    assert_int_equal(count_of(pk_region_variant(&attention, "seq", 128)), 1);
    assert_int_equal(count_of(pk_region_variant(&attention, "seq", 512)), 4);
    assert_int_equal(pk_region_stats(&attention, &the_stats), PK_ENOENT);
    assert_int_equal(the_stats.count, 0);
}

int main(void)
{
    const struct CMUnitTest regions[] = {
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
    return both_clocks(regions);
}
