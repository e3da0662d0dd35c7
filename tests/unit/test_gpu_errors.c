/* What goes wrong with a device, on the mock of the driver: each span is counted once, and there
 * are words for it. */
#include "gpu.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/cuda/api.h"
#include "failing_memory.h"

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner");

static void a_poisoned_context(void **state)
{
    (void)state;
    CUcontext second = gpu->context_create(1);
    CUstream healthy = gpu->stream_create(second);
    span(&outer);
    await(counts_now().recorded == 1);
    gpu->hold(true);
    span(&outer);
    pk_gpu_begin(&inner, the_stream);
    gpu->context_poison(the_context, CUDA_ERROR_ILLEGAL_ADDRESS);
    await(counts_now().lost == 1);
    gpu->count_anew();
    pk_gpu_end(&inner, the_stream);
    for (int i = 0; i < 10; i++)
        span(&outer);
    assert_int_equal(gpu->calls(FAKE_EVENT_RECORD), 0); /* nothing is asked of it any more */
    gpu->hold(false);
    for (int i = 0; i < 10; i++)
        PK_GPU_SCOPE(inner, healthy) {}
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 11);
    assert_int_equal(c.lost, 2);
    assert_int_equal(c.skipped, 10);
    expect_words("nothing works in a context any more");
    expect_words("CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    assert_int_equal(pk_start(pk_options(.backends = "cuda")), PK_OK); /* nor in the next session */
    span(&outer);
    assert_int_equal(stop_and_count().skipped, 1);
}

static void found_while_recording(void **state)
{
    (void)state;
    gpu->let_fail(FAKE_EVENT_RECORD, 1, 1, CUDA_ERROR_LAUNCH_FAILED);
    span(&outer); /* its end tells */
    span(&outer);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.lost, 1);
    assert_int_equal(c.skipped, 1);
    expect_words("(719)");
}

static void a_context_that_is_destroyed(void **state)
{
    (void)state;
    span(&outer);
    await(counts_now().recorded == 1);
    gpu->hold(true);
    span(&outer);
    span(&outer);
    gpu->context_destroy(the_context);
    await(counts_now().lost == 2);
    expect_words("destroyed");
    CUcontext next = gpu->context_create(0);
    gpu->hold(false);
    gpu->stream_again(the_stream, next);
    span(&inner);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 2);
    assert_int_equal(c.contexts, 2);
}

static void destroyed_before_the_stop(void **state)
{
    (void)state;
    gpu->hold(true);
    span(&outer);
    gpu->context_destroy(the_context);
    assert_int_equal(stop_and_count().lost, 1);
}

static void no_context(void **state)
{
    (void)state;
    gpu->context_current(NULL);
    pk_gpu_begin(&outer, NULL);
    pk_gpu_end(&outer, NULL);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.begun, 1);
    assert_int_equal(c.skipped, 1);
    expect_words("no context");
}

static void single_failures(void **state)
{
    (void)state;
    pk_stop(); /* the collector records events, too, and would meet what is to fail here */
    assert_int_equal(pk_start(pk_options(.backends = "cuda", .collector = "none")), PK_OK);
    span(&outer);
    gpu->let_fail(FAKE_EVENT_RECORD, 0, 1, CUDA_ERROR_INVALID_HANDLE);
    span(&outer); /* its begin */
    gpu->let_fail(FAKE_EVENT_RECORD, 1, 1, CUDA_ERROR_INVALID_HANDLE);
    span(&outer); /* its end */
    gpu->let_fail(FAKE_IS_CAPTURING, 0, 1, CUDA_ERROR_UNKNOWN);
    span(&outer);
    span(&outer);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 2);
    assert_int_equal(c.skipped, 3);
    expect_words("a driver call failed");
}

/* An event that answers neither yes nor not yet is lost, and nothing behind it. */
static void events_that_fail(void **state)
{
    (void)state;
    gpu->hold(true);
    span(&inner);
    span(&outer);
    gpu->let_fail(FAKE_EVENT_ELAPSED, 1, 1, CUDA_ERROR_UNKNOWN);
    sleep_ms(20);
    gpu->hold(false);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded + c.lost, 2);
    assert_true(c.recorded >= 1);
}

