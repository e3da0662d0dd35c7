/* Each file of the command line loaded with the n-th allocation failing, for every n: a summary or
 * a reason. */
#include "failing_memory.h"
#include "read/json_read.h"
#include "load/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static int files;
static char **paths;

typedef void failing(long n);

static bool run(const char *path, failing *way, long n)
{
    pki_summary summary;
    complaint why = {""};
    way(n);
    bool loaded = load_run(path, &(load_options){.per_thread = true}, &summary, &why);
    bool failed = memory_has_failed();
    memory_fails_after(-1);
    assert_true(loaded == !why.text[0]);
    if (!failed && !loaded)
        fail_msg("%s: %s", path, why.text);
    if (loaded)
        pki_summary_finish(&summary);
    return failed;
}

static void sweep(const char *path, failing *way)
{
    long n = 0;
    while (run(path, way, n))
        n++;
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

/* A small file can be a large tree: what jansson may take is bounded. */
static void memory_is_bounded(void **state)
{
    (void)state;
    pki_summary summary;
    complaint why = {""};
    json_limit_memory(2000);
    assert_false(load_run(paths[0], &(load_options){0}, &summary, &why));
    assert_string_equal(why.text, "is too large to be read whole (only traces with one event per"
                                  " line are read piece by piece)");
}

int main(int argc, char **argv)
{
    files = argc - 1;
    paths = argv + 1;
    json_limit_memory((size_t)1 << 30);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(memory_is_bounded),
    };
    return files ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
