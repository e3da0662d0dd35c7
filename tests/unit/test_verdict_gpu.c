/* Verdicts about devices, each at its threshold and just beyond, and what they do to the others. */
#include "measure/verdict/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "verdicts.h"

#define STEP 1000000 /* ns of step time, in all */

/* A loop of nothing but computation, and a GPU that is busy for 75 % of it. */
static pki_summary good_run(bool measured)
{
    pki_summary s;
    pki_summary_init(&s);
    s.run.complete = true;
    s.steps.count = s.steps.broken_down = 1000;
    s.steps.steady = (pki_dist){.count = 1000, .sum = STEP, .p50 = 1000, .p99 = 1000};
    s.steps.kinds[PK_COMPUTE] = STEP;
    s.counts.begun = s.counts.recorded = 10000;
    s.gpus = calloc(3, sizeof *s.gpus);
    s.gpu_count = 1;
    s.gpus->measured = measured;
    s.gpus->per_step[PKI_GPU_STEP] = (pki_dist){.count = 1000, .sum = STEP};
    s.gpus->per_step[PKI_GPU_BUSY].sum = STEP * 3 / 4;
    return s;
}

static void set(pki_summary *s, enum pki_gpu_figure figure, uint64_t sum)
{
    s->gpus->per_step[figure].sum = (double)sum;
    s->gpus->per_step[figure].mean = (double)sum / 1000;
}

static const pki_verdict *found(pki_summary *s, const char *name)
{
    assert_true(pki_verdicts_fill(s));
    const pki_verdict *v = find_verdict(s, name);
    if (!v)
        fail_msg("no %s", name);
    return v;
}

/* The names in order, "a b c"; finishes s. */
static const char *names_of(pki_summary *s)
{
    static char names[512];
    names[0] = '\0';
    assert_true(pki_verdicts_fill(s));
    for (size_t i = 0; i < s->verdict_count; i++) {
        strcat(names, i ? " " : "");
        strcat(names, s->verdicts[i].name);
    }
    pki_summary_finish(s);
    return names;
}

static const char *with(bool measured, enum pki_gpu_figure figure, uint64_t sum)
{
    pki_summary s = good_run(measured);
    set(&s, figure, sum);
    return names_of(&s);
}

static void shares_at_their_thresholds(void **state)
{
    (void)state;
    assert_string_equal(with(true, PKI_GPU_BUSY, STEP * 8 / 10), "compute-bound");
    assert_string_equal(with(true, PKI_GPU_BUSY, STEP * 8 / 10 + 1), "gpu-bound");
    assert_string_equal(with(true, PKI_GPU_IDLE, STEP * 3 / 10), "compute-bound");
    assert_string_equal(with(true, PKI_GPU_IDLE, STEP * 3 / 10 + 1), "gpu-idle");
    assert_string_equal(with(true, PKI_GPU_COPY_ALONE, STEP * 2 / 10), "compute-bound");
    assert_string_equal(with(true, PKI_GPU_COPY_ALONE, STEP * 2 / 10 + 1), "copy-bound");
    assert_string_equal(with(true, PKI_GPU_SYNC_GAPS, STEP * 2 / 10), "compute-bound");
    assert_string_equal(with(true, PKI_GPU_SYNC_GAPS, STEP * 2 / 10 + 1), "sync-bound");
}

static void many_short_kernels_with_gaps(void **state)
{
    (void)state;
    for (uint64_t more = 0; more < 2; more++) {
        pki_summary s = good_run(true);
        set(&s, PKI_GPU_LAUNCH_GAPS, STEP * 2 / 10 + more);
        set(&s, PKI_GPU_KERNELS, 1000);
        set(&s, PKI_GPU_SHORT_KERNELS, 500);
        assert_string_equal(names_of(&s), more ? "launch-bound" : "compute-bound");
        s = good_run(true);
        set(&s, PKI_GPU_LAUNCH_GAPS, STEP / 2);
        set(&s, PKI_GPU_KERNELS, 1000);
        set(&s, PKI_GPU_SHORT_KERNELS, 499 + more);
        assert_string_equal(names_of(&s), more ? "launch-bound" : "compute-bound");
    }
}

/* What only CUPTI can tell is not said of spans, whatever stands in the figures. */
static void spans_tell_less(void **state)
{
    (void)state;
    assert_string_equal(with(false, PKI_GPU_COPY_ALONE, STEP), "compute-bound");
    assert_string_equal(with(false, PKI_GPU_SYNC_GAPS, STEP), "compute-bound");
    assert_string_equal(with(false, PKI_GPU_LAUNCH_GAPS, STEP), "compute-bound");
    pki_summary s = good_run(false);
    set(&s, PKI_GPU_BUSY, STEP);
    assert_non_null(strstr(found(&s, "gpu-bound")->text, "Stream spans cover 100 %"));
    set(&s, PKI_GPU_BUSY, 0);
    set(&s, PKI_GPU_IDLE, STEP);
    const pki_verdict *idle = found(&s, "gpu-idle");
    assert_int_equal(idle->severity, PKI_NOTE);
    assert_non_null(strstr(idle->text, "or runs what is in no pk_gpu_begin"));
    assert_non_null(find_verdict(&s, "compute-bound")); /* as far as anybody knows */
    pki_summary_finish(&s);
}

