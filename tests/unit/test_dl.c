/* Libraries that may be absent: which file is taken, and what is said when there is none. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/loader.h"

/* ---- which file is taken, and what is said when it cannot be ---- */

#define VARIABLE "PK_TEST_LIBRARY"

typedef double function(double);

typedef struct table {
    function *cosine, *nothing;
} table;

static const char *const math[] = {"libnothing-of-that-name.so", "libm.so.6", NULL};
static char reason[192];
static const char *apart; /* NULL: no namespaces here */

static void *open_math(void)
{
    return pki_dl_open(VARIABLE, math, reason, sizeof reason);
}

static void the_first_that_is_there(void **state)
{
    (void)state;
    unsetenv(VARIABLE);
    assert_non_null(open_math());
    setenv(VARIABLE, "", 1); /* an empty variable is none */
    assert_non_null(open_math());
}

static void the_variable_names_another_file(void **state)
{
    (void)state;
    setenv(VARIABLE, "/nowhere/libdouble.so", 1);
    assert_null(open_math()); /* and nothing else is tried */
    assert_non_null(strstr(reason, "/nowhere/libdouble.so"));
    unsetenv(VARIABLE);
}

static void absence_has_a_reason(void **state)
{
    static const char *const none[] = {"libnothing-of-that-name.so", NULL};
    (void)state;
    assert_null(pki_dl_open(VARIABLE, none, reason, sizeof reason));
    assert_non_null(strstr(reason, "libnothing-of-that-name.so"));
}

static void functions(void **state)
{
    static const pki_dl_function known[] = {{"cos", offsetof(table, cosine), false},
                                            {"no_such_function", offsetof(table, nothing), true}};
    static const pki_dl_function missing[] = {
        {"no_such_function", offsetof(table, nothing), false}};
    table t = {NULL, cos};
    (void)state;
    void *library = open_math();
    assert_non_null(library);
    assert_true(pki_dl_bind(library, known, 2, &t, reason, sizeof reason));
    assert_true(t.cosine(0) == 1);
    assert_null(t.nothing);
    assert_false(pki_dl_bind(library, missing, 1, &t, reason, sizeof reason));
    assert_string_equal(reason, "the library has no no_such_function");
}

/* A copy of perfkit in a namespace of its own, as pk ab has them. */
static void in_a_namespace(void **state)
{
    (void)state;
    assert_true(pki_dl_possible());
    if (!apart)
        skip();
    void *library = dlmopen(LM_ID_NEWLM, apart, RTLD_NOW);
    bool (*possible)(void);
    assert_non_null(library);
    *(void **)&possible = dlsym(library, "possible");
    assert_non_null(possible);
    assert_true(possible());
}

/* -- forks -- */

static bool going;

static int slowly(struct dl_phdr_info *object, size_t size, void *arg)
{
    const struct timespec ms = {0, 1000000};
    (void)object, (void)size, (void)arg;
    return nanosleep(&ms, NULL);
}

static int pass(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)object, (void)size, (void)arg;
    return 0;
}

static void *go_round(void *arg)
{
    while (__atomic_load_n(&going, __ATOMIC_RELAXED)) {
        pki_dl_each(slowly, NULL);
        for (int i = 0; i < 5; i++)
            slowly(NULL, 0, NULL); /* or a fork would hardly get in between */
    }
    return arg;
}

/* As exceptions and backtraces do, the child goes through the objects that are loaded. */
static int fork_and_pass(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(100);
        dl_iterate_phdr(pass, NULL);
        pki_dl_each(pass, NULL);
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

/* glibc's fork leaves the lock of dl_iterate_phdr to the child as it is. */
static void nobody_forks_amid_a_round(void **state)
{
    pthread_t thread;
    (void)state;
    if (getenv("PK_TEST_QEMU"))
        skip(); /* qemu-user's own locks do not survive it */
    pthread_atfork(pki_dl_before_fork, pki_dl_after_fork_in_parent, pki_dl_after_fork);
    __atomic_store_n(&going, true, __ATOMIC_RELAXED);
    assert_int_equal(pthread_create(&thread, NULL, go_round, NULL), 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(fork_and_pass(), 0);
    }
    __atomic_store_n(&going, false, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
}

static void ignore(int signal)
{
    (void)signal;
}

static void tick(suseconds_t us)
{
    const struct itimerval timer = {{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static int fork_inside(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)object, (void)size;
    tick(5000);
    errno = 0;
    pki_dl_before_fork();
    pki_dl_after_fork_in_parent();
    *(int *)arg += errno == 0; /* signals interrupt the waiting, which is not the program's */
    tick(0);
    return 1;
}

/* Somebody may fork where waiting would be for ever. */
static void a_fork_does_not_wait_for_ever(void **state)
{
    int visited = 0;
    (void)state;
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = ignore}, NULL);
    pki_dl_each(fork_inside, &visited);
    assert_int_equal(visited, 1);
    pki_dl_each(fork_inside, &visited);
    assert_int_equal(visited, 2);
}

static const struct CMUnitTest dl_tests[] = {
    cmocka_unit_test(the_first_that_is_there),
    cmocka_unit_test(the_variable_names_another_file),
    cmocka_unit_test(absence_has_a_reason),
    cmocka_unit_test(functions),
    cmocka_unit_test(in_a_namespace),
    cmocka_unit_test(nobody_forks_amid_a_round),
    cmocka_unit_test(a_fork_does_not_wait_for_ever),
};

/* ---- libraries in Python's packages ---- */

/* Which folders are looked through, in which order, and what is said when there is none. */

#define FILE_13 "libpk-wheel.so.13"
#define FILE_12 "libpk-wheel.so.12"

static const char *library;
static char folder[] = "/tmp/pk-wheels-XXXXXX", wheels_reason[192];
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
    void *handle = pki_wheel_open(files, packages, wheels_reason, sizeof wheels_reason);
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
    assert_non_null(strstr(wheels_reason, FILE_13));
    assert_non_null(strstr(wheels_reason, "Python"));
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

static const struct CMUnitTest wheels_tests[] = {
    cmocka_unit_test_setup(none_is_said, forget),
    cmocka_unit_test_setup(of_an_environment, forget),
    cmocka_unit_test_setup(of_conda_and_debian, forget),
    cmocka_unit_test_setup(beside_what_is_loaded, forget),
};

/* test_dl LIBRARY [ONE IN A NAMESPACE]: the first is copied to where it is to be found. */
int main(int argc, char **argv)
{
    char command[256];
    library = argc > 1 ? argv[1] : "";
    apart = argc > 2 ? argv[2] : NULL;
    if (!mkdtemp(folder))
        return 1;
    int failed = cmocka_run_group_tests(dl_tests, NULL, NULL);
    failed += cmocka_run_group_tests(wheels_tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) || failed;
}
