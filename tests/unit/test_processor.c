/* A loop without a processor: said first, and what it explains is not said as if it were the cause.
 */
#include "measure/verdict/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure/overhead.h"
#include "session/collector/stepper.h"

#define STEP 1000000 /* ns of step time, in all */
#define SECOND UINT64_C(1000000000)

/* 80 % communication, and a processor for a part of the time. */
static pki_summary a_rank(uint64_t ready)
{
    pki_summary s = {.run.complete = true};
    s.steps.count = s.steps.broken_down = 1000;
    s.steps.steady = (pki_dist){.count = 1000, .sum = STEP, .p50 = 1000, .p99 = 1000};
    s.steps.kinds[PK_COMM] = STEP * 8 / 10;
    s.steps.kinds[PK_COMPUTE] = STEP * 2 / 10;
    s.steps.processor = (pki_processor){SECOND, SECOND - ready, ready};
    return s;
}

/* "! a, - b"; finishes s. */
static const char *verdicts_of(pki_summary *s)
{
    static char text[512];
    static const char marks[] = {[PKI_GOOD] = '+', [PKI_NOTE] = '-', [PKI_WARN] = '!'};
    size_t n = 0;
    text[0] = '\0';
    assert_true(pki_verdicts_fill(s));
    for (size_t i = 0; i < s->verdict_count; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%c %s", i ? ", " : "",
                              marks[s->verdicts[i].severity], s->verdicts[i].name);
    pki_summary_finish(s);
    return text;
}

static const char *verdicts_with(uint64_t ready)
{
    pki_summary s = a_rank(ready);
    return verdicts_of(&s);
}

static void at_its_threshold(void **state)
{
    (void)state;
    assert_string_equal(verdicts_with(0), "! communication-bound");
    assert_string_equal(verdicts_with(SECOND / 10), "! communication-bound");
    assert_string_equal(verdicts_with(SECOND / 10 + 1), "! cpu-starved, ! communication-bound");
}

/* 80 % with 30 % that may be waiting for a processor is 50 %: no longer more than the threshold. */
static void what_it_explains_yields(void **state)
{
    (void)state;
    assert_string_equal(verdicts_with(SECOND * 29 / 100), "! cpu-starved, ! communication-bound");
    assert_string_equal(verdicts_with(SECOND * 31 / 100), "! cpu-starved, - communication-bound");
}

static void uneven_steps_yield(void **state)
{
    pki_summary s = a_rank(0);
    (void)state;
    s.steps.steady.p99 = 2000;
    s.steps.drift = 0.2;
    assert_string_equal(verdicts_of(&s), "! communication-bound, ! unsteady, ! drifting");
    s = a_rank(SECOND / 2);
    s.steps.steady.p99 = 2000;
    s.steps.drift = 0.2;
    s.counts.dropped = 1; /* which has nothing to do with it */
    assert_string_equal(verdicts_of(&s), "! cpu-starved, ! records-dropped, - communication-bound, "
                                         "- unsteady, - drifting");
}

static void in_words(void **state)
{
    pki_summary s = a_rank(SECOND * 61 / 100);
    (void)state;
    s.steps.processor.running = SECOND * 34 / 100;
    assert_true(pki_verdicts_fill(&s));
    assert_non_null(strstr(s.verdicts[0].text, "The loop had a processor for 34.0 % of the time; "
                                               "for 61.0 % (threshold 10 %) it was ready"));
    assert_non_null(strstr(s.verdicts[1].text, "Without a processor (cpu-starved), that can come"));
    pki_summary_finish(&s);
}

static void not_judged_too_early(void **state)
{
    pki_summary s = a_rank(0);
    (void)state;
    s.steps.processor = (pki_processor){PKI_PROCESSOR_LEAST_NS - 1, 0, PKI_PROCESSOR_LEAST_NS - 1};
    assert_string_equal(verdicts_of(&s), "! communication-bound");
}

static void what_the_kernel_writes(void **state)
{
    uint64_t running = 7, ready = 7;
    (void)state;
    assert_true(pki_stepper_parse("123456789 987654321 42", &running, &ready));
    assert_true(running == 123456789 && ready == 987654321);
    assert_true(pki_stepper_parse("0 0 0", &running, &ready));
    assert_false(pki_stepper_parse("", &running, &ready));
    assert_false(pki_stepper_parse("12", &running, &ready));
    assert_false(pki_stepper_parse("12-7 5", &running, &ready));
    assert_false(pki_stepper_parse("no", &running, &ready));
}

/* A wait that had begun before the first look, and running that the kernel entered late. */
static void nobody_has_more_than_there_was(void **state)
{
    pki_processor sum = {0};
    (void)state;
    pki_stepper_add(&sum, &(pki_processor){100, 30, 90});
    assert_true(sum.observed == 100 && sum.running == 30 && sum.ready == 70);
    pki_stepper_add(&sum, &(pki_processor){100, 104, 0});
    assert_true(sum.observed == 200 && sum.running == 130 && sum.ready == 70);
    /* Of a wait over two looks nothing is lost: the first has left room for it. */
    pki_stepper_add(&sum, &(pki_processor){100, 0, 0});
    pki_stepper_add(&sum, &(pki_processor){100, 20, 180});
    assert_true(sum.observed == 400 && sum.running == 150 && sum.ready == 250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_has_more_than_there_was),
        cmocka_unit_test(at_its_threshold),
        cmocka_unit_test(what_it_explains_yields),
        cmocka_unit_test(uneven_steps_yield),
        cmocka_unit_test(in_words),
        cmocka_unit_test(not_judged_too_early),
        cmocka_unit_test(what_the_kernel_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
