/* Devices: activities in any order, late ones, more of them than there is room for, very many
 * names. */
#include "device.h"
#include "valgrind.h"

#include "measure/device/state.h"

#define STEPS 40
#define EACH 25

typedef struct scene {
    pki_activity of[STEPS * EACH];
    size_t count;
} scene;

static uint64_t seed;

static uint64_t below(uint64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

/* A step takes a millisecond, a kernel up to a fifth of it. */
static void make(scene *s, uint64_t from_seed)
{
    seed = from_seed;
    s->count = 0;
    for (uint64_t i = 0; i < STEPS * EACH; i++) {
        uint64_t start = 1000 * (i / EACH) + 35 * (i % EACH) + below(35), end = start + below(200);
        pki_activity a = below(4) ? kernel((uint32_t)below(3), start, end)
                                  : copy((pki_copy)below(PKI_COPY_KINDS), below(1000), start, end);
        if (below(9) == 0)
            a = on(PKI_ACTIVITY_SYNC, 7, start, end);
        if (below(9) == 0)
            a = span(8, start, end);
        s->of[s->count++] = a;
    }
}

static void shuffle(scene *s)
{
    for (size_t i = s->count; i > 1; i--) {
        size_t j = below(i);
        pki_activity a = s->of[i - 1];
        s->of[i - 1] = s->of[j];
        s->of[j] = a;
    }
}

/* All at once, in steps told at the end. */
static void tell_at_once(const scene *s, pki_summary *out)
{
    pki_device *d = pki_device_create(PKI_DEVICE_ITEMS);
    for (size_t i = 0; i < s->count; i++)
        add(d, s->of[i]);
    for (uint64_t i = 0; i < STEPS; i++)
        step(d, 1000 * i, 1000 * i + 1000);
    finish(d, 0, out);
}

static uint64_t min_start(const scene *s, size_t from)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = from; i < s->count; i++)
        first = first < s->of[i].start ? first : s->of[i].start;
    return first;
}

/* As a session does: steps first, activities later, and what is finalised now and then. */
static void tell_in_time(const scene *s, size_t room, pki_summary *out)
{
    pki_device *d = pki_device_create(room);
    uint64_t steps = 0;
    for (size_t i = 0; i < s->count; i++) {
        while (steps < STEPS && steps <= i / EACH + 1) {
            step(d, 1000 * steps, 1000 * steps + 1000);
            steps++;
        }
        if (pki_device_full(d))
            pki_device_make_room(d);
        add(d, s->of[i]);
        if (i % 7 == 0)
            pki_device_finalised(d, min_start(s, i + 1));
    }
    finish(d, 0, out);
}

static void expect_same(const pki_summary *a, const pki_summary *b)
{
    assert_int_equal(a->gpu_count, b->gpu_count);
    for (int i = 0; i < PKI_GPU_FIGURES; i++) {
        const pki_dist *x = &a->gpus->per_step[i], *y = &b->gpus->per_step[i];
        if (x->count != y->count || x->sum > y->sum || x->sum < y->sum || x->p50 > y->p50 ||
            x->p50 < y->p50 || x->max > y->max || x->max < y->max)
            fail_msg("%s: %g and %g", pki_gpu_figures[i], x->sum, y->sum);
    }
    assert_int_equal(a->gpus->kernel_time, b->gpus->kernel_time);
    assert_int_equal(a->gpus->streams, b->gpus->streams);
}

static void test_order_does_not_matter(void **state)
{
    static scene s;
    pki_summary first, then;
    (void)state;
    for (uint64_t i = 1; i <= 10; i++) {
        make(&s, i);
        tell_at_once(&s, &first);
        shuffle(&s);
        tell_at_once(&s, &then);
        expect_same(&first, &then);
        assert_int_equal(then.activities.late, 0);
        pki_summary_finish(&then);
        pki_summary_finish(&first);
    }
}

static void test_told_bit_by_bit(void **state)
{
    static scene s;
    pki_summary first, then;
    (void)state;
    for (uint64_t i = 1; i <= 10; i++) {
        make(&s, i);
        tell_at_once(&s, &first);
        tell_in_time(&s, PKI_DEVICE_ITEMS, &then);
        assert_int_equal(then.activities.late, 0);
        expect_same(&first, &then);
        pki_summary_finish(&then);
        pki_summary_finish(&first);
    }
}

