/* What devices did in steps. */
#include "device.h"

#include "measure/device/state.h"

/* ---- what devices did in steps ---- */

/* Unions over streams, gaps, kernels, copies, waits, and when a step is done with. */

static pki_device *create(void)
{
    pki_device *d = pki_device_create(PKI_DEVICE_ITEMS);
    assert_non_null(d);
    return d;
}

/* Where nobody tells of devices no step waits for them: a run of a million steps keeps nothing. */
static void test_nobody_is_awaited(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    pki_device_await(d, false);
    for (uint64_t i = 0; i < 1000; i++)
        step(d, i, 1000);
    assert_true(d->step_used == 0 && d->step_room <= 64);
    assert_int_equal(d->step_count, 1000);
    pki_device_await(d, true);
    for (uint64_t i = 1000; i < 1100; i++)
        step(d, i, 1000);
    assert_int_equal(d->step_used, 100);
    finish(d, 0, &s);
    assert_int_equal(s.gpu_count, 0);
    pki_summary_finish(&s);
}

/* -- one step -- */

static void test_streams_are_united(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    add(d, kernel(1, 100, 300));
    add(d, kernel(2, 200, 400)); /* beside it */
    add(d, kernel(1, 400, 500)); /* touches: no gap */
    add(d, kernel(2, 600, 605));
    step(d, 0, 1000);
    finish(d, 0, &s);
    assert_int_equal(s.gpu_count, 1);
    assert_true(s.gpus->measured);
    assert_int_equal(s.gpus->streams, 2);
    expect(s.gpus, PKI_GPU_STEP, 1000);
    expect(s.gpus, PKI_GPU_BUSY, 405);
    expect(s.gpus, PKI_GPU_IDLE, 595);
    expect(s.gpus, PKI_GPU_GAPS, 3);
    expect(s.gpus, PKI_GPU_LONGEST_GAP, 395);
    expect(s.gpus, PKI_GPU_KERNELS, 4);
    expect(s.gpus, PKI_GPU_SHORT_KERNELS, 1);
    pki_summary_finish(&s);
}

static void test_short_is_below_ten_microseconds(void **state)
{
    pki_device *d = create();
    pki_summary s;
    pki_activity a = kernel(1, 10, 20);
    (void)state;
    add(d, a);
    a.end -= 1;
    add(d, a);
    step(d, 0, 100);
    finish(d, 0, &s);
    expect(s.gpus, PKI_GPU_SHORT_KERNELS, 1);
    assert_int_equal(s.gpus->short_kernels, 1);
    assert_int_equal(s.gpus->kernel_time, 2 * 10 * US - 1);
    pki_summary_finish(&s);
}

static void test_gaps_of_launches_and_of_waits(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    add(d, kernel(1, 0, 100));
    add(d, kernel(1, 150, 200)); /* 50 us: as long as a launch's gap may be */
    add(d, kernel(1, 251, 300)); /* 51 us: idle for another reason */
    add(d, on(PKI_ACTIVITY_SYNC, 9, 290, 310));
    add(d, kernel(1, 320, 400));                /* 20 us, and a wait ended in it */
    add(d, on(PKI_ACTIVITY_SYNC, 9, 395, 400)); /* up to where the gap begins */
    add(d, kernel(1, 430, 1000));
    add(d, on(PKI_ACTIVITY_SYNC, 9, 500, 700)); /* waits while it works: no gap */
    step(d, 0, 1000);
    finish(d, 0, &s);
    expect(s.gpus, PKI_GPU_GAPS, 4);
    expect(s.gpus, PKI_GPU_LAUNCH_GAPS, 50);
    expect(s.gpus, PKI_GPU_SYNC_GAPS, 50);
    expect(s.gpus, PKI_GPU_SYNC, 20 + 5 + 200);
    pki_summary_finish(&s);
}