static void no_events(void **state)
{
    (void)state;
    gpu->let_fail(FAKE_EVENT_CREATE, 0, 1, CUDA_ERROR_OUT_OF_MEMORY);
    span(&outer);
    await((span(&outer), counts_now().recorded > 0)); /* tried again, once in a round */
    assert_true(stop_and_count().dropped >= 1);
    expect_words("no pair of events");
}

static void no_memory(void **state)
{
    (void)state;
    memory_fails_after(0);
    span(&outer);
    memory_fails_after(-1);
    await((span(&outer), counts_now().recorded > 0)); /* tried again, once in a round */
    assert_true(stop_and_count().dropped >= 1);
}

static void no_anchor(void **state)
{
    (void)state;
    gpu->let_fail(FAKE_STREAM_CREATE, 0, 1, CUDA_ERROR_OUT_OF_MEMORY);
    span(&outer);
    sleep_ms(30);
    assert_int_equal(stop_and_count().lost, 1);
    assert_int_equal(pk_start(pk_options(.backends = "cuda")), PK_OK);
    span(&outer);
    assert_int_equal(stop_and_count().recorded, 1);
}

static void *finish_late(void *arg)
{
    sleep_ms(30);
    gpu->hold(false);
    return arg;
}

static void the_stop_waits_a_little(void **state)
{
    pthread_t late;
    (void)state;
    gpu->hold(true);
    for (int i = 0; i < 20; i++)
        span(&outer);
    assert_int_equal(pthread_create(&late, NULL, finish_late, NULL), 0);
    assert_int_equal(stop_and_count().recorded, 20);
    pthread_join(late, NULL);
}

/* The child cannot use CUDA, and does not: no call of the driver's, nothing of the parent's freed.
 */
static void fork_amid_spans(void **state)
{
    int status;
    (void)state;
    if (strstr(SANITIZERS, "thread"))
        skip(); /* it loses its threads in the child */
    if (getenv("PK_TEST_QEMU"))
        skip(); /* qemu-user dies of threads that a fork's child starts */
    pk_gpu_begin(&outer, the_stream);
    span(&inner);
    pid_t child = fork();
    if (child == 0) {
        gpu->count_anew();
        pk_gpu_end(&outer, the_stream);
        int bad = pk_start(pk_options(.backends = "cuda")) != PK_OK;
        pk_gpu_begin(&outer, the_stream);
        pk_gpu_end(&outer, the_stream);
        bad |= strstr(words(), "forked") ? 0 : 2;
        pk_gpu_counts c = {.size = sizeof c};
        bad |= pk_get_gpu_counts(&c) || c.begun ? 4 : 0;
        bad |= pk_stop() ? 8 : 0;
        bad |= gpu->calls(FAKE_EVENT_RECORD) || gpu->calls(FAKE_EVENT_QUERY) ? 16 : 0;
        _exit(bad);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pk_gpu_end(&outer, the_stream);
    assert_int_equal(stop_and_count().recorded, 2);
}

static void which_errors_stay(void **state)
{
    static const int stay[] = {3, 4, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719};
    (void)state;
    unsigned count = 0;
    for (int code = 0; code < 1000; code++)
        count += pki_cuda_is_sticky((CUresult)code);
    assert_int_equal(count, sizeof stay / sizeof *stay);
    for (size_t i = 0; i < sizeof stay / sizeof *stay; i++)
        assert_true(pki_cuda_is_sticky((CUresult)stay[i]));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        with_gpu(a_poisoned_context),
        with_gpu(found_while_recording),
        with_gpu(a_context_that_is_destroyed),
        with_gpu(destroyed_before_the_stop),
        with_gpu(no_context),
        with_gpu(single_failures),
        with_gpu(events_that_fail),
        with_gpu(no_events),
        with_gpu(no_memory),
        with_gpu(no_anchor),
        with_gpu(the_stop_waits_a_little),
        with_gpu(fork_amid_spans),
        cmocka_unit_test(which_errors_stay),
    };
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