static void idle_is_a_warning_unless_explained(void **state)
{
    pki_summary s = good_run(true);
    (void)state;
    set(&s, PKI_GPU_IDLE, STEP / 2);
    assert_int_equal(found(&s, "gpu-idle")->severity, PKI_WARN);
    assert_null(find_verdict(&s, "compute-bound"));
    set(&s, PKI_GPU_SYNC_GAPS, STEP / 2);
    assert_int_equal(found(&s, "gpu-idle")->severity, PKI_NOTE);
    assert_int_equal(find_verdict(&s, "sync-bound")->severity, PKI_WARN);
    set(&s, PKI_GPU_SYNC_GAPS, 0);
    s.steps.kinds[PK_DATA] = STEP;
    assert_int_equal(found(&s, "gpu-idle")->severity, PKI_NOTE);
    assert_non_null(find_verdict(&s, "input-bound"));
    pki_summary_finish(&s);
}

/* While the device works, what the loop does is hidden: waiting always, getting input if it is
 * sure. */
static void a_busy_device_hides_waits_and_input(void **state)
{
    (void)state;
    for (int measured = 0; measured < 2; measured++) {
        pki_summary s = good_run(measured);
        s.steps.kinds[PK_WAIT] = STEP;
        assert_string_equal(names_of(&s), "waiting");
        s = good_run(measured);
        s.steps.kinds[PK_WAIT] = STEP;
        set(&s, PKI_GPU_BUSY, STEP * 9 / 10);
        assert_string_equal(names_of(&s), "gpu-bound");
        s = good_run(measured);
        s.steps.kinds[PK_DATA] = STEP;
        set(&s, PKI_GPU_BUSY, STEP * 9 / 10);
        assert_string_equal(names_of(&s), measured ? "gpu-bound" : "input-bound");
        s = good_run(measured);
        s.steps.kinds[PK_COMM] = STEP / 2;
        set(&s, PKI_GPU_BUSY, STEP * 9 / 10);
        assert_string_equal(names_of(&s), "communication-heavy");
    }
}

static void the_good_news_names_the_device(void **state)
{
    pki_summary s = good_run(true);
    (void)state;
    s.gpus->device = 5;
    assert_non_null(strstr(found(&s, "compute-bound")->text, " GPU 5 is busy for 75.0 % of it."));
    set(&s, PKI_GPU_BUSY, STEP);
    s.kernels = calloc(4, sizeof *s.kernels);
    for (; s.kernel_count < 4; s.kernel_count++)
        s.kernels[s.kernel_count] =
            (pki_kernel_row){strdup("gemm"), strdup(""), 0, {.count = 1, .sum = 10}};
    const char *text = found(&s, "gpu-bound")->text;
    assert_non_null(strstr(text, "\"gemm\" 25.0 %, \"gemm\" 25.0 %, \"gemm\" 25.0 %. "));
    pki_summary_finish(&s);
}

static void the_device_that_is_judged(void **state)
{
    pki_summary s = good_run(false);
    (void)state;
    s.gpu_count = 3;
    s.gpus[1] = s.gpus[2] = s.gpus[0];
    s.gpus[1].device = 1;
    s.gpus[1].per_step[PKI_GPU_BUSY].sum = STEP;
    s.gpus[2].device = 2;
    s.gpus[2].per_step[PKI_GPU_STEP] = (pki_dist){0};               /* in no steady step */
    assert_non_null(strstr(found(&s, "gpu-bound")->text, "GPU 1")); /* the busiest */
    s.gpus[0].measured = true;
    assert_non_null(strstr(found(&s, "compute-bound")->text, "GPU 0")); /* a measured one */
    assert_null(find_verdict(&s, "gpu-bound"));
    pki_summary_finish(&s);
}

static void exposed_communication(void **state)
{
    (void)state;
    assert_string_equal(with(true, PKI_GPU_COMM_EXPOSED, STEP / 10), "compute-bound");
    assert_string_equal(with(true, PKI_GPU_COMM_EXPOSED, STEP / 10 + 1), "communication-exposed");
    assert_string_equal(with(false, PKI_GPU_COMM_EXPOSED, STEP / 2), "communication-exposed");
    assert_string_equal(with(true, PKI_GPU_COMM_HIDDEN, STEP), "compute-bound");
    pki_summary s = good_run(true);
    set(&s, PKI_GPU_COMM_EXPOSED, STEP / 4);
    set(&s, PKI_GPU_COMM_HIDDEN, STEP / 8);
    const pki_verdict *v = found(&s, "communication-exposed");
    assert_int_equal(v->severity, PKI_WARN);
    assert_non_null(strstr(v->text, "for 25.0 % of the step GPU 0 has collectives in flight and no"
                                    " kernel on another stream beside"));
    assert_non_null(strstr(v->text, "; hidden: 12.5 %. Start each"));
    pki_summary_finish(&s);
}

