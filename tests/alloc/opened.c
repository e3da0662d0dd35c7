/* Libraries that come by dlopen, with a C++ library or with operators of their own; and libpk_alloc
 * itself.
 *
 *     opened FOLDER             of the libraries
 *     opened --open LIBRARY     libpk_alloc is not preloaded, but opened
 */
#include "sums.h"

static const char *folder;

static void *opened(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        printf("# %s\n", dlerror());
    assert_non_null(library);
    return library;
}

static void *function_in(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    assert_non_null(found);
    return memcpy(function, &found, sizeof found);
}

/* The loader waits for a thread that asks for memory by new. */
static void with_a_cxx_library_of_its_own(void **state)
{
    int (*is_right)(void);
    void (*gives_back)(void);
    (void)state;
    void *library = opened("alloc-plugin.so");
    function_in(library, "plugin_is_right", &is_right);
    assert_true(is_right());
    function_in(library, "plugin_gives_back", &gives_back);
    pki_alloc_sum before = now();
    gives_back();
    assert_true(are(&before, 0, 0, 1, 500));
    dlclose(library);
}

static void with_operators_of_their_own(void **state)
{
    size_t (*use)(void);
    (void)state;
    void *bound = opened("alloc-plugin-bound.so"), *free_to_be = opened("alloc-plugin-pool.so");
    function_in(bound, "pool_use", &use);
    pki_alloc_sum before = now();
    assert_int_equal(use(), 10 * (16 + 80));
    assert_true(are(&before, 0, 0, 0, 0));
    function_in(free_to_be, "pool_use", &use);
    assert_int_equal(use(), 0);
    assert_true(are(&before, 20, 10 * (4 + 80), 20, 10 * (4 + 80)));
    dlclose(bound);
    dlclose(free_to_be);
}

/* ---- opened itself ---- */

/* It finds room for its thread-local variables, stays, and counts nothing: nobody calls it. */
static int open_it(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        return printf("# %s\n", dlerror()), 1;
    const pki_alloc_interface *it = dlsym(library, PKI_ALLOC_SYMBOL);
    dlclose(library);
    const char *why = "";
    pki_alloc_sum before, after;
    if (!it || it->size < sizeof *it)
        return 1;
    it->beneath(&why);
    it->sums(&before, 1);
    there_and_back(10);
    it->sums(&after, 1);
    return before.allocations != after.allocations;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--open") == 0)
        return open_it(argv[2]);
    folder = argc > 1 ? argv[1] : ".";
    if (!find_alloc())
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_a_cxx_library_of_its_own),
        cmocka_unit_test(with_operators_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
