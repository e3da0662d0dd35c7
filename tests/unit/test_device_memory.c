/* Devices with one allocation failing, or all from one on, for each way to one: what is missing is
 * counted, and nothing is left behind (which a sanitizer or valgrind sees). */
#include "device.h"
#include "failing_memory.h"

#include <stdio.h>

#define STEPS 300 /* some beyond the head */

static const char *name_of(void *user, uint32_t id)
{
    (void)user;
    return id == 1 ? "forward" : NULL;
}

static void feed(pki_device *d)
{
    for (uint64_t i = 0; i < STEPS; i++) {
        char name[16];
        pki_activity a = kernel((uint32_t)i % 3, 100 * i, 100 * i + 10 + i % 7);
        snprintf(name, sizeof name, "kernel %d", (int)(i % 20));
        a.name = name;
        a.name_length = strlen(name);
        a.region = 1 + (uint32_t)(i % 3);
        add(d, a);
        a = span(4, 100 * i + 20, 100 * i + 70);
        a.region = 200;
        a.device = i % 2;
        add(d, a);
        pki_device_memory(d, 0, 100 * i * US, 5);
        step(d, 100 * i, 100 * i + 100);
        if (i % 70 == 69)
            pki_device_finalised(d, (100 * i - 500) * US);
    }
    pki_device_finalised(d, UINT64_MAX);
}

static void check_whole(const pki_summary *s)
{
    assert_int_equal(s->gpu_count, 2);
    assert_int_equal(s->kernel_count, 20);
    assert_int_equal(s->gpus->kernels, STEPS);
    assert_int_equal(s->gpus->per_step[PKI_GPU_STEP].count, STEPS);
    assert_int_equal(s->activities.unmeasured, 0);
}

static void check_part(const pki_summary *s)
{
    for (size_t i = 0; i < s->gpu_count; i++) {
        assert_in_range(s->gpus[i].kernels, 0, STEPS);
        for (int f = 0; f < PKI_GPU_FIGURES; f++)
            assert_in_range(s->gpus[i].per_step[f].count, 0, STEPS);
        assert_true(s->gpus[i].per_step[PKI_GPU_BUSY].max <= 100 * US);
    }
    for (size_t i = 0; i < s->kernel_count; i++)
        assert_true(s->kernels[i].name && s->kernels[i].region);
}

typedef void failing(long n);

static bool run(failing *way, long n)
{
    pki_summary s;
    pki_summary_init(&s);
    way(n);
    pki_device *d = pki_device_create(PKI_DEVICE_ITEMS);
    feed(d);
    bool filled = pki_device_fill(d, 0, name_of, NULL, &s), failed = memory_has_failed();
    memory_fails_after(-1);
    if (!filled)
        assert_int_equal(s.gpu_count + s.kernel_count, 0);
    else if (!failed)
        check_whole(&s);
    else
        check_part(&s);
    pki_device_destroy(d);
    pki_summary_finish(&s);
    return failed;
}

static void sweep(failing *way)
{
    size_t count;
    long total;
    assert_false(run(memory_watch, 0));
    const long *chosen = memory_watched(&count, &total);
    assert_in_range(total, 100, 5000);
    for (size_t i = 0; i < count; i++)
        assert_true(run(way, chosen[i]));
    assert_false(run(way, total));
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    sweep(memory_fails_after);
    sweep(memory_fails_once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
