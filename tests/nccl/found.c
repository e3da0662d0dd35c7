/* found.c - who is found by NCCL: perfkit, or whoever was there before; with the real NCCL, as far
 * as it can be asked without a GPU: it opens its profiler only after a device has answered, so the
 * steps that it takes are taken here.
 *
 * found SHIM LIBNCCL...; 77 if there is no NCCL for the last of the tests. */
#include "role.h"

static void *nccl;

static const char *variable(void)
{
    return getenv("NCCL_PROFILER_PLUGIN");
}

static int clean(void **state)
{
    (void)state;
    pk_stop();
    unsetenv("NCCL_PROFILER_PLUGIN");
    return 0;
}

static void start(const char *backends)
{
    assert_int_equal(pk_start(pk_options(.backends = backends,
                                         .tuning = kit_tuning("nvtx_shim=%s", shim ? shim : ""))),
                     PK_OK);
}

static void nobody_asks(void **state)
{
    (void)state;
    start(NULL);
    assert_null(variable());
    assert_non_null(strstr(status(), "NCCL is not in this process"));
    clean(state);
    start("-nccl");
    assert_null(variable());
}

static void somebody_else(void **state)
{
    (void)state;
    setenv("NCCL_PROFILER_PLUGIN", "/opt/other/libprofiler.so", 1);
    start("nccl");
    assert_string_equal(variable(), "/opt/other/libprofiler.so");
    assert_non_null(strstr(status(), "NCCL_PROFILER_PLUGIN is another's: /opt/other"));
    clean(state);
    setenv("NCCL_PROFILER_PLUGIN", "none", 1);
    start("nccl");
    assert_string_equal(variable(), "none");
}

static void by_name(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        start("nccl");
        assert_non_null(strstr(status(), "NCCL_PROFILER_PLUGIN="));
        if (shim)
            assert_non_null(strstr(variable(), "libpkshim.so"));
        else
            assert_string_equal(variable(), "STATIC_PLUGIN");
        for (version = 2; version <= 6; version++) {
            open_plugin();
            assert_string_equal(plugin->name, "perfkit");
        }
        pk_stop();
    }
}

static void no_shim(void **state)
{
    (void)state;
    assert_int_equal(pk_start(pk_options(.backends = "nccl", .tuning = "nvtx_shim=/nowhere.so")),
                     PK_OK);
    if (shim) {
        assert_null(variable());
        assert_non_null(strstr(status(), "/nowhere.so cannot be used"));
    } else {
        assert_non_null(variable());
    }
}

/* 2.28.9 looks for version 5 first, 2.29.2 and later for version 6. */
static void real_nccl(void **state)
{
    int number = 0;
    (void)state;
    int (*get_version)(int *) = NULL;
    *(void **)&get_version = dlsym(nccl, "ncclGetVersion");
    assert_int_equal(get_version(&number), 0);
    start(NULL);
    version = number >= 22902 ? 6 : number >= 22803 ? 5 : number >= 22703 ? 4 : 3;
    printf("NCCL %d, version %d of the profiler by %s\n", number, version, variable());
    open_plugin();
    assert_string_equal(plugin->name, "perfkit");
    assert_int_equal(pk_stop(), PK_OK);
}

int main(int argc, char **argv)
{
    shim = argc > 1 && *argv[1] ? argv[1] : NULL;
    unsetenv("NCCL_PROFILER_PLUGIN");
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(nobody_asks, clean),
                                       cmocka_unit_test_teardown(somebody_else, clean),
                                       cmocka_unit_test_teardown(by_name, clean),
                                       cmocka_unit_test_teardown(no_shim, clean)};
    const struct CMUnitTest real[] = {cmocka_unit_test_teardown(real_nccl, clean)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 2; i < argc && !nccl; i++)
        nccl = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (failed)
        return failed;
    if (!nccl)
        kit_skip("there is no libnccl.so.2: the rest has passed");
    return cmocka_run_group_tests(real, NULL, NULL);
}
