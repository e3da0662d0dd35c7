/* pk/nccl.h in graphs: operations that are captured, and replayed. */
#include "gpu_operations.h"

static CUgraph capture(void)
{
    CUgraph graph;
    assert_int_equal(gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    pk_region_begin(&layer);
    all_reduce(world, 100, the_stream, 0);
    pk_nccl_group_start();
    message(PK_OP_SEND, 16, 3);
    all_reduce(other, 5, the_stream, 0);
    end_group(0);
    pk_region_end(&layer);
    assert_int_equal(gpu->capture_end(the_stream, &graph), 0);
    return graph;
}

static void replays(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    for (int i = 0; i < 10; i++) {
        pk_gpu_graph_launching(exec, graph, the_stream);
        gpu->launch(exec, the_stream);
    }
    pk_gpu_counts c = finish();
    assert_int_equal(c.captured, 2);
    assert_int_equal(c.replayed, 20);
    assert_int_equal(c.operations, 20);
    json_t *e = operation(27); /* of the last replay: each is an operation and a group of two */
    assert_string_equal(text(e, "Collective name"), "all_reduce");
    assert_string_equal(text(e, "region"), "layer");
    assert_int_equal(number(e, "bytes"), 400);
    assert_int_equal(number(e, "Seq"), 19);
    assert_true(number(e, "graph") > 0);
    assert_non_null(operation(29));
    assert_null(operation(30));
    assert_int_equal(of_world("enqueued"), 20);
    assert_int_equal(of_world("completed"), 20);
    assert_int_equal(of_other("completed"), 10);
    gpu->graph_destroy(graph);
    gpu->exec_destroy(exec);
}

static void replays_unannounced(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    gpu->launch(exec, the_stream);
    await(counts_now().sampled == 2);
    pk_gpu_counts c = finish();
    assert_int_equal(c.operations, 2);
    assert_int_equal(of_world("completed"), 2);
    assert_non_null(operation(2));
    gpu->graph_destroy(graph);
    gpu->exec_destroy(exec);
}

/* Announced, launched, and not reached. */
static void replays_lost(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    gpu->hold(true);
    pk_gpu_graph_launching(exec, graph, the_stream);
    gpu->launch(exec, the_stream);
    pk_gpu_counts c = finish();
    assert_int_equal(c.lost, 2);
    assert_int_equal(of_world("enqueued"), 2);
    assert_int_equal(of_world("completed"), 0);
    gpu->graph_destroy(graph);
    gpu->exec_destroy(exec);
}

/* NCCL refused what was captured: it is nothing in a replay, and what else there is, is told. */
static void refused_in_a_capture(void **state)
{
    CUgraph graph;
    (void)state;
    assert_int_equal(gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    all_reduce(world, 100, the_stream, 4);
    all_reduce(world, 200, the_stream, 0);
    assert_int_equal(gpu->capture_end(the_stream, &graph), 0);
    CUgraphExec exec = gpu->instantiate(graph);
    for (int i = 0; i < 5; i++) {
        pk_gpu_graph_launching(exec, graph, the_stream);
        gpu->launch(exec, the_stream);
    }
    pk_gpu_counts c = finish();
    assert_int_equal(c.captured, 1);
    assert_int_equal(c.refused, 1);
    assert_int_equal(c.operations, 5);
    assert_int_equal(number(operation(0), "bytes"), 800);
    assert_null(operation(5));
    assert_int_equal(of_world("completed"), 5);
    gpu->graph_destroy(graph);
    gpu->exec_destroy(exec);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        traced(replays),
        traced(replays_unannounced),
        traced(replays_lost),
        traced(refused_in_a_capture),
    };
    if (argc != 2)
        return 2;
    open_double(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
