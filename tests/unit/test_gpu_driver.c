/* Which driver there is: with and without a GPU, old ones, none. Each in a process of its own,
 * since what was found out stays. */
#include "gpu.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *double_path;
static pk_region outer = PK_REGION("outer");

#define in_a_child(name)                                                                           \
    static int name##_body(void);                                                                  \
    static void name(void **state)                                                                 \
    {                                                                                              \
        int status;                                                                                \
        (void)state;                                                                               \
        pid_t child = fork();                                                                      \
        if (child == 0) {                                                                          \
            open_double(double_path);                                                              \
            _exit(name##_body());                                                                  \
        }                                                                                          \
        assert_int_equal(waitpid(child, &status, 0), child);                                       \
        assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : 255, 0);                        \
    }                                                                                              \
    static int name##_body(void)

#define expect(condition)                                                                          \
    do                                                                                             \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s; \"%s\"\n", __LINE__, #condition, status_now().reason);   \
            return 1;                                                                              \
        }                                                                                          \
    while (0)

static pk_backend_info status_now(void)
{
    pk_backend_info info = {.size = sizeof info};
    pk_backend_status("cuda", &info);
    return info;
}

static int start(void)
{
    return pk_start(pk_options(.backends = "cuda"));
}

static pk_gpu_counts stop(void)
{
    pk_gpu_counts c = {.size = sizeof c};
    if (pk_stop() || pk_get_gpu_counts(&c) ||
        c.begun != c.recorded + c.dropped + c.skipped + c.lost)
        c.begun = UINT64_MAX;
    return c;
}

in_a_child(without_a_device)
{
    gpu->set_driver(13000, 0, CUDA_ERROR_NO_DEVICE, CUDA_SUCCESS);
    expect(start() == PK_OK);
    for (int i = 0; i < 10; i++)
        PK_GPU_SCOPE(outer, NULL) {}
    expect(gpu->calls(FAKE_INIT) == 1); /* once */
    expect(pk_gpu_gate_ == 0);
    expect(stop().begun == 0);
    expect(strstr(status_now().reason, "cuInit says CUDA_ERROR_NO_DEVICE (100)"));
    expect(!status_now().live);
    expect(start() == PK_OK);
    PK_GPU_SCOPE(outer, NULL) {}
    expect(gpu->calls(FAKE_INIT) == 1);
    expect(stop().begun == 0);
    return 0;
}

in_a_child(zero_devices)
{
    gpu->set_driver(13000, 0, CUDA_SUCCESS, CUDA_SUCCESS);
    expect(!status_now().live);
    expect(strstr(status_now().reason, "counts 0 devices"));
    expect(strcmp(status_now().version, "13.0") == 0);
    expect(start() == PK_OK && pk_gpu_gate_ == 0);
    expect(stop().begun == 0);
    return 0;
}

/* A process that has called cuInit cannot fork children that use CUDA: we do not call it for the
 * program. */
in_a_child(not_before_the_program)
{
    expect(start() == PK_OK);
    expect(!gpu->initialised());
    sleep_ms(30);
    expect(stop().begun == 0);
    expect(!gpu->initialised());
    expect(strstr(status_now().reason, "no span of a stream was begun"));
    expect(!gpu->initialised());
    pid_t worker = fork();
    int status = 1;
    if (worker == 0) { /* uses CUDA, as it could without perfkit */
        CUcontext ctx = gpu->context_create(0);
        the_stream = gpu->stream_create(ctx);
        int bad = start() != PK_OK;
        span(&outer);
        bad |= stop().recorded == 1 ? 0 : 2;
        _exit(bad);
    }
    waitpid(worker, &status, 0);
    expect(status == 0);
    expect(start() == PK_OK);
    the_stream = gpu->stream_create(gpu->context_create(0));
    span(&outer);
    expect(status_now().live);
    expect(stop().recorded == 1);
    return 0;
}

in_a_child(asked_before_the_start)
{
    expect(status_now().live);
    expect(gpu->initialised());
    return 0;
}

in_a_child(no_library)
{
    setenv("PK_CUDA_LIBRARY", "/nowhere/libcuda.so.1", 1);
    expect(start() == PK_OK && pk_gpu_gate_ == 0);
    expect(strstr(status_now().reason, "/nowhere/libcuda.so.1"));
    expect(stop().begun == 0);
    return 0;
}

/* 11.4: no ids of streams and contexts, and captures are not followed. */
in_a_child(an_old_driver)
{
    CUgraph graph;
    gpu->set_driver(11040, 1, CUDA_SUCCESS, CUDA_SUCCESS);
    the_stream = gpu->stream_create(gpu->context_create(0));
    expect(start() == PK_OK);
    span(&outer);
    gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    span(&outer);
    expect(gpu->capture_end(the_stream, &graph) == CUDA_SUCCESS);
    pk_gpu_counts c = stop();
    expect(c.recorded == 1 && c.skipped == 1);
    expect(strstr(status_now().reason, "cannot follow captures"));
    expect(strcmp(status_now().version, "11.4") == 0);
    return 0;
}

in_a_child(too_old_a_driver)
{
    gpu->set_driver(9000, 1, CUDA_SUCCESS, CUDA_SUCCESS);
    expect(start() == PK_OK && pk_gpu_gate_ == 0);
    expect(strstr(status_now().reason, "too old"));
    expect(stop().begun == 0);
    return 0;
}

in_a_child(a_stub)
{
    gpu->set_driver(0, 1, CUDA_SUCCESS, CUDA_SUCCESS);
    expect(start() == PK_OK && pk_gpu_gate_ == 0);
    expect(strstr(status_now().reason, "toolkit's stub"));
    expect(stop().begun == 0);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_device),
        cmocka_unit_test(zero_devices),
        cmocka_unit_test(not_before_the_program),
        cmocka_unit_test(asked_before_the_start),
        cmocka_unit_test(no_library),
        cmocka_unit_test(an_old_driver),
        cmocka_unit_test(too_old_a_driver),
        cmocka_unit_test(a_stub),
    };
    double_path = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
