/* Verdicts for people: of many that are late a few sentences, and each one in JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "job/verdicts/findings.h"
#include "memory.h"

#define RANKS 20
#define STAGES 6

/* Of each rank: the stage in which it is late; STAGES: nobody knows. */
static job_findings found_late(job *j, const size_t *stages, size_t count)
{
    job_findings f = {.of = j};
    j->rank_count = RANKS;
    j->world = RANKS;
    j->ranks = memory_zeroed(RANKS, sizeof *j->ranks);
    j->stage_count = STAGES;
    j->stages = memory_zeroed(STAGES, sizeof *j->stages);
    for (int i = 0; i < STAGES; i++) {
        char name[] = {(char)('A' + i), '\0'};
        j->stages[i].name = memory_copy(name);
    }
    table_add(&j->hosts, "left");
    table_add(&j->hosts, "right");
    f.lateness.count = count;
    f.lateness.cost = 5e6;
    f.lateness.late = memory_zeroed(count, sizeof *f.lateness.late);
    for (size_t i = 0; i < RANKS; i++) {
        j->ranks[i].rank = (int32_t)i;
        j->ranks[i].path = memory_copy("");
    }
    for (size_t i = 0; i < count; i++)
        f.lateness.late[i] = (job_late){.rank = i,
                                        .host_at = i % 2,
                                        .ranks = 1,
                                        .processor = PKI_SEAT_UNKNOWN,
                                        .by = 0.5 - 0.01 * (double)i,
                                        .stage = stages[i],
                                        .stage_share = stages[i] < STAGES ? 0.9 : 0,
                                        .excess = 1e6};
    return f;
}

static void finish(job *j, job_findings *f)
{
    job_findings_finish(f);
    job_finish(j);
}

static void forget(job_verdict *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(all[i].text);
    free(all);
}

static void assert_says(const job_verdict *v, const char *name, const char *text)
{
    assert_string_equal(v->name, name);
    if (!strstr(v->text, text))
        fail_msg("\"%s\" does not say \"%s\"", v->text, text);
}

static void few_are_named_each(void **state)
{
    (void)state;
    job j = {0};
    size_t count, stages[JOB_LATE_SAID] = {0};
    job_findings f = found_late(&j, stages, JOB_LATE_SAID);
    job_verdict *said = job_grouped_verdicts(&f, &count);
    assert_int_equal(count, JOB_LATE_SAID);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(said[i].name, "late-rank");
    forget(said, count);
    finish(&j, &f);
}

static void many_are_said_by_stage(void **state)
{
    (void)state;
    job j = {0};
    const size_t stages[] = {3, 0, 0, 1, 0, 1, 0, 2};
    size_t count;
    job_findings f = found_late(&j, stages, 8);
    job_verdict *said = job_grouped_verdicts(&f, &count);
    assert_int_equal(count, 5);
    assert_says(&said[0], "late-ranks",
                "4 ranks of 2 hosts take 44.0 % to 49.0 % longer than the others for the same work,"
                " most of it in A. Most of all host right, rank 1: 1.00 ms per step. Ranks 1-2, 4,"
                " 6.");
    assert_says(&said[1], "late-ranks", "2 ranks of host right take 45.0 % to 47.0 %");
    assert_says(&said[2], "late-rank", "Rank 0 (host left)");
    assert_says(&said[3], "late-rank", "Rank 7 (host right)");
    assert_says(&said[4], "late-ranks",
                "All 8 that are late together make the job's steps 5.00 ms longer.");
    forget(said, count);
    said = job_verdicts(&f, &count);
    assert_int_equal(count, 8);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(said[i].name, "late-rank");
    forget(said, count);
    finish(&j, &f);
}

/* However many stages there are. */
static void small_stages_are_said_as_one(void **state)
{
    (void)state;
    job j = {0};
    const size_t stages[] = {0, 0, 1, 1, 2, 2, 3, 4, STAGES};
    size_t count;
    job_findings f = found_late(&j, stages, 9);
    job_verdict *said = job_grouped_verdicts(&f, &count);
    assert_int_equal(count, 5);
    assert_says(&said[0], "late-ranks", "most of it in A");
    assert_says(&said[3], "late-ranks", "3 ranks of 2 hosts take 42.0 % to 44.0 %");
    assert_says(&said[3], "late-ranks", "most of it in 3 other stages");
    forget(said, count);
    finish(&j, &f);
}

static void hosts_are_said_together(void **state)
{
    (void)state;
    job j = {0};
    const size_t stages[] = {0, 0, 0, 0, 0, 0, 0, 0};
    size_t count;
    job_findings f = found_late(&j, stages, 8);
    f.lateness.late[2].host = f.lateness.late[3].host = true;
    job_verdict *said = job_grouped_verdicts(&f, &count);
    assert_int_equal(count, 3);
    assert_says(&said[0], "late-hosts", "2 hosts, all ranks of each, take 47.0 % to 48.0 % longer");
    assert_says(&said[0], "late-hosts", "Most of all host left: ");
    assert_says(&said[1], "late-ranks", "6 ranks of 2 hosts");
    forget(said, count);
    finish(&j, &f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_are_named_each),
        cmocka_unit_test(many_are_said_by_stage),
        cmocka_unit_test(small_stages_are_said_as_one),
        cmocka_unit_test(hosts_are_said_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
