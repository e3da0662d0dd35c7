/* A library that uses NVTX comes and goes, with texts of its own, and leaves a range open: nothing
 * of it is touched once it is unmapped, and when it is back, the same names are the same regions.
 *
 * plugin SHIM MODULE
 */
#include "user.h"

#include <dlfcn.h>

#define ROUNDS 20

static void come_and_go(void **state)
{
    void (*use)(int);
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        void *library = dlopen(module, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            fail_msg("%s", dlerror());
        *(void **)&use = dlsym(library, "use_nvtx");
        assert_non_null(use);
        use(i == ROUNDS / 2);
        assert_int_equal(dlclose(library), 0);
        assert_null(dlopen(module, RTLD_NOW | RTLD_NOLOAD)); /* it really is gone */
        nvtxRangePushA("of the program");
        nvtxRangePop();
        assert_int_equal(pk_flush(), PK_OK);
    }
    json_t *d = stop();
    assert_int_equal(count_events(d, "X", "plugin/registered"), ROUNDS);
    assert_int_equal(count_events(d, "X", "a literal of the plug-in"), ROUNDS);
    assert_int_equal(count_events(d, "X", "a range of the plug-in"), ROUNDS);
    assert_int_equal(count_events(d, "X", "of the program"), ROUNDS);
    assert_int_equal(counts().unbalanced, 1);
    json_decref(d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {with_ranges(come_and_go)};
    take_arguments(argc, argv);
    if (!module)
        kit_skip("needs the paths of the shim (or \"\") and of a module");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
