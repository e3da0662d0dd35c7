/* Two files of the command line loaded, compared and taken into another with the n-th allocation
 * failing: a comparison, a reason, or the command's end. */
#include "compare/compare.h"
#include "ending.h"
#include "read/json.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static char **paths;

static bool compare_and_take(bench_file *old, bench_file *fresh)
{
    const compare_options options = {COMPARE_THRESHOLD, COMPARE_ALPHA, COMPARE_MOMENTS, false,
                                     false};
    const bench_file *olds[] = {old};
    complaint why = {""};
    comparison c;
    bench_file all;
    bool compared = compare_files(olds, 1, fresh, &options, &c, &why);
    if (compared)
        comparison_finish(&c);
    bench_file_init(&all, "all");
    bench_file_append(&all, fresh, "id", 1);
    bench_file_finish(&all);
    return compared;
}

static bool load_and_compare(const void *of)
{
    char *const *both = of;
    bench_file old, fresh;
    complaint why = {""};
    if (!bench_file_load(&old, both[0], &why))
        return why.text[0] && memory_has_failed();
    bool loaded = bench_file_load(&fresh, both[1], &why);
    bool compared = loaded && compare_and_take(&old, &fresh);
    if (loaded)
        bench_file_finish(&fresh);
    bench_file_finish(&old);
    return loaded == !why.text[0] && (compared || memory_has_failed());
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    assert_in_range(sweep_memory(memory_fails_after, load_and_compare, paths, true), 100, 100000);
    assert_in_range(sweep_memory(memory_fails_once, load_and_compare, paths, true), 100, 100000);
    assert_true(load_and_compare(paths)); /* here, where a leak would be seen */
}

int main(int argc, char **argv)
{
    paths = argv + 1;
    json_limit_memory((size_t)1 << 30);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return argc == 3 ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
