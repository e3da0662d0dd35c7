/* Without memory: one allocation failing, or all from one on, for each way to one. */
#include "device.h"
#include "failing_memory.h"

#include <pk/bench.h>
#include <pk/pk.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "measure/steps/steps.h"
#include "measure/verdict/verdict.h"
#include "out/report/report.h"

/* ---- devices and reports ---- */

/* -- devices -- */

/* What is missing is counted, and nothing is left behind (which a sanitizer or valgrind sees). */

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

static const struct CMUnitTest device_memory_tests[] = {
    cmocka_unit_test(every_allocation_may_fail)};

/* -- from steps to reports -- */

/* An answer each time, the right one if it says so, and nothing left behind (which a sanitizer or
 * valgrind sees). */

static const char *report_memory_name_of(void *user, uint32_t id)
{
    (void)user;
    return id == 1 ? "load" : id == 2 ? "work" : NULL;
}

static void report_memory_feed(pki_steps *steps)
{
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t work = 1000 + 37 * (i % 50);
        pki_steps_add_self(steps, 1, PK_DATA, 2000);
        pki_steps_add_self(steps, 2, PK_COMPUTE, work);
        pki_steps_add(steps, &(pki_step){.index = i,
                                         .start = 10000 * i,
                                         .duration = 4000 + work,
                                         .items = 1,
                                         .broken_down = true});
    }
}

/* Made while memory is to be had. */
static void give_regions(pki_summary *s)
{
    memory_fails_after(-1);
    pki_summary_init(s);
    s->run.complete = true;
    s->region_count = 2;
    s->regions = calloc(2, sizeof *s->regions);
    s->regions[0] = (pki_region_row){.name = strdup("load"), .kind = PK_DATA};
    s->regions[1] = (pki_region_row){.name = strdup("work"), .kind = PK_COMPUTE};
}

/* Not changed by what there was no memory for. */
static void check_filled(const pki_summary *s)
{
    const pki_step_summary *t = &s->steps;
    assert_int_equal(t->count, STEPS);
    assert_int_equal(t->broken_down, STEPS - t->warmup);
    assert_int_equal(t->kinds[PK_DATA], 2000 * (STEPS - t->warmup));
    assert_in_range(t->steady.count, 0, STEPS - t->warmup);
}

typedef void report_memory_failing(long n);

static bool report_memory_run(report_memory_failing *way, long n)
{
    pki_summary s;
    give_regions(&s);
    FILE *nowhere = fopen("/dev/null", "w");
    way(n);
    pki_steps *steps = pki_steps_create();
    report_memory_feed(steps);
    bool filled = pki_steps_fill(steps, 0, report_memory_name_of, NULL, &s);
    if (filled && steps)
        check_filled(&s);
    else
        assert_int_equal(s.steps.count, 0);
    if (!pki_verdicts_fill(&s))
        assert_int_equal(s.verdict_count, 0);
    for (size_t i = 0; i < s.verdict_count; i++)
        assert_true(s.verdicts[i].name && s.verdicts[i].text);
    bool before = memory_has_failed();
    int text = pki_report_text(&s, nowhere), json = pki_report_json(&s, nowhere);
    bool failed = memory_has_failed();
    /* A text without all its sentences does not pass for one. */
    if (failed && !(way == memory_fails_once && before))
        assert_int_equal(text, -ENOMEM);
    else
        assert_int_equal(text, 0);
    assert_int_equal(json, 0);
    memory_fails_after(-1);
    pki_steps_destroy(steps);
    pki_summary_finish(&s);
    fclose(nowhere);
    return failed;
}

static void report_memory_sweep(report_memory_failing *way)
{
    size_t count;
    long total;
    assert_false(report_memory_run(memory_watch, 0));
    const long *chosen = memory_watched(&count, &total);
    assert_in_range(total, 300, 5000); /* each step of the head is one at least */
    for (size_t i = 0; i < count; i++)
        assert_true(report_memory_run(way, chosen[i]));
    assert_false(report_memory_run(way, total));
}

