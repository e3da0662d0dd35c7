/* Collectives on devices: how long they are in flight in a step, and how much of that is hidden
 * behind what other streams compute. */
#include "device.h"

#define COMM 5 /* streams */
#define MAIN 7
#define SIDE 8

static pki_device *d;
static pki_summary s;

static int set_up(void **state)
{
    (void)state;
    d = pki_device_create(PKI_DEVICE_ITEMS);
    return d ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    pki_summary_finish(&s);
    return 0;
}

static pki_activity nccl(uint32_t stream, uint64_t start, uint64_t end)
{
    static const char name[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)";
    pki_activity a = kernel(stream, start, end);
    a.name = name;
    a.name_length = strlen(name);
    a.stream = stream;
    return a;
}

static pki_activity work(uint32_t stream, uint64_t start, uint64_t end)
{
    pki_activity a = kernel(stream, start, end);
    a.stream = stream;
    return a;
}

static pki_activity timed(uint32_t stream, uint64_t start, uint64_t end)
{
    pki_activity a = on(PKI_ACTIVITY_OPERATION, 100 + stream, start, end);
    a.stream = stream;
    return a;
}

static pki_activity region(uint32_t stream, uint64_t start, uint64_t end)
{
    pki_activity a = span(stream, start, end);
    a.stream = stream;
    return a;
}

static void expect_comm(const pki_gpu_row *gpu, double comm, double hidden)
{
    expect(gpu, PKI_GPU_COMM, comm);
    expect(gpu, PKI_GPU_COMM_HIDDEN, hidden);
    expect(gpu, PKI_GPU_COMM_EXPOSED, comm - hidden);
}

/* ---- as measured ---- */

static void kernels_hide_kernels(void **state)
{
    (void)state;
    add(d, work(MAIN, 0, 150));
    add(d, nccl(COMM, 100, 300)); /* 50 hidden */
    add(d, work(MAIN, 250, 260)); /* 10 */
    add(d, work(SIDE, 255, 400)); /* 40 more */
    add(d, nccl(COMM, 500, 600)); /* nothing beside */
    step(d, 0, 1000);
    finish(d, 0, &s);
    expect_comm(s.gpus, 300, 100);
    expect(s.gpus, PKI_GPU_KERNELS, 5); /* and they stay kernels */
    expect(s.gpus, PKI_GPU_BUSY, 400 + 100);
}

static void copies_hide_nothing_and_graphs_do(void **state)
{
    pki_activity graph = on(PKI_ACTIVITY_GRAPH, MAIN, 150, 160), set = graph;
    (void)state;
    graph.stream = MAIN;
    set.kind = PKI_ACTIVITY_MEMSET;
    set.stream = SIDE;
    set.start = 170 * US;
    set.end = 175 * US;
    add(d, nccl(COMM, 100, 200));
    add(d, copy(PKI_COPY_HTOD, 1, 100, 200));
    add(d, graph);
    add(d, set);
    step(d, 0, 1000);
    finish(d, 0, &s);
    expect_comm(s.gpus, 100, 15);
}

/* What overlaps on a collective's own stream is the same work's end, or the next one's start. */
static void the_own_stream_hides_nothing(void **state)
{
    (void)state;
    add(d, nccl(COMM, 100, 200));
    add(d, work(COMM, 150, 250));
    add(d, nccl(SIDE, 180, 300)); /* a collective there, too */
    add(d, work(SIDE, 190, 210));
    step(d, 0, 1000);
    finish(d, 0, &s);
    /* From 200 to 250 stream COMM computes, and only SIDE has one in flight. */
    expect_comm(s.gpus, 200, 50);
}

static void collectives_beside_each_other_count_once(void **state)
{
    (void)state;
    add(d, nccl(COMM, 100, 300));
    add(d, nccl(SIDE, 200, 400));
    add(d, nccl(SIDE, 100, 100)); /* no length */
    add(d, work(MAIN, 250, 350));
    step(d, 0, 1000);
    finish(d, 0, &s);
    expect_comm(s.gpus, 300, 100);
}

static void across_steps(void **state)
{
    (void)state;
    add(d, nccl(COMM, 50, 350));
    add(d, work(MAIN, 0, 120)); /* 50 in the first, 20 in the second */
    step(d, 0, 100);
    step(d, 100, 300);
    step(d, 300, 400);
    step(d, 400, 500);
    finish(d, 0, &s);
    expect_comm(s.gpus, 300, 70);
    assert_int_equal(s.gpus->per_step[PKI_GPU_COMM].count, 4);
    assert_true(s.gpus->per_step[PKI_GPU_COMM].max >= 200 * US);
    assert_true(s.gpus->per_step[PKI_GPU_COMM_EXPOSED].max >= 180 * US);
}

static void only_names_that_begin_so(void **state)
{
    pki_activity a = work(MAIN, 0, 10);
    (void)state;
    a.name = "my_nccl";
    a.name_length = 7;
    add(d, a);
    a.name = "nccl"; /* cut off: "ncc" */
    a.name_length = 3;
    add(d, a);
    a.name = NULL;
    a.name_length = 0;
    add(d, a);
    step(d, 0, 100);
    finish(d, 0, &s);
    assert_int_equal(s.gpus->per_step[PKI_GPU_COMM].count, 0); /* none: nothing is said */
    assert_int_equal(s.gpus->per_step[PKI_GPU_COMM_EXPOSED].count, 0);
}

/* ---- by events ---- */