static void test_copies_by_direction_and_alone(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    add(d, kernel(1, 100, 200));
    add(d, copy(PKI_COPY_HTOD, 4096, 50, 150)); /* half of it hidden */
    add(d, copy(PKI_COPY_DTOH, 100, 300, 310));
    add(d, copy(PKI_COPY_DTOD, 10, 305, 320));
    add(d, copy(PKI_COPY_PTOP, 1, 110, 120));    /* hidden */
    add(d, copy(PKI_COPY_UNKNOWN, 7, 400, 410)); /* copied, nobody knows where to */
    add(d, on(PKI_ACTIVITY_MEMSET, 1, 500, 550));
    step(d, 0, 1000);
    finish(d, 0, &s);
    expect(s.gpus, PKI_GPU_BUSY, 150 + 20 + 10 + 50);
    expect(s.gpus, PKI_GPU_COPY, 100 + 20 + 10);
    expect(s.gpus, PKI_GPU_COPY_ALONE, 50 + 20 + 10);
    expect(s.gpus, PKI_GPU_H2D_TIME, 100);
    expect(s.gpus, PKI_GPU_H2D_BYTES, 4096);
    expect(s.gpus, PKI_GPU_D2H_TIME, 10);
    expect(s.gpus, PKI_GPU_D2H_BYTES, 100);
    expect(s.gpus, PKI_GPU_D2D_TIME, 15);
    expect(s.gpus, PKI_GPU_D2D_BYTES, 10);
    expect(s.gpus, PKI_GPU_P2P_TIME, 10);
    expect(s.gpus, PKI_GPU_P2P_BYTES, 1);
    expect(s.gpus, PKI_GPU_KERNELS, 1);
    assert_int_equal(s.gpus->copies[PKI_H2D].bytes, 4096);
    assert_int_equal(s.gpus->copies[PKI_P2P].count, 1);
    assert_int_equal(s.gpus->memsets, 1);
    pki_summary_finish(&s);
}

/* -- several steps -- */

static void test_a_kernel_across_steps(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    add(d, kernel(1, 50, 350)); /* over three steps */
    add(d, kernel(1, 360, 380));
    step(d, 0, 100);
    step(d, 100, 300);
    step(d, 300, 400);
    finish(d, 0, &s);
    expect(s.gpus, PKI_GPU_BUSY, 50 + 200 + 70);
    expect(s.gpus, PKI_GPU_KERNELS, 2);
    assert_int_equal(s.gpus->per_step[PKI_GPU_BUSY].count, 3);
    assert_true(s.gpus->per_step[PKI_GPU_BUSY].max >= 200 * US);
    assert_true(s.gpus->per_step[PKI_GPU_KERNELS].min <= 0); /* it began in the first one */
    pki_summary_finish(&s);
}

static void test_empty_step_and_empty_kernel(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    add(d, kernel(1, 10, 20));
    add(d, kernel(1, 50, 50)); /* no length: it parts no gap */
    add(d, kernel(1, 70, 60)); /* nonsense: taken as empty */
    step(d, 0, 100);
    step(d, 100, 100);
    step(d, 100, 200);
    finish(d, 0, &s);
    expect(s.gpus, PKI_GPU_BUSY, 10);
    expect(s.gpus, PKI_GPU_GAPS, 2 + 0 + 1);
    expect(s.gpus, PKI_GPU_KERNELS, 3);
    assert_int_equal(s.gpus->per_step[PKI_GPU_STEP].count, 3);
    pki_summary_finish(&s);
}

static void test_steps_before_the_first_use_do_not_count(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    step(d, 0, 100);
    step(d, 100, 200);
    add(d, kernel(1, 250, 260));
    step(d, 200, 300);
    step(d, 300, 400); /* idle since: that does */
    finish(d, 0, &s);
    assert_int_equal(s.gpus->per_step[PKI_GPU_STEP].count, 2);
    expect(s.gpus, PKI_GPU_IDLE, 190);
    pki_summary_finish(&s);
}

static void test_several_devices(void **state)
{
    pki_device *d = create();
    pki_summary s;
    pki_activity other = kernel(1, 20, 60);
    (void)state;
    other.device = 3;
    add(d, other);
    add(d, kernel(1, 0, 10));
    step(d, 0, 100);
    finish(d, 0, &s);
    assert_int_equal(s.gpu_count, 2);
    assert_int_equal(s.gpus[0].device, 0);
    assert_int_equal(s.gpus[1].device, 3);
    expect(&s.gpus[0], PKI_GPU_BUSY, 10);
    expect(&s.gpus[1], PKI_GPU_BUSY, 40);
    pki_summary_finish(&s);
}

static void test_too_many_devices_are_counted(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    for (uint32_t i = 0; i < PKI_DEVICES_MOST + 5; i++) {
        pki_activity a = kernel(1, 0, 10);
        a.device = i;
        add(d, a);
    }
    pki_activity nowhere = kernel(1, 0, 10);
    nowhere.device = PKI_NO_DEVICE;
    add(d, nowhere);
    finish(d, 0, &s);
    assert_int_equal(s.gpu_count, PKI_DEVICES_MOST);
    assert_int_equal(s.activities.unmeasured, 5);
    pki_summary_finish(&s);
}

static void test_warm_up_is_left_out(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    for (uint64_t i = 0; i < PKI_STEPS_HEAD + 50; i++) {
        add(d, kernel(1, 100 * i, 100 * i + (i < 2 ? 100 : 10)));
        step(d, 100 * i, 100 * i + 100);
    }
    finish(d, 2, &s);
    assert_int_equal(s.gpus->per_step[PKI_GPU_BUSY].count, PKI_STEPS_HEAD + 48);
    expect(s.gpus, PKI_GPU_BUSY, 10 * (PKI_STEPS_HEAD + 48));
    pki_summary_finish(&s);
}

