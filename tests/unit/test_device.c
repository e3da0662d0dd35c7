/* What devices did in steps: unions over streams, gaps, kernels, copies, waits, and when a step is
 * done with. */
#include "device.h"

#include "measure/device/state.h"

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

/* ---- one step ---- */

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

/* ---- several steps ---- */

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

/* ---- two views ---- */

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

/* ---- memory in use ---- */

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

/* ---- nothing ---- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    return cmocka_run_group_tests(tests, NULL, NULL);
}