/* A single step with much more in it than may wait: summed up on the way, and nothing is lost. */
static void test_a_step_larger_than_the_room(void **state)
{
    pki_summary s;
    pki_device *d = pki_device_create(64);
    (void)state;
    for (uint64_t i = 0; i < 100000; i++) {
        if (pki_device_full(d))
            pki_device_make_room(d);
        add(d, kernel(1, 10 * i, 10 * i + 4));
        add(d, kernel(2, 10 * i + 2, 10 * i + 7));
        add(d, copy(PKI_COPY_HTOD, 3, 10 * i + 5, 10 * i + 8));
        pki_device_finalised(d, 10 * i * US);
    }
    step(d, 0, 1000000);
    finish(d, 0, &s);
    assert_int_equal(s.activities.late, 0);
    expect(s.gpus, PKI_GPU_BUSY, 800000);
    expect(s.gpus, PKI_GPU_IDLE, 200000);
    expect(s.gpus, PKI_GPU_GAPS, 100000);
    expect(s.gpus, PKI_GPU_LAUNCH_GAPS, 200000);
    expect(s.gpus, PKI_GPU_COPY_ALONE, 100000);
    expect(s.gpus, PKI_GPU_KERNELS, 200000);
    expect(s.gpus, PKI_GPU_H2D_BYTES, 300000);
    expect(s.gpus, PKI_GPU_LONGEST_GAP, 2);
    pki_summary_finish(&s);
}

/* Nobody says what is finalised, and no step ends: there is a bound all the same. */
static void test_bound_without_anybody_saying(void **state)
{
    pki_summary s;
    pki_device *d = pki_device_create(64);
    (void)state;
    for (uint64_t i = 0; i < 10000; i++) {
        if (pki_device_full(d))
            pki_device_make_room(d);
        assert_false(pki_device_full(d));
        add(d, kernel(1, 10 * i, 10 * i + 4));
    }
    finish(d, 0, &s);
    assert_int_equal(s.gpus->kernels, 10000);
    assert_int_equal(s.activities.late, 0);
    pki_summary_finish(&s);
}

static void test_late_ones_are_counted(void **state)
{
    pki_summary s;
    pki_device *d = pki_device_create(PKI_DEVICE_ITEMS);
    (void)state;
    add(d, kernel(1, 10, 20));
    step(d, 0, 100);
    pki_device_finalised(d, 100 * US);
    add(d, kernel(1, 50, 60));  /* its step is done with */
    add(d, kernel(1, 90, 120)); /* in part */
    step(d, 100, 200);
    finish(d, 0, &s);
    assert_int_equal(s.activities.late, 2);
    expect(s.gpus, PKI_GPU_BUSY, 10 + 20);
    assert_int_equal(s.gpus->kernels, 3);
    assert_int_equal(s.gpus->kernel_time, 50 * US);
    pki_summary_finish(&s);
}

static void test_a_step_waits_for_what_is_not_finalised(void **state)
{
    pki_summary s;
    pki_device *d = pki_device_create(PKI_DEVICE_ITEMS);
    (void)state;
    step(d, 0, 100);
    step(d, 100, 200);
    pki_device_finalised(d, 99 * US);
    add(d, kernel(1, 50, 60));
    pki_device_finalised(d, 150 * US);
    pki_device_finalised(d, 120 * US); /* never back */
    add(d, kernel(1, 150, 160));
    finish(d, 0, &s);
    assert_int_equal(s.activities.late, 0);
    expect(s.gpus, PKI_GPU_BUSY, 20);
    pki_summary_finish(&s);
}

static void test_very_many_steps_wait(void **state)
{
    pki_summary s;
    pki_device *d = pki_device_create(PKI_DEVICE_ITEMS);
    const uint64_t steps = is_slow() ? 70000 : 200000; /* PKI_DEVICE_STEPS may wait */
    (void)state;
    assert_true(steps > PKI_DEVICE_STEPS);
    add(d, kernel(1, 0, 1));
    for (uint64_t i = 0; i < steps; i++)
        step(d, i, i + 1);
    finish(d, 0, &s);
    assert_int_equal(s.gpus->per_step[PKI_GPU_STEP].count, steps);
    expect(s.gpus, PKI_GPU_BUSY, 1);
    pki_summary_finish(&s);
}

/* ---- names ---- */

static const char *letter(void *user, uint32_t id)
{
    static char name[2];
    (void)user;
    name[0] = (char)('a' + id);
    return name;
}

