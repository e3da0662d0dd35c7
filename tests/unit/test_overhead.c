/* What perfkit itself took: all of it in one figure, and the verdict at its thresholds. */
#include "measure/overhead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "measure/verdict/verdict.h"

static const pki_verdict *verdict_of(pki_summary *s)
{
    assert_true(pki_verdicts_fill(s));
    for (size_t i = 0; i < s->verdict_count; i++)
        if (strcmp(s->verdicts[i].name, "overhead") == 0)
            return &s->verdicts[i];
    return NULL;
}

static const int NOT_GIVEN = -1;

/* Of a run with so much in the collector. */
static int severity_of(uint64_t wall, uint64_t collector, uint64_t process)
{
    pki_summary s = {.run.complete = true, .run.wall = wall};
    pki_overhead_fill(&(pki_toll){.process = process, .collector = collector}, &s);
    const pki_verdict *verdict = verdict_of(&s);
    int severity = verdict ? (int)verdict->severity : NOT_GIVEN;
    pki_summary_finish(&s);
    return severity;
}

static void at_its_threshold(void **state)
{
    (void)state;
    assert_int_equal(severity_of(1000000000, 10000000, 1000000000), NOT_GIVEN);
    assert_int_equal(severity_of(1000000000, 10000001, 1000000000), PKI_WARN);
    /* of a run so short that its start and end are most of it */
    assert_int_equal(severity_of(10000000, 4999999, 10000000), NOT_GIVEN);
    assert_int_equal(severity_of(10000000, 5000000, 10000000), PKI_WARN);
}

/* The collector's wake-ups alone are a share of a process that sleeps: a note. */
static void of_a_process_that_hardly_runs(void **state)
{
    (void)state;
    assert_int_equal(severity_of(4000000000, 20000001, 100000000), PKI_WARN);
    assert_int_equal(severity_of(4000000000, 20000000, 100000000), PKI_NOTE);
}

static void all_of_it(void **state)
{
    pki_summary s = {.run.complete = true,
                     .run.wall = 1000000000,
                     .run.trace_path = (char *)(uintptr_t) "run.json"};
    (void)state;
    const pki_toll toll = {.region_ns = 20,
                           .process = 1000000000,
                           .collector = 40000000,
                           .callers = 30000000,
                           .backends = 20000000};
    s.counts.begun = 1000000;
    s.counts.points = 500000;
    pki_overhead_fill(&toll, &s);
    assert_true(s.run.cpu == 1000000000);
    assert_true(s.overhead.recording == 30e6 && s.overhead.collector == 40e6);
    assert_true(s.overhead.callers == 30e6 && s.overhead.backends == 20e6);
    assert_true(s.overhead.total == 120e6 && s.overhead.share == 0.12);
    const char *text = verdict_of(&s)->text;
    assert_non_null(strstr(text, "12.0 % of the process's CPU time (threshold 1 %), 120 ms in all: "
                                 "30.0 ms recording (20 ns per region), 40.0 ms in its collector "
                                 "thread, 30.0 ms in the program's threads"));
    assert_non_null(strstr(text, "20.0 ms in threads of backends. What is not recording"));
    s.run.trace_path = NULL;
    pki_summary_finish(&s);
}

static void the_advice_fits(void **state)
{
    pki_region_row row = {.time = {.count = 900000, .mean = 9999},
                          .name = (char *)(uintptr_t) "dot"};
    pki_summary s = {.run.complete = true,
                     .run.wall = 1000000000,
                     .run.trace_path = (char *)(uintptr_t) "run.json"};
    const pki_toll toll = {.region_ns = 20, .process = 1000000000, .collector = 40000000};
    (void)state;
    s.regions = &row;
    s.region_count = 1;
    s.counts.begun = 40000; /* at 1000 ns each: it writes */
    pki_overhead_fill(&toll, &s);
    assert_non_null(strstr(verdict_of(&s)->text, "formatting and writing the trace"));
    assert_non_null(
        strstr(verdict_of(&s)->text, "to \"dot\" (900K, 10.0 us each): a region around"));
    row.time.mean = 10000;
    assert_null(strstr(verdict_of(&s)->text, "dot"));
    s.counts.begun = 39999;
    pki_overhead_fill(&toll, &s);
    assert_non_null(strstr(verdict_of(&s)->text, "waking up, at least twice a second"));
    assert_null(strstr(verdict_of(&s)->text, "formatting"));
    s.counts.begun = 40000;
    s.run.trace_path = (char *)(uintptr_t) ""; /* there is none to write less of */
    pki_overhead_fill(&toll, &s);
    assert_null(strstr(verdict_of(&s)->text, "formatting"));
    pki_overhead_fill(
        &(pki_toll){.process = 1000000000, .callers = 42000000, .captures = 878000000}, &s);
    assert_non_null(strstr(verdict_of(&s)->text, "878 ms writing captures. Most of it is writing"));
    pki_overhead_fill(&(pki_toll){.process = 1000000000, .readings = 50000000}, &s);
    assert_non_null(strstr(verdict_of(&s)->text, "50.0 ms in the program's threads reading what"));
    s.run.trace_path = NULL;
    s.regions = NULL;
    s.region_count = 0;
    pki_summary_finish(&s);
}

static pki_processor told_of(pki_processor seen)
{
    pki_summary s = {.run.wall = 1000000000, .steps.count = 10};
    pki_overhead_fill(&(pki_toll){.stepper = seen}, &s);
    return s.steps.processor;
}

/* The kernel tells of a wait when it is over: a loop of microseconds may have waited for a tick. */
static void of_no_time_no_share_is_told(void **state)
{
    const uint64_t least = PKI_PROCESSOR_LEAST_NS;
    (void)state;
    assert_int_equal(told_of((pki_processor){5000, 0, 927150}).observed, 0);
    assert_int_equal(told_of((pki_processor){5000, 0, 927150}).ready, 0);
    assert_int_equal(told_of((pki_processor){least - 1, 10, 10}).observed, 0);
    pki_processor p = told_of((pki_processor){least, 10, 20});
    assert_true(p.observed == least && p.running == 10 && p.ready == 20);
    p = told_of((pki_processor){least, least - 5, 20});
    assert_true(p.observed == least && p.running == least - 5 && p.ready == 5);
    p = told_of((pki_processor){least, least + 5, 20});
    assert_true(p.observed == least && p.running == least && p.ready == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_its_threshold),
        cmocka_unit_test(of_a_process_that_hardly_runs),
        cmocka_unit_test(all_of_it),
        cmocka_unit_test(the_advice_fits),
        cmocka_unit_test(of_no_time_no_share_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
