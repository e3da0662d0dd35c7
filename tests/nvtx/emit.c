/* Our regions, as a tool hears them; each case in a process of its own, since a tool attaches once.
 *
 * emit TOOL SHIM LIBPK
 */
#include "user.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

static const char *tool, *libpk;
static char *heard;

static pk_region plain = PK_REGION("plain"), compute = PK_REGION_OF(PK_COMPUTE, "compute");

static void listen_with(const char *manners)
{
    setenv("NVTX_INJECTION64_PATH", tool, 1);
    setenv("TOOL_MANNERS", manners, 1);
    void *library = dlopen(tool, RTLD_NOW);
    must(library != NULL);
    heard = dlsym(library, "tool_log");
    must(heard != NULL);
}

static const char *reason(bool live)
{
    static pk_backend_info info;
    info.size = sizeof info;
    must(pk_backend_status("nvtx", &info) == PK_OK);
    if (info.live != live)
        kit_give_up(__FILE__, __LINE__, info.reason, info.live, live);
    return info.reason;
}

static void must_say(const char *text, const char *wanted)
{
    if (!strstr(text, wanted)) {
        fprintf(stderr, "no '%s' in:\n%s\n", wanted, text);
        kit_give_up(__FILE__, __LINE__, "must_say", 0, 0);
    }
}

static void must_hear(const char *wanted)
{
    must_say(heard, wanted);
    *heard = '\0';
}

static void ranges(void *unused)
{
    (void)unused;
    listen_with("all");
    must_say(reason(true), tool);
    must(pk_start(pk_options(.backends = "nvtx")) == PK_OK);
    must_say(reason(true), "emitting regions to");
    must_hear("attach version 3\ndomain perfkit\ncategory 1 compute in perfkit\n"
              "category 2 data in perfkit\ncategory 3 comm in perfkit\n"
              "category 4 io in perfkit\ncategory 5 wait in perfkit\n"
              "schema perfkit work of 2 in perfkit\n");
    errno = 42;
    pk_region_begin(&plain);
    must_hear("string plain in perfkit\npush plain category 0 colour ff9e9e9e in perfkit\n");
    pk_region_begin(&compute);
    must_hear("string compute in perfkit\npush compute category 1 colour ff43a047 in perfkit\n");
    pk_region_mark(&plain);
    must_hear("mark plain category 0 colour ff9e9e9e in perfkit\n");
    pk_region_add(&compute, 4096, 7);
    pk_region_end(&compute);
    must_hear("pop bytes 4096 flops 7 in perfkit\n");
    pk_region_next(&plain, &compute);
    must_hear("pop in perfkit\npush compute category 1 colour ff43a047 in perfkit\n");
    pk_region_end(&compute);
    must_hear("pop in perfkit\n");
    must_equal(errno, 42);
    pk_region_begin(&plain); /* open at the end */
    must(pk_stop() == PK_OK);
    *heard = '\0';
    pk_region_begin(&plain);
    pk_region_end(&plain);
    must_equal(strlen(heard), 0);
    must(pk_start(pk_options(.backends = "nvtx")) == PK_OK);
    pk_region_begin(&compute); /* the other one ends first */
    must_hear("pop in perfkit\npush compute category 1 colour ff43a047 in perfkit\n");
    pk_region_end(&compute);
    must(pk_stop() == PK_OK);
    must(pk_start(pk_options(.backends = "none")) == PK_OK);
    *heard = '\0';
    pk_region_begin(&plain);
    pk_region_end(&plain);
    must_equal(strlen(heard), 0);
    must(pk_stop() == PK_OK);
}

static void without_payloads(void *unused)
{
    (void)unused;
    listen_with("plain");
    must(pk_start(pk_options(.backends = "nvtx")) == PK_OK);
    pk_region_begin(&compute);
    pk_region_add(&compute, 512, 0);
    *heard = '\0';
    pk_region_end(&compute);
    must_hear("mark compute category 1 colour ff43a047 =512 in perfkit\npop in perfkit\n");
    must(pk_stop() == PK_OK);
}

static void unwilling(void *manners)
{
    listen_with(manners);
    must(pk_start(pk_options(.backends = "nvtx")) == PK_OK);
    must_say(reason(false),
             strcmp(manners, "deaf") == 0 ? "to no ranges of threads" : "does not want to hear");
    *heard = '\0';
    pk_region_begin(&plain);
    pk_region_end(&plain);
    must_equal(strlen(heard), 0);
    must(pk_stop() == PK_OK);
}

static void nobody(void *path_of_tool)
{
    if (path_of_tool)
        setenv("NVTX_INJECTION64_PATH", path_of_tool, 1);
    must(pk_start(NULL) == PK_OK);
    must_say(reason(false), path_of_tool ? "is no tool that could be opened" : "no tool listens");
    pk_region_begin(&plain);
    pk_region_end(&plain);
    must(pk_stop() == PK_OK);
}