static void test_long_warm_up_that_is_expected(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    pki_device_expect_warmup(d, PKI_STEPS_HEAD + 10);
    for (uint64_t i = 0; i < PKI_STEPS_HEAD + 50; i++) {
        add(d, kernel(1, 100 * i, 100 * i + 10));
        step(d, 100 * i, 100 * i + 100);
    }
    finish(d, PKI_STEPS_HEAD + 10, &s);
    assert_int_equal(s.gpus->per_step[PKI_GPU_BUSY].count, 40);
    pki_summary_finish(&s);
}

/* -- two views -- */

static void test_spans_are_no_kernels(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    add(d, span(1, 100, 500));
    add(d, span(1, 200, 300)); /* inside: the outer one is what counts */
    add(d, span(2, 450, 600));
    step(d, 0, 1000);
    finish(d, 0, &s);
    assert_false(s.gpus->measured);
    assert_int_equal(s.gpus->spans, 3);
    expect(s.gpus, PKI_GPU_BUSY, 500);
    expect(s.gpus, PKI_GPU_GAPS, 2);
    assert_int_equal(s.gpus->per_step[PKI_GPU_KERNELS].count, 0); /* unknown, not none */
    assert_int_equal(s.gpus->per_step[PKI_GPU_LAUNCH_GAPS].count, 0);
    pki_summary_finish(&s);
}

static void test_measured_steps_only_where_there_are_some(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    for (uint64_t i = 0; i < 6; i++)
        add(d, span(1, 100 * i + 10, 100 * i + 90));
    pki_device_measures(d, 150 * US, true); /* amid step 1 */
    add(d, kernel(1, 160, 170));
    add(d, kernel(1, 210, 230)); /* step 2 is measured whole, and step 3, in which nothing ran */
    pki_device_measures(d, 420 * US, false);
    pki_device_measures(d, 500 * US, true);
    add(d, kernel(1, 510, 540)); /* and step 5 */
    for (uint64_t i = 0; i < 6; i++)
        step(d, 100 * i, 100 * i + 100);
    finish(d, 0, &s);
    assert_true(s.gpus->measured);
    assert_int_equal(s.gpus->per_step[PKI_GPU_BUSY].count, 3);
    expect(s.gpus, PKI_GPU_BUSY, 20 + 0 + 30);
    expect(s.gpus, PKI_GPU_KERNELS, 2);
    assert_int_equal(s.gpus->kernels, 3);
    pki_summary_finish(&s);
}

static void test_measured_warm_up_only(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    for (uint64_t i = 0; i < 4; i++)
        add(d, span(1, 100 * i + 10, 100 * i + 90));
    pki_device_measures(d, 0, true);
    add(d, kernel(1, 20, 30));
    pki_device_measures(d, 100 * US, false);
    for (uint64_t i = 0; i < 4; i++)
        step(d, 100 * i, 100 * i + 100);
    finish(d, 1, &s);
    assert_false(s.gpus->measured);
    expect(s.gpus, PKI_GPU_BUSY, 3 * 80);
    pki_summary_finish(&s);
}

/* -- memory in use -- */

static void test_names_of_memory_counters(void **state)
{
    uint32_t device = 99;
    (void)state;
    assert_true(pki_device_is_memory("gpu0.memory", &device));
    assert_int_equal(device, 0);
    assert_true(pki_device_is_memory("gpu12.memory", &device));
    assert_int_equal(device, 12);
    assert_false(pki_device_is_memory("gpu.memory", &device));
    assert_false(pki_device_is_memory("gpu0.memory.free", &device));
    assert_false(pki_device_is_memory("gpu-1.memory", &device));
    assert_false(pki_device_is_memory("gpu99999999999999999999.memory", &device));
    assert_false(pki_device_is_memory("cpu0.memory", &device));
}

static void test_memory_at_the_end_of_a_step(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    add(d, span(1, 0, 10));
    step(d, 0, 100); /* nothing known yet */
    pki_device_memory(d, 0, 150 * US, 7);
    pki_device_memory(d, 0, 200 * US, 9);  /* at its end: in it */
    pki_device_memory(d, 0, 180 * US, 8);  /* told later */
    pki_device_memory(d, 0, 350 * US, 11); /* step 2 has no sample of its own: still 9 */
    pki_device_memory(d, 0, 360 * US, -1); /* none */
    step(d, 100, 200);
    step(d, 200, 300);
    step(d, 300, 400);
    finish(d, 0, &s);
    assert_int_equal(s.gpus->per_step[PKI_GPU_MEMORY].count, 3);
    expect(s.gpus, PKI_GPU_MEMORY, 9 + 9 + 11);
    pki_summary_finish(&s);
}