static void report_memory_every_allocation_may_fail(void **state)
{
    (void)state;
    report_memory_sweep(memory_fails_after);
    report_memory_sweep(memory_fails_once);
}

static const struct CMUnitTest report_memory_tests[] = {
    cmocka_unit_test(report_memory_every_allocation_may_fail)};

static int run_memory_fails(void)
{
    int failed = cmocka_run_group_tests(device_memory_tests, NULL, NULL);
    failed += cmocka_run_group_tests(report_memory_tests, NULL, NULL);
    return failed;
}

/* ---- benchmarks ---- */

/* A measurement fails with a word, leaves nothing behind, and the next one works: every allocation
 * fails once, in pk_bench and in a whole pk_bench_main. */

static int to_nowhere = -1, real_stdout = -1, real_stderr = -1;

static void silence(bool on)
{
    dup2(on ? to_nowhere : real_stdout, STDOUT_FILENO);
    dup2(on ? to_nowhere : real_stderr, STDERR_FILENO);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void one_function(void **state)
{
    (void)state;
    struct pk_bench_options o = {
        .size = sizeof o, .iterations = 1, .max_samples = 70, .threads = 2, .max_warmup = 1};
    pk_status status = PK_ENOMEM;
    long n = 0;
    for (; status != PK_OK && n < 1000; n++) {
        pk_bench_result r = PK_BENCH_RESULT;
        memory_fails_once(n);
        status = pk_bench("nothing", nothing, NULL, &o, &r);
        bool failed = memory_has_failed();
        memory_fails_after(-1);
        if (status == PK_OK && failed) /* the stop rule looks again later, and more room can wait */
            status = r.count > 0 ? PK_EIO : PK_OK;
        else if (status != PK_OK)
            assert_true(status == PK_ENOMEM && *pk_error_message());
        pk_bench_result_release(&r);
    }
    assert_int_equal(status, PK_OK);
    assert_true(n > 8);
}

static void body(pk_bench_run *bench)
{
    pk_bench_add_counter(bench, "one", 1, PK_BENCH_UNIT_PLAIN);
    for (uint64_t left = pk_bench_begin(bench); left; left--)
        pk_clobber();
    pk_bench_end(bench);
}

static void a_program(void **state)
{
    (void)state;
    char *argv[] = {(char[]){"program"},
                    (char[]){"--iterations=1"},
                    (char[]){"--max-samples=3"},
                    (char[]){"--max-warmup"},
                    (char[]){"1ns"},
                    (char[]){"--filter=o"},
                    (char[]){"--json=/dev/null/x"}};
    int argc = 6;
    long n = 0, refused = 0;
    assert_int_equal(pk_bench_add("one", body, NULL), PK_OK);
    assert_int_equal(pk_bench_add("two", body, NULL), PK_OK);
    silence(true);
    for (bool failed = true; failed && n < 5000; n++) {
        memory_fails_once(n);
        int status = pk_bench_main(argc, argv);
        failed = memory_has_failed();
        memory_fails_after(-1);
        refused += status == 2;
    }
    int unwritable = pk_bench_main(7, argv);
    silence(false);
    assert_in_range(n, 20, 4999);
    assert_true(refused > 15);
    assert_int_equal(unwritable, 2);
}

static const struct CMUnitTest bench_memory_tests[] = {
    cmocka_unit_test(one_function),
    cmocka_unit_test(a_program),
};

static int run_bench_memory(void)
{
    to_nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    real_stdout = dup(STDOUT_FILENO);
    real_stderr = dup(STDERR_FILENO);
    return cmocka_run_group_tests(bench_memory_tests, NULL, NULL);
}

int main(void)
{
    int failed = run_memory_fails();
    failed += run_bench_memory();
    return failed;
}
