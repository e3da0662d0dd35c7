/* Which driver there is, the clock of its device, and many threads on it. */
#include "gpu.h"
#include "valgrind.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/cuda/clock.h"
#include "backend/cuda/lane.h"

/* ---- which driver there is ---- */

/* With and without a GPU, old ones, none. Each in a process of its own, since what was found out
 * stays. */

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
    for (int i = 0; i < 10; i++) {
        PK_GPU_SCOPE(outer, NULL);
    }
    expect(gpu->calls(FAKE_INIT) == 1); /* once */
    expect(pk_gpu_gate_ == 0);
    expect(stop().begun == 0);
    expect(strstr(status_now().reason, "cuInit says CUDA_ERROR_NO_DEVICE (100)"));
    expect(!status_now().live);
    expect(start() == PK_OK);
    {
        PK_GPU_SCOPE(outer, NULL);
    }
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

static const struct CMUnitTest gpu_driver_tests[] = {
    cmocka_unit_test(without_a_device),
    cmocka_unit_test(zero_devices),
    cmocka_unit_test(not_before_the_program),
    cmocka_unit_test(asked_before_the_start),
    cmocka_unit_test(no_library),
    cmocka_unit_test(an_old_driver),
    cmocka_unit_test(too_old_a_driver),
    cmocka_unit_test(a_stub),
};

static int run_gpu_driver(int argc, char **argv)
{
    double_path = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(gpu_driver_tests, NULL, NULL);
}

/* ---- the map of a device's clock, and the pool of events ---- */

/* Without a driver. */

/* -- the clock -- */

typedef struct world {
    double ppm, offset; /* of the device's clock */
    double doubt;       /* of each anchor */
    uint64_t chance;
} world;

static double device_at(const world *w, double host)
{
    return (host - w->offset) * (1 + w->ppm * 1e-6);
}

static double some(world *w) /* -1 .. 1 */
{
    w->chance = w->chance * 6364136223846793005u + 1442695040888963407u;
    return (double)(w->chance >> 11) / (double)(1ull << 52) - 1;
}

static void anchor(pki_cuda_clock *c, world *w, double host)
{
    double error = some(w) * w->doubt;
    pki_cuda_clock_anchor(c, (pki_cuda_point){device_at(w, host), host + error, w->doubt});
}

/* The worst error of what is read within so many seconds, with an anchor every 2 s. */
static double worst(pki_cuda_clock *c, world *w, double from, double until)
{
    double most = 0, last = -1;
    for (double host = from; host < until; host += 10e6) {
        if (fmod(host, 2e9) < 10e6)
            anchor(c, w, host);
        double said = pki_cuda_clock_ns(c, device_at(w, host - 1e6));
        assert_true(said >= last); /* it never runs backwards */
        last = said;
        most = fmax(most, fabs(said - (host - 1e6)));
    }
    return most;
}

static void a_clock_that_drifts(void **state)
{
    static const double rates[] = {0, 5, -5, 40, -40, 150};
    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        pki_cuda_clock c = {0};
        world w = {rates[i], 12345, 8000, 7};
        for (int k = 0; k < 4; k++)
            anchor(&c, &w, (double[]){0, 40e6, 200e6, 1e9}[k]);
        assert_true(worst(&c, &w, 2e9, 20e9) < 330000 * fabs(rates[i]) / 150 + 60000);
        assert_true(worst(&c, &w, 20e9, 200e9) < 3 * w.doubt);
    }
}

/* The temperature changes, and the rate with it: what is said follows. */
static void a_rate_that_changes(void **state)
{
    (void)state;
    pki_cuda_clock c = {0};
    world w = {10, 0, 4000, 3};
    anchor(&c, &w, 0);
    assert_true(worst(&c, &w, 2e9, 100e9) < 60000);
    double device = device_at(&w, 100e9);
    w.ppm = 14;
    w.offset = 100e9 - device / (1 + w.ppm * 1e-6);
    assert_true(worst(&c, &w, 100e9, 300e9) < 30000);
}