static void test_memory_alone_makes_no_row(void **state)
{
    pki_device *d = create();
    pki_summary s;
    (void)state;
    pki_device_memory(d, 0, 0, 7);
    for (uint64_t i = 0; i < 200000; i++) /* without steps only the latest ones are kept */
        pki_device_memory(d, 1, i, (double)i);
    finish(d, 0, &s);
    assert_int_equal(s.gpu_count, 0);
    assert_int_equal(s.activities.unmeasured, 0);
    pki_summary_finish(&s);
}

/* -- nothing -- */

static void test_null_does_nothing(void **state)
{
    pki_summary s;
    (void)state;
    pki_activity a = kernel(1, 0, 1);
    pki_device_add(NULL, &a);
    pki_device_step(NULL, NULL);
    pki_device_finalised(NULL, 1);
    pki_device_measures(NULL, 1, true);
    pki_device_memory(NULL, 0, 1, 1);
    pki_device_expect_warmup(NULL, 1);
    assert_false(pki_device_full(NULL));
    pki_device_destroy(NULL);
    pki_summary_init(&s);
    assert_true(pki_device_fill(NULL, 0, no_name, NULL, &s));
    assert_int_equal(s.gpu_count, 0);
    finish(create(), 0, &s);
    assert_int_equal(s.gpu_count + s.kernel_count, 0);
    pki_summary_finish(&s);
}

static const struct CMUnitTest device_tests[] = {
    cmocka_unit_test(test_nobody_is_awaited),
    cmocka_unit_test(test_streams_are_united),
    cmocka_unit_test(test_short_is_below_ten_microseconds),
    cmocka_unit_test(test_gaps_of_launches_and_of_waits),
    cmocka_unit_test(test_copies_by_direction_and_alone),
    cmocka_unit_test(test_a_kernel_across_steps),
    cmocka_unit_test(test_empty_step_and_empty_kernel),
    cmocka_unit_test(test_steps_before_the_first_use_do_not_count),
    cmocka_unit_test(test_several_devices),
    cmocka_unit_test(test_too_many_devices_are_counted),
    cmocka_unit_test(test_warm_up_is_left_out),
    cmocka_unit_test(test_long_warm_up_that_is_expected),
    cmocka_unit_test(test_spans_are_no_kernels),
    cmocka_unit_test(test_measured_steps_only_where_there_are_some),
    cmocka_unit_test(test_measured_warm_up_only),
    cmocka_unit_test(test_names_of_memory_counters),
    cmocka_unit_test(test_memory_at_the_end_of_a_step),
    cmocka_unit_test(test_memory_alone_makes_no_row),
    cmocka_unit_test(test_null_does_nothing),
};

/* ---- collectives on devices ---- */

/* How long they are in flight in a step, and how much of that is hidden behind what other streams
 * compute. */

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

/* -- as measured -- */

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

static void copies_hide_nothing_and_memsets_do(void **state)
{
    pki_activity set = on(PKI_ACTIVITY_MEMSET, MAIN, 170, 175);
    (void)state;
    set.stream = SIDE;
    add(d, nccl(COMM, 100, 200));
    add(d, copy(PKI_COPY_HTOD, 1, 100, 200));
    add(d, work(MAIN, 150, 160));
    add(d, set);
    step(d, 0, 1000);
    finish(d, 0, &s);
    expect_comm(s.gpus, 100, 15);
}

/* What a graph holds is not known: collectives, too. */
static void beside_graphs_as_wholes_nothing_is_known(void **state)
{
    (void)state;
    add(d, nccl(COMM, 100, 200));
    add(d, on(PKI_ACTIVITY_GRAPH, MAIN, 150, 160));
    step(d, 0, 1000);
    finish(d, 0, &s);
    assert_int_equal(s.gpus->graphs, 1);
    assert_int_equal(s.gpus->graph_time, 10 * US);
    assert_int_equal(s.gpus->per_step[PKI_GPU_COMM].count, 0);
    assert_int_equal(s.gpus->per_step[PKI_GPU_COMM_EXPOSED].count, 0);
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

/* -- by events -- */

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

/* -- many of them -- */

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

static const struct CMUnitTest device_overlap_tests[] = {
    with_device(kernels_hide_kernels),
    with_device(copies_hide_nothing_and_memsets_do),
    with_device(beside_graphs_as_wholes_nothing_is_known),
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

int main(void)
{
    int failed = cmocka_run_group_tests(device_tests, NULL, NULL);
    failed += cmocka_run_group_tests(device_overlap_tests, NULL, NULL);
    return failed;
}