/* A tool that was there before us keeps its ranges, and gets ours. */
static void another_tool(void *unused)
{
    (void)unused;
    listen_with("all");
    must(pk_start(pk_options(.tuning = kit_tuning("nvtx_consume=1,nvtx_shim=%s", shim))) == PK_OK);
    must_say(reason(true), "emitting regions to");
    must_say(reason(true), "another tool reads NVTX ranges: ");
    must(strcmp(getenv("NVTX_INJECTION64_PATH"), tool) == 0);
    *heard = '\0';
    nvtxRangePushA("theirs");
    must_hear("push theirs\n");
    must(pk_stop() == PK_OK);
    pk_counts c = {.size = sizeof c};
    must(pk_get_counts(&c) == PK_OK && c.begun == 0);
}

/* Another perfkit in this process would hear itself. */
static void another_perfkit(void *unused)
{
    (void)unused;
    setenv("NVTX_INJECTION64_PATH", libpk, 1);
    must(pk_start(pk_options(.tuning = kit_tuning("nvtx_consume=1,nvtx_shim=%s", shim))) == PK_OK);
    must_say(reason(false), "another tool reads NVTX ranges: ");
    pk_region_begin(&plain);
    pk_region_end(&plain);
    must(pk_stop() == PK_OK);
}

static void no_shim(void *unused)
{
    (void)unused;
    must(pk_start(pk_options(.tuning = "nvtx_consume=1,nvtx_shim=no such thing.so")) == PK_OK);
    must_say(reason(false), "set nvtx_shim");
    must(!getenv("NVTX_INJECTION64_PATH"));
    nvtxRangePushA("unheard");
    must(pk_stop() == PK_OK);
}

/* The variable and PK_NVTX_CONSUME from outside: whoever pushes before pk_start is heard after it.
 */
static void from_outside(void *unused)
{
    (void)unused;
    setenv("NVTX_INJECTION64_PATH", shim, 1);
    setenv("PK_NVTX_CONSUME", "1", 1);
    setenv("PK_NVTX_SHIM", shim, 1);
    must(pk_start(NULL) == PK_OK);
    must(pk_stop() == PK_OK);
    must(nvtxRangePushA("before") >= 0);
    must(pk_start(NULL) == PK_OK);
    must(nvtxRangePushA("within") == 1);
    nvtxRangePop();
    nvtxRangePop();
    must(pk_stop() == PK_OK);
    pk_counts c = {.size = sizeof c};
    must(pk_get_counts(&c) == PK_OK);
    must_equal(c.begun, 1);
    must_equal(c.stray_ends, 0);
}

static void *record(void *unused)
{
    for (unsigned i = 0; i < kit_scaled(500); i++) {
        PK_REGION_SCOPE(compute);
        PK_REGION_SCOPE_NAMED("within");
        pk_region_mark(&plain);
    }
    pk_region_begin(&plain); /* closed on the way out */
    return unused;
}

static void threads(void *unused)
{
    pthread_t all[4];
    size_t pushes = 0, pops = 0, strings = 0;
    (void)unused;
    listen_with("all");
    must(pk_start(pk_options(.backends = "nvtx")) == PK_OK);
    for (int i = 0; i < 4; i++)
        must(pthread_create(&all[i], NULL, record, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
    must(pk_stop() == PK_OK);
    for (const char *p = heard; (p = strchr(p, '\n')) != NULL; p++) {
        pushes += strncmp(p + 1, "push", 4) == 0;
        pops += strncmp(p + 1, "pop", 3) == 0;
        strings += strncmp(p + 1, "string", 6) == 0;
    }
    must_equal(pushes, 4 * (2 * kit_scaled(500) + 1));
    must_equal(pops, pushes);
    must_equal(strings, 3);
}

static void run_child(void (*body)(void *), const void *argument)
{
    assert_int_equal(kit_child(body, (void *)(uintptr_t)argument, 120), 0);
}

#define CHILD(name, body, argument)                                                                \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        run_child(body, argument);                                                                 \
    }

CHILD(a_tool_hears_ranges, ranges, NULL)
CHILD(a_tool_without_payloads, without_payloads, NULL)
CHILD(a_tool_that_refuses, unwilling, "refuse")
CHILD(a_tool_for_other_things, unwilling, "deaf")
CHILD(nobody_listens, nobody, NULL)
CHILD(a_tool_that_is_not_there, nobody, "/no/such/tool.so")
CHILD(a_library_that_is_no_tool, nobody, "libm.so.6")
CHILD(a_tool_that_was_first, another_tool, NULL)
CHILD(without_a_shim, no_shim, NULL)
CHILD(asked_for_from_outside, from_outside, NULL)
CHILD(many_threads_emit, threads, NULL)

static void two_perfkits(void **state)
{
    (void)state;
    if (!libpk)
        skip();
    run_child(another_perfkit, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tool_hears_ranges),
        cmocka_unit_test(a_tool_without_payloads),
        cmocka_unit_test(a_tool_that_refuses),
        cmocka_unit_test(a_tool_for_other_things),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(a_tool_that_is_not_there),
        cmocka_unit_test(a_library_that_is_no_tool),
        cmocka_unit_test(a_tool_that_was_first),
        cmocka_unit_test(without_a_shim),
        cmocka_unit_test(asked_for_from_outside),
        cmocka_unit_test(many_threads_emit),
        cmocka_unit_test(two_perfkits),
    };
    if (argc < 3)
        kit_skip("needs the paths of a tool and of the shim");
    unsetenv("NVTX_INJECTION64_PATH");
    tool = argv[1];
    shim = argv[2];
    libpk = argc > 3 ? argv[3] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
