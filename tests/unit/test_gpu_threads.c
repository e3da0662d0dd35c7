/* Many threads, streams, contexts and sessions at once, on the mock of the driver: what
 * ThreadSanitizer is to see, and the books that have to balance. */
#include "gpu.h"
#include "valgrind.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 400 };

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner");
static CUcontext contexts[2];
static CUstream shared;
static uint32_t go_on;

static void some_spans(CUstream stream)
{
    pk_gpu_begin(&outer, stream);
    pk_gpu_begin(&inner, stream);
    pk_gpu_end(&inner, stream);
    pk_gpu_end(&outer, stream);
}

static void *work(void *arg)
{
    uintptr_t n = (uintptr_t)arg;
    gpu->context_current(contexts[n % 2]);
    CUstream own = gpu->stream_create(contexts[n % 2]);
    for (int i = 0; i < ROUNDS; i++) {
        some_spans(own);
        some_spans(CU_STREAM_PER_THREAD);
        some_spans(NULL);
        some_spans(shared);
        if (i % 50 == 0)
            sleep_ms(5);
    }
    return NULL;
}

static void run(void *(*body)(void *), unsigned threads)
{
    pthread_t t[THREADS];
    for (uintptr_t i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&t[i], NULL, body, (void *)i), 0);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
}

static int start_two(void **state)
{
    if (start_gpu(state))
        return -1;
    contexts[0] = the_context;
    contexts[1] = gpu->context_create(1);
    shared = gpu->stream_create(contexts[0]);
    return 0;
}

static void threads_and_streams(void **state)
{
    (void)state;
    run(work, THREADS);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.begun, THREADS * ROUNDS * 8);
    assert_int_equal(c.recorded + c.dropped, c.begun);
    assert_int_equal(c.contexts, 2);
    assert_int_equal(spans_of(&outer) + spans_of(&inner), c.recorded);
}

/* The stream has a context, the thread has none: it gets one for the calls that want it, and has
 * none afterwards. */
static void *spans_without_a_context(void *arg)
{
    gpu->context_current(NULL);
    for (int i = 0; i < 10; i++)
        some_spans(shared);
    pk_gpu_begin(&outer, NULL); /* nobody's default stream */
    return arg;
}

static void a_thread_without_a_context(void **state)
{
    (void)state;
    run(spans_without_a_context, 1);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 20);
    assert_int_equal(c.skipped, 1);
    assert_int_equal(spans_of(&outer), 10);
}

static void *many_spans(void *arg)
{
    CUstream own = gpu->stream_create(contexts[0]);
    for (int i = 0; i < 4000; i++) {
        some_spans(own);
        if (i % 500 == 0)
            sleep_ms(15);
    }
    return arg;
}

/* The marks of a lane lie where others have been read meanwhile. */
static void rings_go_round(void **state)
{
    (void)state;
    run(many_spans, 1);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.begun, 8000);
    assert_int_equal(c.lost + c.skipped, 0);
    assert_true(c.recorded > 4096);
}

static void *one_span(void *arg)
{
    gpu->context_current(contexts[0]);
    some_spans(CU_STREAM_PER_THREAD);
    some_spans(shared);
    return arg;
}

/* Threads that come and go leave their lanes to others. */
static void short_threads(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++)
        run(one_span, THREADS);
    assert_int_equal(stop_and_count().recorded, 60 * THREADS * 4);
}

static void *until_told(void *arg)
{
    CUstream own = gpu->stream_create(contexts[0]);
    gpu->context_current(contexts[0]);
    for (unsigned i = 0; __atomic_load_n(&go_on, __ATOMIC_RELAXED); i++) {
        some_spans(own);
        some_spans(NULL);
        if (is_slow() && i % 16 == 0)
            sleep_ms(1);
    }
    return arg;
}

/* Sessions begin and end while others record: every session's books balance. The slow have the
 * others rest, or most of the time goes by with what they record. */
static void sessions_meanwhile(void **state)
{
    pthread_t t[2];
    (void)state;
    __atomic_store_n(&go_on, 1u, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&t[i], NULL, until_told, NULL), 0);
    for (int i = is_slow() ? 10 : 0; i < 20; i++) {
        sleep_ms(15);
        assert_int_equal(pk_flush(), PK_OK);
        stop_amid_others();
        assert_int_equal(pk_start(pk_options(.backends = "cuda")), PK_OK);
    }
    __atomic_store_n(&go_on, 0u, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    stop_and_count();
}

static void *poison_later(void *arg)
{
    sleep_ms(20);
    gpu->context_poison(contexts[1], CUDA_ERROR_LAUNCH_TIMEOUT);
    return arg;
}

static void a_context_dies_meanwhile(void **state)
{
    pthread_t killer;
    (void)state;
    assert_int_equal(pthread_create(&killer, NULL, poison_later, NULL), 0);
    run(work, THREADS);
    pthread_join(killer, NULL);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.begun, THREADS * ROUNDS * 8);
    expect_words("(702)");
}

/* Each thread captures and replays a graph of its own; others look on. */
static void *replay(void *arg)
{
    CUgraph graph;
    CUstream own = gpu->stream_create(contexts[0]);
    gpu->context_current(contexts[0]);
    for (int i = 0; i < 10; i++) {
        gpu->capture_begin(own, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        some_spans(own);
        if (gpu->capture_end(own, &graph) != CUDA_SUCCESS)
            return own;
        CUgraphExec exec = gpu->instantiate(graph);
        for (int k = 0; k < 30; k++) {
            if (k > 5)
                pk_gpu_graph_launching(exec, graph, own);
            gpu->launch(exec, own);
            sleep_ms(k % 10 == 0);
        }
        gpu->exec_destroy(exec);
        gpu->graph_destroy(graph);
    }
    return arg;
}

static void graphs_meanwhile(void **state)
{
    (void)state;
    run(replay, THREADS);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.captured, THREADS * 20);
    assert_in_range(c.begun - c.sampled, THREADS * 10 * 24 * 2, THREADS * 10 * 24 * 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_and_streams, start_two, stop_gpu),
        cmocka_unit_test_setup_teardown(a_thread_without_a_context, start_two, stop_gpu),
        cmocka_unit_test_setup_teardown(rings_go_round, start_two, stop_gpu),
        cmocka_unit_test_setup_teardown(short_threads, start_two, stop_gpu),
        cmocka_unit_test_setup_teardown(sessions_meanwhile, start_two, stop_gpu),
        cmocka_unit_test_setup_teardown(a_context_dies_meanwhile, start_two, stop_gpu),
        cmocka_unit_test_setup_teardown(graphs_meanwhile, start_two, stop_gpu),
    };
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