/* The machine slept, and the device's clock did not count it: a jump, not a bend of hours. */
static void a_clock_that_stood_still(void **state)
{
    (void)state;
    pki_cuda_clock c = {0};
    world w = {0, 0, 4000, 5};
    anchor(&c, &w, 0);
    worst(&c, &w, 2e9, 10e9);
    w.offset += 3600e9;
    anchor(&c, &w, 3612e9);
    double error = pki_cuda_clock_ns(&c, device_at(&w, 3612.5e9)) - 3612.5e9;
    assert_true(fabs(error) < 3 * w.doubt + 2e5);
}

static void steps_of_a_float(void **state)
{
    (void)state;
    assert_true(pki_cuda_quantum_ns(1000) < 62);
    assert_true(pki_cuda_quantum_ns(-4000) > 240 && pki_cuda_quantum_ns(4000) < 250);
    assert_true(pki_cuda_quantum_ns(60000) > 3900);
}

/* -- the pool -- */

static void grown_in_batches(void **state)
{
    (void)state;
    static pki_cuda_pool pool;
    bool seen[129] = {false};
    assert_int_equal(pki_cuda_pool_acquire(&pool), 0);
    for (int batch = 0; batch < 2; batch++)
        assert_int_equal(pki_cuda_pool_grow(&pool, the_context), CUDA_SUCCESS);
    for (unsigned i = 0; i < 128; i++) {
        uint32_t pair = pki_cuda_pool_acquire(&pool);
        assert_in_range(pair, 1, 128);
        assert_false(seen[pair]);
        assert_non_null(pki_cuda_pair_at(&pool, pair)->begin);
        seen[pair] = true;
    }
    assert_int_equal(pki_cuda_pool_acquire(&pool), 0);
    pki_cuda_pool_release(&pool, 77);
    assert_int_equal(pki_cuda_pool_acquire(&pool), 77);
}

