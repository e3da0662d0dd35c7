/* PK_FUNCTION: the function around it as a region, on every way out. */
#include "session.h"

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

static jmp_buf back;

static void jumps_out(void)
{
    PK_FUNCTION();
    longjmp(back, 1);
}

static void longjmp_leaves_it_open(void **state)
{
    static pk_region around = PK_REGION("around");
    (void)state;
    pk_region_begin(&around);
    if (!setjmp(back))
        jumps_out();
    pk_region_end(&around); /* closes what was left open inside */
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 2 && counts.recorded == 2 && counts.unbalanced == 1);
    assert_int_equal(calls_of("jumps_out"), 1);
}

int main(void)
{
    const struct CMUnitTest functions[] = {
        with_session(every_way_out),
        with_session(recursion_nests),
        with_session(kinds),
        with_session(longjmp_leaves_it_open),
    };
    return both_clocks(functions);
}
