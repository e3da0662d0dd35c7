/* Each file of the command line as rows, and these in order, with the n-th allocation failing: all
 * of it, a reason, or the command's end. */
#include "ending.h"
#include "read/json.h"
#include "rows/rows.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int files;
static char **paths;

static bool read_and_order(const void *path)
{
    rows_wish wish = {.lenient = true};
    order_by by = {.of = ROWS_CALLS, .count = 2, .columns = {6, 0}, .descending = {true, false}};
    complaint why = {""};
    order o = {.count = 0};
    for (unsigned of = 0; of < ROWS_TABLES; of++)
        wish.columns[of] = ROWS_ALL;
    rows *r = rows_create(&wish);
    bool added = rows_add_file(r, path, false, &why);
    bool right = added == !why.text[0] && (added || memory_has_failed()) &&
                 (!added || (order_make(&o, r, &by) && rows_count(r, ROWS_FILES) == 1));
    order_finish(&o);
    rows_destroy(r);
    return right;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int i = 0; i < files; i++)
        assert_in_range(sweep_memory(memory_fails_after, read_and_order, paths[i], i == 0), 50,
                        100000);
    for (int i = 0; i < files; i++) {
        assert_in_range(sweep_memory(memory_fails_once, read_and_order, paths[i], i == 0), 50,
                        100000);
        assert_true(read_and_order(paths[i])); /* here, where a leak would be seen */
    }
}

int main(int argc, char **argv)
{
    files = argc - 1;
    paths = argv + 1;
    json_limit_memory((size_t)1 << 30);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return files ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