static void a_batch_that_fails(void **state)
{
    (void)state;
    static pki_cuda_pool pool;
    unsigned before = gpu->events();
    gpu->let_fail(FAKE_EVENT_CREATE, 11, 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(pki_cuda_pool_grow(&pool, the_context), CUDA_SUCCESS);
    assert_int_equal(pool.pairs, 5); /* the sixth has no end */
    assert_int_equal(gpu->events(), before + 10);
    gpu->let_fail(FAKE_EVENT_CREATE, 0, 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(pki_cuda_pool_grow(&pool, the_context), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(pki_cuda_pool_grow(&pool, the_context), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(pool.batches, 2); /* not tried again until somebody says so */
}

enum { THREADS = 4, ROUNDS = 20000 };
static pki_cuda_pool shared;
static uint32_t holders[65];

/* Nobody has a pair that somebody else has. */
static void *take_and_give(void *arg)
{
    uintptr_t wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t mine[3];
        for (int k = 0; k < 3; k++) {
            mine[k] = pki_cuda_pool_acquire(&shared);
            if (mine[k])
                wrong += __atomic_exchange_n(&holders[mine[k]], 1u, __ATOMIC_RELAXED) != 0;
        }
        for (int k = 0; k < 3; k++)
            if (mine[k]) {
                __atomic_store_n(&holders[mine[k]], 0u, __ATOMIC_RELAXED);
                pki_cuda_pool_release(&shared, mine[k]);
            }
    }
    (void)arg;
    return (void *)wrong;
}

static void by_many_threads(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    assert_int_equal(pki_cuda_pool_grow(&shared, the_context), CUDA_SUCCESS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    unsigned left = 0;
    while (pki_cuda_pool_acquire(&shared))
        left++;
    assert_int_equal(left, 64);
}

static const struct CMUnitTest gpu_clock_tests[] = {
    cmocka_unit_test(a_clock_that_drifts),
    cmocka_unit_test(a_rate_that_changes),
    cmocka_unit_test(a_clock_that_stood_still),
    cmocka_unit_test(steps_of_a_float),
    with_gpu(grown_in_batches),
    with_gpu(a_batch_that_fails),
    with_gpu(by_many_threads),
};

static int run_gpu_clock(int argc, char **argv)
{
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(gpu_clock_tests, NULL, NULL);
}

/* ---- many threads, streams, contexts and sessions at once, on the mock of the driver ---- */

/* What ThreadSanitizer is to see, and the books that have to balance. */

enum { GPU_THREADS_THREADS = 4, GPU_THREADS_ROUNDS = 400 };

static pk_region gpu_threads_outer = PK_REGION("outer"), inner = PK_REGION("inner");
static CUcontext contexts[2];
static CUstream gpu_threads_shared;
static uint32_t go_on;

static void some_spans(CUstream stream)
{
    pk_gpu_begin(&gpu_threads_outer, stream);
    pk_gpu_begin(&inner, stream);
    pk_gpu_end(&inner, stream);
    pk_gpu_end(&gpu_threads_outer, stream);
}

static void *work(void *arg)
{
    uintptr_t n = (uintptr_t)arg;
    gpu->context_current(contexts[n % 2]);
    CUstream own = gpu->stream_create(contexts[n % 2]);
    for (int i = 0; i < GPU_THREADS_ROUNDS; i++) {
        some_spans(own);
        some_spans(CU_STREAM_PER_THREAD);
        some_spans(NULL);
        some_spans(gpu_threads_shared);
        if (i % 50 == 0)
            sleep_ms(5);
    }
    return NULL;
}

static void run(void *(*body)(void *), unsigned threads)
{
    pthread_t t[GPU_THREADS_THREADS];
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
    gpu_threads_shared = gpu->stream_create(contexts[0]);
    return 0;
}

static void threads_and_streams(void **state)
{
    (void)state;
    run(work, GPU_THREADS_THREADS);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.begun, GPU_THREADS_THREADS * GPU_THREADS_ROUNDS * 8);
    assert_int_equal(c.recorded + c.dropped, c.begun);
    assert_int_equal(c.contexts, 2);
    assert_int_equal(spans_of(&gpu_threads_outer) + spans_of(&inner), c.recorded);
}

/* The stream has a context, the thread has none: it gets one for the calls that want it, and has
 * none afterwards. */
static void *spans_without_a_context(void *arg)
{
    gpu->context_current(NULL);
    for (int i = 0; i < 10; i++)
        some_spans(gpu_threads_shared);
    pk_gpu_begin(&gpu_threads_outer, NULL); /* nobody's default stream */
    return arg;
}

static void a_thread_without_a_context(void **state)
{
    (void)state;
    run(spans_without_a_context, 1);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 20);
    assert_int_equal(c.skipped, 1);
    assert_int_equal(spans_of(&gpu_threads_outer), 10);
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
    some_spans(gpu_threads_shared);
    return arg;
}

/* Threads that come and go leave their lanes to others. */
static void short_threads(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++)
        run(one_span, GPU_THREADS_THREADS);
    assert_int_equal(stop_and_count().recorded, 60 * GPU_THREADS_THREADS * 4);
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
    run(work, GPU_THREADS_THREADS);
    pthread_join(killer, NULL);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.begun, GPU_THREADS_THREADS * GPU_THREADS_ROUNDS * 8);
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
    run(replay, GPU_THREADS_THREADS);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.captured, GPU_THREADS_THREADS * 20);
    assert_in_range(c.begun - c.sampled, GPU_THREADS_THREADS * 10 * 24 * 2,
                    GPU_THREADS_THREADS * 10 * 24 * 2);
}

static const struct CMUnitTest gpu_threads_tests[] = {
    cmocka_unit_test_setup_teardown(threads_and_streams, start_two, stop_gpu),
    cmocka_unit_test_setup_teardown(a_thread_without_a_context, start_two, stop_gpu),
    cmocka_unit_test_setup_teardown(rings_go_round, start_two, stop_gpu),
    cmocka_unit_test_setup_teardown(short_threads, start_two, stop_gpu),
    cmocka_unit_test_setup_teardown(sessions_meanwhile, start_two, stop_gpu),
    cmocka_unit_test_setup_teardown(a_context_dies_meanwhile, start_two, stop_gpu),
    cmocka_unit_test_setup_teardown(graphs_meanwhile, start_two, stop_gpu),
};

static int run_gpu_threads(int argc, char **argv)
{
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(gpu_threads_tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    int failed = run_gpu_driver(argc, argv);
    failed += run_gpu_clock(argc, argv);
    failed += run_gpu_threads(argc, argv);
    return failed;
}
