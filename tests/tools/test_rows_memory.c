/* Each file of the command line as rows, and these in order, with the n-th allocation failing, for
 * every n up to 100 and ever fewer beyond: all of it or a reason. */
#include "failing_memory.h"
#include "read/json_read.h"
#include "rows/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static int files;
static char **paths;

typedef void failing(long n);

static bool order_all(rows *r)
{
    order o;
    order_by by = {.of = ROWS_CALLS, .count = 2, .columns = {6, 0}, .descending = {true, false}};
    bool made = order_make(&o, r, &by);
    if (made)
        order_finish(&o);
    return made;
}

/* Has an allocation failed? */
static bool run(const char *path, failing *way, long n)
{
    rows_wish wish = {.lenient = true};
    complaint why = {""};
    for (unsigned of = 0; of < ROWS_TABLES; of++)
        wish.columns[of] = ROWS_ALL;
    way(n);
    rows *r = rows_create(&wish);
    bool added = r && rows_add_file(r, path, false, &why);
    bool ordered = added && order_all(r);
    bool failed = memory_has_failed();
    memory_fails_after(-1);
    assert_true(!r || added == !why.text[0]);
    assert_true(failed || ordered);
    assert_true(!added || rows_count(r, ROWS_FILES) == 1);
    rows_destroy(r);
    return failed;
}

static void sweep(const char *path, failing *way)
{
    long n = 0;
    while (run(path, way, n))
        n += 1 + n / 100;
    assert_in_range(n, 50, 100000);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int i = 0; i < files; i++) {
        sweep(paths[i], memory_fails_after);
        sweep(paths[i], memory_fails_once);
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