static void spans_hide_what_events_time(void **state)
{
    (void)state;
    add(d, region(MAIN, 0, 150));
    add(d, timed(COMM, 100, 300));
    add(d, region(COMM, 90, 310)); /* the region around it, on its stream */
    step(d, 0, 1000);
    finish(d, 0, &s);
    assert_false(s.gpus->measured);
    assert_int_equal(s.gpus->collectives, 1);
    assert_int_equal(s.gpus->spans, 2);
    assert_int_equal(s.gpus->streams, 2);
    expect_comm(s.gpus, 200, 50);
    expect(s.gpus, PKI_GPU_BUSY, 310);
}

/* How long they took is known; what was beside is not, nor when the device was busy. */
static void collectives_alone(void **state)
{
    (void)state;
    add(d, timed(COMM, 100, 300));
    step(d, 0, 1000);
    finish(d, 0, &s);
    assert_int_equal(s.gpu_count, 1);
    expect(s.gpus, PKI_GPU_STEP, 1000);
    expect(s.gpus, PKI_GPU_COMM, 200);
    assert_int_equal(s.gpus->per_step[PKI_GPU_COMM_HIDDEN].count, 0);
    assert_int_equal(s.gpus->per_step[PKI_GPU_COMM_EXPOSED].count, 0);
    assert_int_equal(s.gpus->per_step[PKI_GPU_BUSY].count, 0);
    assert_int_equal(s.gpus->per_step[PKI_GPU_IDLE].count, 0);
    assert_int_equal(s.gpus->series_count, 0);
}

static void the_views_are_not_mixed(void **state)
{
    (void)state;
    pki_device_measures(d, 1000 * US, true);
    pki_device_measures(d, 2000 * US, false);
    for (uint64_t i = 0; i < 3; i++) {
        add(d, region(MAIN, 1000 * i, 1000 * i + 500));
        add(d, timed(COMM, 1000 * i + 400, 1000 * i + 700)); /* by events: 100 hidden */
    }
    add(d, nccl(COMM, 1410, 1690)); /* by kernels: 80 */
    add(d, work(MAIN, 1010, 1490));
    for (uint64_t i = 0; i < 3; i++)
        step(d, 1000 * i, 1000 * i + 1000);
    finish(d, 0, &s);
    assert_true(s.gpus->measured);
    assert_int_equal(s.gpus->per_step[PKI_GPU_COMM].count, 1);
    expect_comm(s.gpus, 280, 80);
}

static void without_a_device_it_is_nobodys(void **state)
{
    pki_activity a = timed(0, 100, 200);
    (void)state;
    a.device = PKI_NO_DEVICE;
    add(d, a);
    step(d, 0, 1000);
    finish(d, 0, &s);
    assert_int_equal(s.gpu_count, 0);
}

/* ---- many of them ---- */

#define TICKS 2000
#define STREAMS 70 /* more than are told apart: collectives are on the first ones */

static uint32_t seed;

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static struct {
    bool comm[STREAMS][TICKS], work[STREAMS][TICKS];
} * played;

static void play(bool comm, uint32_t stream, uint32_t start, uint32_t end)
{
    add(d, comm ? nccl(stream, start, end) : work(stream, start, end));
    for (uint32_t i = start; i < end && i < TICKS; i++)
        (comm ? played->comm : played->work)[stream][i] = true;
}

/* Microsecond by microsecond. */
static void count(double *comm, double *hidden)
{
    *comm = *hidden = 0;
    for (uint32_t i = 0; i < TICKS; i++) {
        bool any = false, beside = false;
        for (uint32_t k = 0; k < STREAMS; k++) {
            any |= played->comm[k][i];
            beside |= played->work[k][i] && !played->comm[k][i];
        }
        *comm += any;
        *hidden += any && beside;
    }
}

static void as_counted_by_hand(void **state)
{
    double comm, hidden;
    (void)state;
    for (seed = 1; seed < 60; seed++) {
        uint32_t kept = seed, streams = seed % 7 + 2;
        played = calloc(1, sizeof *played);
        pki_device_destroy(d);
        d = pki_device_create(PKI_DEVICE_ITEMS);
        for (uint32_t i = 0; i < 200; i++) {
            uint32_t at = below(TICKS);
            play(below(4) == 0, below(streams), at, at + below(60));
        }
        for (uint64_t at = 0; at < TICKS; at += 250)
            step(d, at, at + 250);
        count(&comm, &hidden);
        finish(d, 0, &s);
        expect_comm(s.gpus, comm, hidden);
        pki_summary_finish(&s);
        d = NULL;
        free(played);
        seed = kept;
    }
}

static void more_streams_than_are_told_apart(void **state)
{
    double comm, hidden;
    (void)state;
    played = calloc(1, sizeof *played);
    play(true, 0, 0, 1900);
    for (uint32_t k = 1; k < STREAMS; k++)
        play(false, k, 10 * k, 10 * k + 5);
    step(d, 0, TICKS);
    count(&comm, &hidden);
    finish(d, 0, &s);
    expect_comm(s.gpus, comm, hidden);
    free(played);
}

#define with_device(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_device(kernels_hide_kernels),
        with_device(copies_hide_nothing_and_graphs_do),
        with_device(the_own_stream_hides_nothing),
        with_device(collectives_beside_each_other_count_once),
        with_device(across_steps),
        with_device(only_names_that_begin_so),
        with_device(spans_hide_what_events_time),
        with_device(collectives_alone),
        with_device(the_views_are_not_mixed),
        with_device(without_a_device_it_is_nobodys),
        with_device(as_counted_by_hand),
        with_device(more_streams_than_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
