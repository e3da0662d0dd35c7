/* Graphs on the mock of the driver: spans that were captured are read at their replays. */
#include "gpu_capture.h"

#include "session/session.h"

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
        pthread_mutex_lock(&pki_drain_lock); /* the collector sees the last one alone */
        for (int k = 0; k < 3; k++)
            gpu->launch(exec, the_stream);
        pthread_mutex_unlock(&pki_drain_lock);
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
    gpu->hold(true);
    gpu->launch(exec, the_stream);
    gpu->launch(exec, the_stream);
    pthread_mutex_lock(&pki_drain_lock); /* the collector does not see the first one alone */
    assert_int_equal(gpu->run(the_stream, 9), 9);
    pthread_mutex_unlock(&pki_drain_lock);
    sleep_ms(40);
    assert_int_equal(counts_now().sampled, 6);
    gpu->hold(false);
    await(counts_now().sampled == 9);
    stop_and_count();
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

static uint32_t look; /* of the collector's: 1 wanted, 2 begun, 3 to go on */

static void wait_amid_look(CUresult answer)
{
    (void)answer;
    uint32_t wanted = 1;
    if (__atomic_compare_exchange_n(&look, &wanted, 2, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        await(__atomic_load_n(&look, __ATOMIC_ACQUIRE) == 3);
}

/* The collector has counted the nodes of a graph that is being captured, and reads their events
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
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
