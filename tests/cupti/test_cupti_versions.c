/* Libraries older and newer than the header. One process for each, since a process has one. */
#include "scene.h"

static pk_region forward = PK_REGION("forward");

typedef int scene(void);

static int expect(bool holds, int code)
{
    return holds ? 0 : code;
}

/* A session in a child, with a library of that version. 0 if the scene went well. */
static int in_process(uint32_t version, scene *play_scene)
{
    int result = -1;
    pid_t child = fork();
    if (child == 0) {
        fake->version = version;
        _exit(pk_start(pk_options(.trace_path = "run.json", .backends = "cupti")) == PK_OK
                  ? play_scene()
                  : 99);
    }
    return child > 0 && waitpid(child, &result, 0) == child ? result : -1;
}

static int refused(void)
{
    pk_backend_info info = status();
    return expect(!info.live && strstr(info.reason, "CUPTI "), 1) + pk_stop();
}

static void versions_that_are_refused(void **state)
{
    static const uint32_t bad[] = {1, 12, 16, 130000};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(in_process(bad[i], refused), 0);
}

static int a_kernel(bool clusters)
{
    pk_region_begin(&forward);
    launch(.kernel = "a");
    launch(.kernel = "a"); /* behind it: where a longer one would still be read */
    pk_region_end(&forward);
    fake->finish();
    if (pk_stop() != PK_OK)
        return 2;
    json_t *doc = load_document("run.json");
    const json_t *kernel = nth_event(doc, "kernel", "a", 1);
    int failed = expect(count_of_cat(doc, "kernel", NULL) == 2, 4) +
                 expect(strcmp(text_of(kernel, "region"), "forward") == 0, 8) +
                 expect((arg(kernel, "cluster") != NULL) == clusters, 16);
    json_decref(doc);
    return failed;
}

/* CUDA 11.6: kernels end with their channel. */
static int shorter(void)
{
    return a_kernel(false);
}

static int whole(void)
{
    return a_kernel(true);
}

static void older_and_newer_ones(void **state)
{
    (void)state;
    fake->lengths[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = sizeof(CUpti_ActivityKernel7);
    assert_int_equal(in_process(17, shorter), 0);
    fake->lengths[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = sizeof(CUpti_ActivityKernel9);
    assert_int_equal(in_process(18, whole), 0);
    assert_int_equal(in_process(28, whole), 0);
    fake->lengths[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = sizeof(CUpti_ActivityKernel10);
    assert_int_equal(in_process(130001, whole), 0);
    assert_int_equal(in_process(130100, whole), 0); /* with a warning */
    fake->lengths[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = sizeof(CUpti_ActivityKernel10) + 64;
    assert_int_equal(in_process(140203, whole), 0);
}

/* ---- the driver ---- */

static int no_driver(void)
{
    pk_backend_info info = status();
    return expect(!info.live && strstr(info.reason, "driver") && !fake->log[0], 1) + pk_stop();
}

static void without_a_driver(void **state)
{
    (void)state;
    fake->driver = 100;
    assert_int_equal(in_process(130001, no_driver), 0);
    fake->driver = 0;
    fake->devices = 0;
    assert_int_equal(in_process(130001, no_driver), 0);
}

static int no_clock(void)
{
    pk_backend_info info = status();
    return expect(!info.live && strstr(info.reason, "Timestamp") &&
                      strstr(fake->log, "unsubscribe"),
                  1) +
           pk_stop();
}

static void a_library_that_does_not_take_our_clock(void **state)
{
    (void)state;
    fake->register_clock = CUPTI_ERROR_NOT_COMPATIBLE;
    assert_int_equal(in_process(130001, no_clock), 0);
}

int main(int argc, char **argv)
{
#define test(name) cmocka_unit_test_setup_teardown(name, reset_fake, stop_and_leave)
    const struct CMUnitTest tests[] = {
        test(versions_that_are_refused),
        test(older_and_newer_ones),
        test(without_a_driver),
        test(a_library_that_does_not_take_our_clock),
    };
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
