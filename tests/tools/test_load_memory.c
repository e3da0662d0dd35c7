/* Each file of the command line loaded with the n-th allocation failing: a summary, a reason, or
 * the command's end. */
#include "ending.h"
#include "read/json.h"
#include "load/load.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int files;
static char **paths;

static bool load(const void *path)
{
    pki_summary summary;
    complaint why = {""};
    bool loaded = load_run(path, &(load_options){.per_thread = true}, &summary, &why);
    if (loaded)
        pki_summary_finish(&summary);
    return loaded == !why.text[0] && (loaded || memory_has_failed());
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int i = 0; i < files; i++)
        assert_in_range(sweep_memory(memory_fails_after, load, paths[i], i == 0), 50, 100000);
    for (int i = 0; i < files; i++) {
        assert_in_range(sweep_memory(memory_fails_once, load, paths[i], i == 0), 50, 100000);
        assert_true(load(paths[i])); /* here, where a leak would be seen */
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