static void test_kernels_by_name(void **state)
{
    pki_summary s;
    pki_device *d = pki_device_create(PKI_DEVICE_ITEMS);
    pki_activity a = kernel(1, 0, 10);
    (void)state;
    a.name = "gemm<float>, and what follows";
    a.name_length = strlen("gemm<float>");
    a.region = 2;
    add(d, a);
    a.end = 40 * US;
    a.region = 3;
    add(d, a);
    a.name_length--;
    add(d, a);
    pki_device_finalised(d, UINT64_MAX);
    pki_summary_init(&s);
    assert_true(pki_device_fill(d, 0, letter, NULL, &s));
    assert_int_equal(s.kernel_count, 2);
    assert_string_equal(s.kernels[0].name, "gemm<float>");
    assert_int_equal(s.kernels[0].time.count, 2);
    assert_string_equal(s.kernels[0].region, "d");
    assert_true(s.kernels[0].region_share > 0.79 && s.kernels[0].region_share < 0.81);
    assert_string_equal(s.kernels[1].name, "gemm<float");
    assert_int_equal(pki_device_region_kernels(d, 3).count, 2);
    assert_int_equal(pki_device_region_kernels(d, 2).count, 1);
    assert_false(pki_device_has_region(d, 1));
    assert_false(pki_device_has_region(d, 77777));
    pki_summary_finish(&s);
    pki_device_destroy(d);
}

static void test_spans_by_region(void **state)
{
    pki_device *d = pki_device_create(PKI_DEVICE_ITEMS);
    pki_activity a = span(1, 0, 10);
    (void)state;
    a.region = 40;
    add(d, a);
    a.end *= 3;
    add(d, a);
    assert_int_equal(pki_device_region_spans(d, 40).count, 2);
    assert_true(pki_device_region_spans(d, 40).max >= 30 * US);
    assert_int_equal(pki_device_region_kernels(d, 40).count, 0);
    pki_device_destroy(d);
}

static void test_too_many_names_share_a_row(void **state)
{
    pki_summary s;
    pki_device *d = pki_device_create(PKI_DEVICE_ITEMS);
    (void)state;
    for (int round = 0; round < 2; round++)
        for (uint64_t i = 0; i < PKI_DEVICE_KERNELS + 100; i++) {
            char name[32];
            pki_activity a = kernel(1, 0, 10 + i);
            snprintf(name, sizeof name, "kernel %d", (int)i);
            a.name = name;
            a.name_length = strlen(name);
            add(d, a);
        }
    finish(d, 0, &s);
    assert_int_equal(s.kernel_count, PKI_DEVICE_KERNELS + 1);
    assert_string_equal(s.kernels[0].name, "kernel 1023");
    assert_int_equal(s.kernels[0].time.count, 2);
    assert_string_equal(s.kernels[PKI_DEVICE_KERNELS].name, PKI_OTHER_KERNELS);
    assert_int_equal(s.kernels[PKI_DEVICE_KERNELS].time.count, 200);
    pki_summary_finish(&s);
}

static void test_what_measuring_took(void **state)
{
    pki_summary s;
    pki_device *d = pki_device_create(PKI_DEVICE_ITEMS);
    pki_activity a = on(PKI_ACTIVITY_OVERHEAD, 1, 0, 30);
    (void)state;
    a.device = PKI_NO_DEVICE;
    add(d, a);
    add(d, a);
    add(d, on(PKI_ACTIVITY_RUNTIME, 1, 0, 30)); /* a call is no work of the device */
    finish(d, 0, &s);
    assert_int_equal(s.activities.overhead_count, 2);
    assert_int_equal(s.activities.overhead, 60 * US);
    assert_int_equal(s.gpu_count, 0);
    pki_summary_finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_told_bit_by_bit),
        cmocka_unit_test(test_a_step_larger_than_the_room),
        cmocka_unit_test(test_bound_without_anybody_saying),
        cmocka_unit_test(test_late_ones_are_counted),
        cmocka_unit_test(test_a_step_waits_for_what_is_not_finalised),
        cmocka_unit_test(test_very_many_steps_wait),
        cmocka_unit_test(test_kernels_by_name),
        cmocka_unit_test(test_spans_by_region),
        cmocka_unit_test(test_too_many_names_share_a_row),
        cmocka_unit_test(test_what_measuring_took),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
