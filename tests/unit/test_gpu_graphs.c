/* Graphs on the mock of the driver: spans that were captured are read at their replays, and
 * nobody's capture is spoilt. */
#include <pk/nccl.h>

#include "gpu.h"

#include "session/backend.h"
#include "session/session.h"

/* ---- a graph with spans in it ---- */

static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_COMPUTE, "inner");
static pk_region other = PK_REGION("other");

/* outer { inner, inner } and what is in them */
static CUgraph capture_with(CUstreamCaptureMode mode)
{
    CUgraph graph;
    assert_int_equal(gpu->capture_begin(the_stream, mode), CUDA_SUCCESS);
    gpu->work(the_stream);
    pk_gpu_begin(&outer, the_stream);
    for (int i = 0; i < 2; i++) {
        PK_GPU_SCOPE(inner, the_stream);
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

/* ---- graphs on the mock of the driver ---- */

/* Spans that were captured are read at their replays. */

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

/* More than there is room for, which stamp the captured events; these are nobody's replay, then. */
static void dropped_replays_count_once(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    for (int i = 0; i < 5000; i++) {
        if (i == 0)
            pthread_mutex_lock(&pki_asking_lock); /* nobody reads what comes first */
        pk_gpu_graph_launching(exec, graph, the_stream);
        gpu->launch(exec, the_stream);
        if (i == 100)
            pthread_mutex_unlock(&pki_asking_lock);
    }
    assert_int_equal(pk_flush(), PK_OK); /* they are looked at */
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.begun, 15000);
    assert_true(c.dropped > 0);
    assert_int_equal(c.sampled, 0);
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

/* What a set of events holds from an earlier replay is not this one's, which has not begun. */
static void announced_long_before(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    for (int i = 0; i < 6; i++) {
        pk_gpu_graph_launching(exec, graph, the_stream);
        sleep_ms(30);
        assert_int_equal(counts_now().recorded, (uint64_t)i * 3);
        gpu->launch(exec, the_stream);
        await(counts_now().recorded == (uint64_t)(i + 1) * 3);
    }
    assert_int_equal(stop_and_count().replayed, 18);
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
        pthread_mutex_lock(&pki_asking_lock); /* the asker sees the last one alone */
        for (int k = 0; k < 3; k++)
            gpu->launch(exec, the_stream);
        pthread_mutex_unlock(&pki_asking_lock);
        await(counts_now().sampled == (uint64_t)(i + 1) * 3);
    }
    sleep_ms(40); /* the same stamps again are nothing new */
    pk_gpu_counts c = stop_and_count();
    assert_int_equal(c.sampled, 15);
    assert_int_equal(c.recorded, 15);
    expect_words("without pk_gpu_graph_launching");
    assert_int_equal(pk_start(pk_options(.backends = "cuda")), PK_OK);
    assert_int_equal(pk_flush(), PK_OK); /* nor in another session, where they are looked at */
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
    gpu->hold(true);
    gpu->launch(exec, the_stream);
    gpu->launch(exec, the_stream);
    pthread_mutex_lock(&pki_asking_lock); /* the asker does not see the first one alone */
    assert_int_equal(gpu->run(the_stream, 9), 9);
    pthread_mutex_unlock(&pki_asking_lock);
    sleep_ms(40);
    assert_int_equal(counts_now().sampled, 6);
    gpu->hold(false);
    await(counts_now().sampled == 9);
    stop_and_count();
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

static uint32_t look; /* of the asker's: 1 wanted, 2 begun, 3 to go on */

static void wait_amid_look(CUresult answer)
{
    (void)answer;
    uint32_t wanted = 1;
    if (__atomic_compare_exchange_n(&look, &wanted, 2, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        await(__atomic_load_n(&look, __ATOMIC_ACQUIRE) == 3);
}

/* The asker has counted the nodes of a graph that is being captured, and reads their events
 * when it has been launched: that is no replay of a graph of one node. */
static void launched_amid_a_look(void **state)
{
    CUgraph graph;
    (void)state;
    gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    pk_gpu_begin(&outer, the_stream);
    __atomic_store_n(&look, 1, __ATOMIC_RELEASE);
    gpu->on_query(wait_amid_look);
    await(__atomic_load_n(&look, __ATOMIC_ACQUIRE) == 2);
    span(&inner);
    pk_gpu_end(&outer, the_stream);
    assert_int_equal(gpu->capture_end(the_stream, &graph), CUDA_SUCCESS);
    CUgraphExec exec = gpu->instantiate(graph);
    gpu->launch(exec, the_stream);
    gpu->on_query(NULL);
    __atomic_store_n(&look, 3, __ATOMIC_RELEASE);
    await(counts_now().sampled == 2);
    assert_int_equal(stop_and_count().recorded, 2);
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

/* The events that the capture gets have been stamped by spans before it: that is no replay. */
static void captured_behind_spans(void **state)
{
    (void)state;
    span(&other);
    await(counts_now().recorded == 1);
    assert_int_equal(pk_flush(), PK_OK); /* behind that its events are for others */
    CUgraph graph;
    gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    span(&inner); /* a single one: of several, stamps of others are hardly in order */
    assert_int_equal(gpu->capture_end(the_stream, &graph), CUDA_SUCCESS);
    CUgraphExec exec = gpu->instantiate(graph);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(counts_now().sampled, 0);
    gpu->launch(exec, the_stream);
    await(counts_now().sampled == 1);
    assert_int_equal(stop_and_count().recorded, 2);
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
    await(gpu->events() == before - 6);  /* the set's */
    assert_int_equal(pk_flush(), PK_OK); /* the captured ones are the pool's again */
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

static const struct CMUnitTest gpu_graphs_tests[] = {
    with_gpu(nothing_before_the_first_replay),
    with_gpu(announced_replays),
    with_gpu(dropped_replays_count_once),
    with_gpu(announced_long_before),
    with_gpu(replays_in_flight),
    with_gpu(announced_and_not_launched),
    with_gpu(sampled_replays),
    with_gpu(half_a_replay),
    with_gpu(launched_amid_a_look),
    with_gpu(captured_behind_spans),
    with_gpu(destroyed),
    with_gpu(many_graphs),
    with_gpu(branches),
    with_gpu(never_ended),
};

static int run_gpu_graphs(int argc, char **argv)
{
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(gpu_graphs_tests, NULL, NULL);
}

/* ---- captures on the mock of the driver ---- */

/* Which spans are skipped, which graphs are left alone, and that nobody's capture is spoilt. */

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

static const struct CMUnitTest gpu_captures_tests[] = {
    with_gpu(split_over_a_capture),
    with_gpu(legacy_stream_meanwhile),
    with_gpu(nobodys_capture_is_spoilt),
    with_gpu(invalid_capture),
    with_gpu(a_graph_that_is_not_the_captured),
    with_gpu(a_handle_used_again),
    with_gpu(nodes_that_cannot_be_set),
};

static int run_gpu_captures(int argc, char **argv)
{
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(gpu_captures_tests, NULL, NULL);
}

/* ---- captures whose graphs take no events, on the mock of the driver ---- */

/* Spans are kept out of them, by themselves where that can be known, else by PK_GPU_GRAPHS=0;
 * and the program's graph is what it would be without perfkit. */

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
    return pk_start(pk_options(.backends = "cuda", .tuning = "gpu_graphs=0"));
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
    expect_words("PK_GPU_GRAPHS");
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
    pk_nccl_begin(comm, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 100, -1, the_stream);
    gpu->work(the_stream);
    pk_nccl_end(comm, the_stream, 0);
    assert_int_equal(gpu->capture_end(the_stream, &graph), CUDA_SUCCESS);
    assert_int_equal(gpu->nodes(graph), 1);
    pk_nccl_begin(comm, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 100, -1, the_stream);
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
    assert_int_equal(pk_flush(), PK_OK);
    CUgraph again = capture(); /* theirs are free as well */
    c = stop_and_count();
    assert_int_equal(c.captured, ALL + 3);
    assert_int_equal(c.dropped, 10);
    gpu->graph_destroy(again);
}

static const struct CMUnitTest gpu_capture_off_tests[] = {
    cmocka_unit_test_setup_teardown(bodies_of_conditional_nodes, start_with_branch, stop_gpu),
    cmocka_unit_test_setup_teardown(a_body_is_asked_once, start_with_branch, stop_gpu),
    with_gpu(captures_to_other_graphs),
    with_gpu(programmatic_dependencies),
    cmocka_unit_test_setup_teardown(graphs_for_the_device, start_off, stop_gpu),
    cmocka_unit_test_setup_teardown(operations_in_captures, start_off, stop_gpu),
    with_gpu(a_bound_of_their_own),
};

static int run_gpu_capture_off(int argc, char **argv)
{
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(gpu_capture_off_tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    int failed = run_gpu_graphs(argc, argv);
    failed += run_gpu_captures(argc, argv);
    failed += run_gpu_capture_off(argc, argv);
    return failed;
}