/* Of those that are on a GPU: by NCCL, or timed on a stream. */
static void the_longest_collective(void **state)
{
    static const char *const libraries[] = {"MPI", "NCCL", "mine"};
    (void)state;
    pki_summary s = good_run(true);
    set(&s, PKI_GPU_COMM_EXPOSED, STEP / 4);
    s.comm.comms = calloc(3, sizeof *s.comm.comms);
    s.comm.slowest = calloc(3, sizeof *s.comm.slowest);
    s.comm.comm_count = s.comm.slowest_count = 3;
    for (uint32_t i = 0; i < 3; i++) {
        s.comm.comms[i] = (pki_comm_row){.library = strdup(libraries[i]), .name = strdup("world")};
        s.comm.slowest[i] = (pki_comm_call_row){.region = strdup(i ? "backward" : "load"),
                                                .comm = i,
                                                .op = i,
                                                .bytes = 1000,
                                                .duration = 3500 - 1000 * i};
    }
    const pki_verdict *v = found(&s, "communication-exposed");
    assert_non_null(strstr(v->text, "The longest one, broadcast of 1.00 KB in \"backward\", took"
                                    " 2.50 us."));
    s.comm.slowest[1].comm = 0;
    v = found(&s, "communication-exposed");
    assert_null(strstr(v->text, "The longest one"));
    s.comm.comms[2].on_stream = 1;
    v = found(&s, "communication-exposed");
    assert_non_null(strstr(v->text, ", took 1.50 us."));
    pki_summary_finish(&s);
}

/* Idle in few steps, for long: the median of the longest gaps is none. */
static void the_longest_gap_of_most_steps_is_none(void **state)
{
    pki_summary s = good_run(true);
    (void)state;
    set(&s, PKI_GPU_IDLE, STEP * 63 / 100);
    s.gpus->per_step[PKI_GPU_LONGEST_GAP] = (pki_dist){.count = 1000, .p50 = 0, .max = 7000000};
    const pki_verdict *v = found(&s, "gpu-idle");
    assert_non_null(
        strstr(v->text, "gaps per step; most steps have none, the longest took 7.00 ms."));
    s.gpus->per_step[PKI_GPU_LONGEST_GAP].p50 = 3000;
    v = found(&s, "gpu-idle");
    assert_non_null(strstr(v->text, "gaps per step; the longest takes 3.00 us (median)."));
    pki_summary_finish(&s);
}

/* It has no say in when the device is busy, or idle. */
static void a_device_with_collectives_alone(void **state)
{
    pki_summary s = good_run(false);
    (void)state;
    s.gpus->per_step[PKI_GPU_BUSY] = (pki_dist){0};
    set(&s, PKI_GPU_COMM, STEP / 2);
    assert_null(strstr(found(&s, "compute-bound")->text, "GPU"));
    assert_string_equal(names_of(&s), "compute-bound");
}

static void copies_say_which_way(void **state)
{
    pki_summary s = good_run(true);
    (void)state;
    set(&s, PKI_GPU_COPY_ALONE, STEP / 2);
    set(&s, PKI_GPU_H2D_TIME, STEP / 2);
    set(&s, PKI_GPU_H2D_BYTES, STEP * 5);
    const pki_verdict *v = found(&s, "copy-bound");
    assert_non_null(strstr(v->text, "; host to device 5.00 KB per step at 10.0 GB/s. "));
    assert_null(strstr(v->text, "device to host"));
    assert_true(v->value > 0.49 && v->value < 0.51 && v->threshold < 0.21);
    pki_summary_finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_at_their_thresholds),
        cmocka_unit_test(many_short_kernels_with_gaps),
        cmocka_unit_test(spans_tell_less),
        cmocka_unit_test(idle_is_a_warning_unless_explained),
        cmocka_unit_test(the_longest_gap_of_most_steps_is_none),
        cmocka_unit_test(a_busy_device_hides_waits_and_input),
        cmocka_unit_test(the_good_news_names_the_device),
        cmocka_unit_test(the_device_that_is_judged),
        cmocka_unit_test(exposed_communication),
        cmocka_unit_test(the_longest_collective),
        cmocka_unit_test(a_device_with_collectives_alone),
        cmocka_unit_test(copies_say_which_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
