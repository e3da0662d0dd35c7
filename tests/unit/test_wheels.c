/* Libraries in Python's packages: which folders are looked through, in which order, and what is
 * said when there is none. Argument: a library, which is copied to where it is to be found. */
#include "base/loader.h"

#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define FILE_13 "libpk-wheel.so.13"
#define FILE_12 "libpk-wheel.so.12"

static const char *library;
static char folder[] = "/tmp/pk-wheels-XXXXXX", reason[192];
static const char *const files[] = {FILE_13, FILE_12, NULL}, *const packages[] = {
                                                                 "cu13", "cuda_cupti", NULL};

static const char *put(const char *packages_at, const char *package, const char *name)
{
    static char path[512];
    char command[2048];
    snprintf(path, sizeof path, "%s/%s/nvidia/%s/lib/%s", folder, packages_at, package, name);
    snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\" && cp '%s' '%s'", path, library,
             path);
    assert_int_equal(system(command), 0);
    return path;
}

/* The path of what is found; "" for none. It is closed again, or it would lead to its neighbours.
 */
static const char *found(void)
{
    static char path[512];
    struct link_map *map = NULL;
    void *handle = pki_wheel_open(files, packages, reason, sizeof reason);
    if (!handle)
        return "";
    assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
    snprintf(path, sizeof path, "%s", map->l_name);
    dlclose(handle);
    return path;
}

static int forget(void **state)
{
    (void)state;
    unsetenv("VIRTUAL_ENV");
    unsetenv("CONDA_PREFIX");
    return 0;
}

static void none_is_said(void **state)
{
    (void)state;
    assert_string_equal(found(), "");
    assert_non_null(strstr(reason, FILE_13));
    assert_non_null(strstr(reason, "Python"));
}

static void of_an_environment(void **state)
{
    char root[256];
    (void)state;
    snprintf(root, sizeof root, "%s/venv", folder);
    setenv("VIRTUAL_ENV", root, 1);
    const char *older = put("venv/lib/python3.9/site-packages", "cu13", FILE_12);
    assert_string_equal(found(), older);
    /* The first of the files, wherever it is. */
    const char *newer = put("venv/lib/python3.9/site-packages", "cuda_cupti", FILE_13);
    assert_string_equal(found(), newer);
}

static void of_conda_and_debian(void **state)
{
    char root[256];
    (void)state;
    snprintf(root, sizeof root, "%s/conda", folder);
    setenv("CONDA_PREFIX", root, 1);
    const char *path = put("conda/lib/python3.12/dist-packages", "cu13", FILE_13);
    assert_string_equal(found(), path);
}

/* What is loaded from a package leads to the others beside it, before any environment. */
static void beside_what_is_loaded(void **state)
{
    char root[256], own[512];
    (void)state;
    snprintf(root, sizeof root, "%s/other", folder);
    setenv("VIRTUAL_ENV", root, 1);
    put("other/lib/python3.9/site-packages", "cu13", FILE_13);
    snprintf(own, sizeof own, "%s", put("mine/site-packages", "cu13", FILE_13));
    void *loaded = dlopen(put("mine/site-packages", "nccl", "libloaded.so.2"), RTLD_NOW);
    assert_non_null(loaded);
    assert_string_equal(found(), own);
    dlclose(loaded);
}

int main(int argc, char **argv)
{
    char command[256];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(none_is_said, forget),
        cmocka_unit_test_setup(of_an_environment, forget),
        cmocka_unit_test_setup(of_conda_and_debian, forget),
        cmocka_unit_test_setup(beside_what_is_loaded, forget),
    };
    if (argc != 2 || !mkdtemp(folder))
        return 1;
    library = argv[1];
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) ? 1 : result;
}
