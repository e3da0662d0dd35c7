/* Two files of the command line loaded, compared and taken into another with the n-th allocation
 * failing, for every n: a comparison or a reason. */
#include "bench/compare/compare.h"
#include "failing_memory.h"
#include "read/json_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static char **paths;

typedef void failing(long n);

static bool compare(const bench_file *old, const bench_file *fresh, complaint *why)
{
    const compare_options options = {COMPARE_THRESHOLD, COMPARE_ALPHA, COMPARE_MOMENTS, false,
                                     false};
    comparison c;
    if (!compare_files(&old, 1, fresh, &options, &c, why))
        return false;
    comparison_finish(&c);
    return true;
}

static bool compare_and_take(bench_file *old, bench_file *fresh, complaint *why)
{
    bench_file all;
    if (!compare(old, fresh, why))
        return false;
    bool fits = bench_file_init(&all, "all") && bench_file_append(&all, fresh, "id", 1);
    bench_file_finish(&all);
    return fits || complaint_set(why, "out of memory");
}

static bool load_both(complaint *why)
{
    bench_file old, fresh;
    if (!bench_file_load(&old, paths[0], why))
        return false;
    bool loaded = bench_file_load(&fresh, paths[1], why);
    bool done = loaded && compare_and_take(&old, &fresh, why);
    if (loaded)
        bench_file_finish(&fresh);
    bench_file_finish(&old);
    return done;
}

static bool run(failing *way, long n)
{
    complaint why = {""};
    way(n);
    bool done = load_both(&why);
    bool failed = memory_has_failed();
    memory_fails_after(-1);
    assert_true(done == !why.text[0]);
    if (!failed && !done)
        fail_msg("%s", why.text);
    return failed;
}

static void every_allocation_may_fail(void **state)
{
    static failing *const ways[] = {memory_fails_after, memory_fails_once};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        long n = 0;
        while (run(ways[i], n))
            n++;
        assert_in_range(n, 100, 100000);
    }
}

int main(int argc, char **argv)
{
    paths = argv + 1;
    json_limit_memory((size_t)1 << 30);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return argc == 3 ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
