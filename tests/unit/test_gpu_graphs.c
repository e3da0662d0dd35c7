/* Captures and graphs on the double of the driver: whose spans are read at each replay, which are
 * skipped, and that nobody's capture is spoilt. */
#include "gpu.h"

static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_COMPUTE, "inner");
static pk_region other = PK_REGION("other");

/* outer { inner, inner } and what is in them */
static CUgraph capture_with(CUstreamCaptureMode mode)
{
    CUgraph graph;
    assert_int_equal(gpu->capture_begin(the_stream, mode), CUDA_SUCCESS);
    gpu->work(the_stream);
    pk_gpu_begin(&outer, the_stream);
    for (int i = 0; i < 2; i++)
        PK_GPU_SCOPE(inner, the_stream)
        {
            gpu->work(the_stream);
        }
    pk_gpu_end(&outer, the_stream);
    assert_int_equal(gpu->capture_end(the_stream, &graph), CUDA_SUCCESS);
    return graph;
}

static CUgraph capture(void)
{
    return capture_with(CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static void nothing_before_the_first_replay(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    sleep_ms(40);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.captured, 3);
    assert_int_equal(c.begun, 0);
    assert_int_equal(spans_of(&outer), 0);
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

/* However fast they follow each other. */
static void announced_replays(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    for (int i = 0; i < 500; i++) {
        pk_gpu_graph_launching(exec, graph, the_stream);
        gpu->launch(exec, the_stream);
        sleep_ms(i % 50 == 0 ? 30 : 0); /* sets are used again */
    }
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.begun, 1500);
    assert_int_equal(c.replayed + c.dropped, 1500);
    assert_int_equal(c.recorded, c.replayed);
    assert_int_equal(c.sampled, 0);
    assert_true(c.recorded >= 3 * 64);
    assert_int_equal(spans_of(&inner), 2 * spans_of(&outer));
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

/* In flight: handed over, and run later, one after the other. */
static void replays_in_flight(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    gpu->hold(true);
    for (int i = 0; i < 20; i++) {
        pk_gpu_graph_launching(exec, graph, the_stream);
        gpu->launch(exec, the_stream);
    }
    sleep_ms(30);
    assert_int_equal(counts_now().recorded, 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(gpu->run(the_stream, 6), 6);
        await(counts_now().recorded == (uint64_t)(i + 1) * 3);
    }
    gpu->hold(false);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.replayed, 60);
    assert_int_equal(c.begun, 60);
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

/* A replay that was announced and then not launched is lost, and no other one is. */
static void announced_and_not_launched(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    for (int i = 0; i < 10; i++) {
        pk_gpu_graph_launching(exec, graph, the_stream);
        if (i != 4)
            gpu->launch(exec, the_stream);
        sleep_ms(i == 6 ? 50 : 0);
    }
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.replayed, 27);
    assert_int_equal(c.lost, 3);
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

/* Nobody announces: what is found stamped anew is a replay's; what was in between is missing. */
static void sampled_replays(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 3; k++)
            gpu->launch(exec, the_stream);
        await(counts_now().sampled == (uint64_t)(i + 1) * 3);
    }
    sleep_ms(40); /* the same stamps again are nothing new */
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.sampled, 15);
    assert_int_equal(c.recorded, 15);
    expect_words("without pk_gpu_graph_launching");
    assert_int_equal(pk_start(pk_options(.backends = "cuda")), PK_OK);
    sleep_ms(40); /* nor in another session */
    assert_int_equal(counts_now().recorded, 0);
    gpu->launch(exec, the_stream);
    await(counts_now().sampled == 3);
    assert_int_equal(stop_and_count().recorded, 3);
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

/* A replay that is half done when it is looked at is not taken for a whole one. */
static void half_a_replay(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    gpu->launch(exec, the_stream);
    await(counts_now().sampled == 3);
    gpu->hold(true);
    gpu->launch(exec, the_stream);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(gpu->run(the_stream, 1), 1);
        sleep_ms(25);
        assert_int_equal(counts_now().sampled, 3);
    }
    gpu->hold(false);
    await(counts_now().sampled == 6);
    stop_and_count();
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

