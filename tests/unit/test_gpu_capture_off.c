/* Captures whose graphs take no events, on the mock of the driver: spans are kept out of them, by
 * themselves where that can be known, else by PK_GPU_CAPTURE=off; and the program's graph is what
 * it would be without perfkit. */
#include "gpu_capture.h"

static CUstream branch;

static int start_with_branch(void **state)
{
    int failed = start_gpu(state);
    branch = gpu->stream_create(the_context);
    return failed;
}

static int start_off(void **state)
{
    gpu->reset();
    the_context = gpu->context_create(0);
    the_stream = gpu->stream_create(the_context);
    (void)state;
    return pk_start(pk_options(.backends = "cuda", .gpu_capture = "off"));
}

/* outer { inner, inner } { if: inner } as a graph; what is in the body's capture is body(). */
static CUgraph capture_conditional(CUgraph *body_out, void (*body)(void))
{
    CUgraph graph, captured;
    assert_int_equal(gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    pk_gpu_begin(&outer, the_stream);
    gpu->work(the_stream);
    CUgraph inside = gpu->conditional(the_stream);
    assert_int_equal(gpu->capture_begin_to(branch, inside, CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_SUCCESS);
    body();
    assert_int_equal(gpu->capture_end(branch, &captured), CUDA_SUCCESS);
    pk_gpu_end(&outer, the_stream);
    assert_int_equal(gpu->capture_end(the_stream, &graph), CUDA_SUCCESS);
    *body_out = inside;
    return graph;
}

static void two_spans(void)
{
    for (int i = 0; i < 2; i++) {
        pk_gpu_begin(&inner, branch);
        gpu->work(branch);
        pk_gpu_end(&inner, branch);
    }
}

/* The body has its two kernels; the graph around it has its span as ever. */
static void bodies_of_conditional_nodes(void **state)
{
    CUgraph body;
    (void)state;
    CUgraph graph = capture_conditional(&body, two_spans);
    assert_int_equal(gpu->nodes(body), 2);
    CUgraphExec exec = gpu->instantiate(graph);
    assert_non_null(exec);
    pk_gpu_graph_launching(exec, graph, the_stream);
    gpu->launch(exec, the_stream);
    await(counts_now().recorded == 1);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.captured, 1);
    assert_int_equal(c.skipped, 2);
    assert_int_equal(c.kept_out, 2);
    expect_words("takes no event nodes");
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
    gpu->graph_destroy(body);
}

static void nothing_but_a_kernel(void)
{
    gpu->work(branch);
}

/* The driver is asked once for each body, and what it answered of one is not another's. */
static void a_body_is_asked_once(void **state)
{
    CUgraph body[2], graph[2];
    (void)state;
    gpu->count_anew();
    graph[0] = capture_conditional(&body[0], nothing_but_a_kernel);
    assert_int_equal(gpu->calls(FAKE_ADD_EVENT_NODE), 1); /* of the graph around it */
    graph[1] = capture_conditional(&body[1], two_spans);
    assert_int_equal(gpu->calls(FAKE_ADD_EVENT_NODE), 3);
    assert_int_equal(stop_and_count().kept_out, 2);
    for (int i = 0; i < 2; i++) {
        gpu->graph_destroy(graph[i]);
        gpu->graph_destroy(body[i]);
    }
}

/* A capture to a graph that was there before is no body by that alone. */
static void captures_to_other_graphs(void **state)
{
    CUgraph graph = gpu->graph_create(), captured;
    (void)state;
    assert_int_equal(gpu->capture_begin_to(the_stream, graph, CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_SUCCESS);
    span(&inner);
    assert_int_equal(gpu->capture_end(the_stream, &captured), CUDA_SUCCESS);
    CUgraphExec exec = gpu->instantiate(graph);
    pk_gpu_graph_launching(exec, graph, the_stream);
    gpu->launch(exec, the_stream);
    await(counts_now().recorded == 1);
    assert_int_equal(stop_and_count().kept_out, 0);
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

/* Between kernels whose dependency is programmatic; further on in the same capture there may. */
static void programmatic_dependencies(void **state)
{
    CUgraph graph;
    (void)state;
    assert_int_equal(gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    span(&inner);
    pk_gpu_begin(&outer, the_stream);
    gpu->programmatic(the_stream);
    pk_gpu_end(&outer, the_stream);
    span(&inner);
    gpu->work(the_stream);
    span(&inner);
    assert_int_equal(gpu->capture_end(the_stream, &graph), CUDA_SUCCESS);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.captured, 2);
    assert_int_equal(c.kept_out, 2);
    assert_int_equal(c.skipped, 2);
    expect_words("programmatic");
    gpu->graph_destroy(graph);
}

/* What cannot be known while a graph is captured: whether it is for launches from the device. */
static void graphs_for_the_device(void **state)
{
    CUgraphExec exec;
    (void)state;
    CUgraph graph = capture();
    assert_int_equal(gpu->nodes(graph), 3); /* the kernels */
    assert_int_equal(gpu->instantiate_for_device(graph, &exec), CUDA_SUCCESS);
    span(&other); /* outside a capture nothing has changed */
    await(counts_now().recorded == 1);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.captured, 0);
    assert_int_equal(c.skipped, 3);
    assert_int_equal(c.kept_out, 3);
    expect_words("PK_GPU_CAPTURE");
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

/* The same of a communicator's operations, which are not done while they are captured. */
static void operations_in_captures(void **state)
{
    CUgraph graph;
    (void)state;
    pk_comm *comm = pk_comm_create("NCCL", "world", 7, 0, 2);
    assert_int_equal(gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    pk_nccl_begin(comm, PK_OP_ALL_REDUCE, PK_TYPE_FLOAT32, 100, -1, the_stream);
    gpu->work(the_stream);
    pk_nccl_end(comm, the_stream, 0);
    assert_int_equal(gpu->capture_end(the_stream, &graph), CUDA_SUCCESS);
    assert_int_equal(gpu->nodes(graph), 1);
    pk_nccl_begin(comm, PK_OP_ALL_REDUCE, PK_TYPE_FLOAT32, 100, -1, the_stream);
    pk_nccl_end(comm, the_stream, 0);
    await(counts_now().operations == 1);
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.kept_out, 1);
    gpu->graph_destroy(graph);
}

/* Graphs have a bound of their own: what they hold is missing to nobody else. */
static void a_bound_of_their_own(void **state)
{
    enum { ALL = 16384, IN_ONE = 256, GRAPHS = ALL / IN_ONE };
    static CUgraph graphs[GRAPHS + 1];
    (void)state;
    for (int g = 0; g <= GRAPHS; g++) {
        gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_RELAXED);
        for (int i = 0; i < (g < GRAPHS ? IN_ONE : 10); i++)
            span(&inner);
        assert_int_equal(gpu->capture_end(the_stream, &graphs[g]), CUDA_SUCCESS);
    }
    pk_gpu_counts c = counts_now();
    assert_int_equal(c.captured, ALL);
    assert_int_equal(c.dropped, 10);
    expect_words("graphs hold as many pairs");
    for (int i = 0; i < 3000; i++) /* all others are as free as ever */
        span(&other);
    await(counts_now().recorded + counts_now().dropped == 3010);
    assert_int_equal(counts_now().recorded, 3000);
    for (int g = 0; g <= GRAPHS; g++)
        gpu->graph_destroy(graphs[g]);
    sleep_ms(100);
    CUgraph again = capture(); /* theirs are free as well */
    c = stop_and_count();
    assert_int_equal(c.captured, ALL + 3);
    assert_int_equal(c.dropped, 10);
    gpu->graph_destroy(again);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bodies_of_conditional_nodes, start_with_branch, stop_gpu),
        cmocka_unit_test_setup_teardown(a_body_is_asked_once, start_with_branch, stop_gpu),
        with_gpu(captures_to_other_graphs),
        with_gpu(programmatic_dependencies),
        cmocka_unit_test_setup_teardown(graphs_for_the_device, start_off, stop_gpu),
        cmocka_unit_test_setup_teardown(operations_in_captures, start_off, stop_gpu),
        with_gpu(a_bound_of_their_own),
    };
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
