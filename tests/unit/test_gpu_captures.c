/* Captures on the mock of the driver: which spans are skipped, which graphs are left alone, and
 * that nobody's capture is spoilt. */
#include "gpu_capture.h"

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

/* The captured graph is gone, its exec is not; another graph has its handle. */
static void a_handle_used_again(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    gpu->graph_again(graph);
    CUgraphExec another = gpu->instantiate(graph);
    gpu->count_anew();
    pk_gpu_graph_launching(another, graph, the_stream);
    assert_int_equal(gpu->calls(FAKE_EXEC_SET_EVENT), 0);
    assert_int_equal(stop_and_count().begun, 0);
    gpu->exec_destroy(another);
    gpu->exec_destroy(exec);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        with_gpu(split_over_a_capture),
        with_gpu(legacy_stream_meanwhile),
        with_gpu(nobodys_capture_is_spoilt),
        with_gpu(invalid_capture),
        with_gpu(a_graph_that_is_not_the_captured),
        with_gpu(a_handle_used_again),
        with_gpu(nodes_that_cannot_be_set),
    };
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