static void destroyed(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    pk_gpu_graph_launching(exec, graph, the_stream);
    gpu->launch(exec, the_stream);
    await(counts_now().recorded == 3);
    unsigned before = gpu->events();
    uint64_t pairs = counts_now().pairs;
    gpu->graph_destroy(graph); /* exec lives on: so do the events */
    sleep_ms(30);
    assert_int_equal(gpu->events(), before);
    gpu->exec_destroy(exec);
    await(gpu->events() == before - 6); /* the set's; the captured ones are the pool's again */
    for (int i = 0; i < 64; i++)
        span(&other); /* all at once, if the pool has them */
    assert_int_equal(counts_now().pairs, pairs);
    assert_int_equal(stop_and_count().lost, 0);
}

/* Each iteration captures anew: records and events are used again. */
static void many_graphs(void **state)
{
    (void)state;
    uint64_t pairs = 0;
    for (int i = 0; i < 60; i++) {
        CUgraph graph = capture();
        CUgraphExec exec = gpu->instantiate(graph);
        pk_gpu_graph_launching(exec, graph, the_stream);
        gpu->launch(exec, the_stream);
        await(counts_now().recorded == (uint64_t)(i + 1) * 3);
        gpu->exec_destroy(exec);
        gpu->graph_destroy(graph);
        sleep_ms(i % 10 == 0 ? 25 : 0);
        pairs = i == 20 ? counts_now().pairs : pairs;
    }
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.captured, 180);
    assert_int_equal(c.recorded, 180);
    assert_in_range(c.pairs, pairs, pairs + 64);
}

static void split_over_a_capture(void **state)
{
    CUgraph graph;
    (void)state;
    pk_gpu_begin(&outer, the_stream);
    gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    pk_gpu_end(&outer, the_stream);
    pk_gpu_begin(&inner, the_stream);
    assert_int_equal(gpu->capture_end(the_stream, &graph), CUDA_SUCCESS);
    pk_gpu_end(&inner, the_stream);
    span(&other);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.begun, 3);
    assert_int_equal(c.skipped, 2);
    assert_int_equal(c.recorded, 1);
    expect_words("only one end");
    gpu->graph_destroy(graph);
}

static void legacy_stream_meanwhile(void **state)
{
    CUgraph graph;
    (void)state;
    pk_gpu_begin(&other, NULL);
    gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    pk_gpu_end(&other, NULL); /* would be an implicit dependency on the capture */
    pk_gpu_begin(&outer, NULL);
    pk_gpu_end(&outer, NULL);
    assert_int_equal(gpu->capture_end(the_stream, &graph), CUDA_SUCCESS);
    pk_gpu_begin(&inner, NULL);
    pk_gpu_end(&inner, NULL);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.skipped, 2);
    assert_int_equal(c.recorded, 1);
    expect_words("default stream cannot be used");
    gpu->graph_destroy(graph);
}

/* A capture of mode GLOBAL while the collector polls, the pool grows, and sessions come and go. */
static void nobodys_capture_is_spoilt(void **state)
{
    CUgraph graph;
    (void)state;
    CUstream busy = gpu->stream_create(the_context);
    gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    for (int i = 0; i < 300; i++) {
        pk_gpu_begin(&other, busy);
        pk_gpu_end(&other, busy);
        pk_gpu_begin(&inner, the_stream);
        pk_gpu_end(&inner, the_stream);
    }
    await(counts_now().recorded == 300);
    assert_int_equal(pk_flush(), PK_OK);
    stop_and_count();
    assert_int_equal(pk_start(pk_options(.backends = "cuda")), PK_OK);
    pk_gpu_begin(&other, busy);
    pk_gpu_end(&other, busy);
    await(counts_now().recorded == 1);
    assert_int_equal(gpu->capture_end(the_stream, &graph), CUDA_SUCCESS);
    assert_int_equal(gpu->invalidated(), 0);
    stop_and_count();
    gpu->graph_destroy(graph);
}

static void invalid_capture(void **state)
{
    CUgraph graph;
    (void)state;
    span(&outer);
    gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    gpu->let_fail(FAKE_EVENT_RECORD_FLAGS, 0, 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    span(&inner);
    gpu->let_fail(FAKE_CAPTURE_INFO, 0, 1, CUDA_ERROR_UNKNOWN);
    span(&inner);
    assert_int_equal(gpu->capture_end(the_stream, &graph), CUDA_SUCCESS);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.skipped, 2);
    assert_int_equal(c.recorded, 1);
    expect_words("could not be followed");
    gpu->graph_destroy(graph);
}

/* Another graph of the same handle, without spans: its exec is not touched. */
static void a_graph_that_is_not_the_captured(void **state)
{
    (void)state;
    CUgraph graph = capture(), another;
    gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    gpu->work(the_stream);
    assert_int_equal(gpu->capture_end(the_stream, &another), CUDA_SUCCESS);
    CUgraphExec exec = gpu->instantiate(another);
    gpu->count_anew();
    pk_gpu_graph_launching(exec, another, the_stream);
    pk_gpu_graph_launching(NULL, graph, the_stream);
    pk_gpu_graph_launching(exec, NULL, the_stream);
    assert_int_equal(gpu->calls(FAKE_EXEC_SET_EVENT), 0);
    assert_int_equal(stop_and_count().begun, 0);
    gpu->exec_destroy(exec);
    gpu->graph_destroy(another);
    gpu->graph_destroy(graph);
}

static void nodes_that_cannot_be_set(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    gpu->let_fail(FAKE_EXEC_SET_EVENT, 3, 1, CUDA_ERROR_INVALID_VALUE);
    for (int i = 0; i < 3; i++) {
        pk_gpu_graph_launching(exec, graph, the_stream);
        gpu->launch(exec, the_stream);
    }
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.skipped, 3);
    assert_int_equal(c.recorded, c.sampled);
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

/* Two streams take part: each has its order, and a track. */
static void branches(void **state)
{
    CUgraph graph;
    (void)state;
    CUstream side = gpu->stream_create(the_context);
    gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    gpu->work(the_stream);
    gpu->capture_join(side, the_stream);
    pk_gpu_begin(&outer, the_stream);
    pk_gpu_begin(&inner, side);
    pk_gpu_end(&outer, the_stream);
    pk_gpu_end(&inner, side);
    assert_int_equal(gpu->capture_end(the_stream, &graph), CUDA_SUCCESS);
    CUgraphExec exec = gpu->instantiate(graph);
    for (int i = 0; i < 5; i++) {
        pk_gpu_graph_launching(exec, graph, the_stream);
        gpu->launch(exec, the_stream);
    }
    await(counts_now().recorded == 10);
    assert_int_equal(spans_of(&outer), 5);
    assert_int_equal(spans_of(&inner), 5);
    CUgraphExec second = gpu->instantiate(graph);
    gpu->launch(second, the_stream);
    await(counts_now().sampled == 2);
    stop_and_count();
    gpu->exec_destroy(second);
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

/* A begin without an end stays in the graph; its replays are not confused by it. */
static void never_ended(void **state)
{
    CUgraph graph;
    (void)state;
    gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    pk_gpu_begin(&outer, the_stream);
    span(&inner);
    assert_int_equal(gpu->capture_end(the_stream, &graph), CUDA_SUCCESS);
    CUgraphExec exec = gpu->instantiate(graph);
    for (int i = 0; i < 100; i++) {
        pk_gpu_graph_launching(exec, graph, the_stream);
        gpu->launch(exec, the_stream);
        await(counts_now().recorded == (uint64_t)i + 1);
    }
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.recorded, 100);
    assert_int_equal(c.lost, 1); /* the begin itself */
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        with_gpu(nothing_before_the_first_replay),
        with_gpu(announced_replays),
        with_gpu(replays_in_flight),
        with_gpu(announced_and_not_launched),
        with_gpu(sampled_replays),
        with_gpu(half_a_replay),
        with_gpu(destroyed),
        with_gpu(many_graphs),
        with_gpu(split_over_a_capture),
        with_gpu(legacy_stream_meanwhile),
        with_gpu(nobodys_capture_is_spoilt),
        with_gpu(invalid_capture),
        with_gpu(a_graph_that_is_not_the_captured),
        with_gpu(nodes_that_cannot_be_set),
        with_gpu(branches),
        with_gpu(never_ended),
    };
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
