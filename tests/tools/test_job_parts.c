/* pk job of ranks that are late in a part of the run, or once; `./dev bench job` asks more. */
#include "job_forge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "job/verdicts/verdicts.h"

/* ---- over some jobs ---- */

/* Seeds are fixed: the same jobs on every machine. */
static const forge usual = {.seed = 31,
                            .ranks = 64,
                            .steps = 200,
                            .per_host = 8,
                            .joined = true,
                            .culprits = 1,
                            .stage = FORGE_BACKWARD};

static void assert_named(const forge *f, bool begins)
{
    job_score s = score_jobs(f, 10);
    print_message("%zu of %zu found, %zu accused, %zu of %zu beginnings\n", s.found, s.culprits,
                  s.accused, s.since_near, s.since);
    assert_int_equal(s.found, 10);
    assert_int_equal(s.accused, 10);
    assert_int_equal(s.stages, 10);
    assert_int_equal(s.since_near, begins ? 10 : 0);
}

static void since_a_step(void **state)
{
    (void)state;
    forge f = usual;
    f.when = FORGE_FOR_GOOD;
    f.slow = 0.10;
    assert_named(&f, true);
}

static void for_some_steps(void **state)
{
    (void)state;
    forge f = usual;
    f.when = FORGE_STRETCH;
    f.slow = 0.30;
    f.length = 20;
    assert_named(&f, true);
}

/* Two blocks and a half of 125; and each block with a hiccup is one of hundreds, so somewhere two
 * of them stand together. */
static void for_few_blocks(void **state)
{
    static const uint64_t seeds[] = {49, 81, 82, 104, 109};
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        forge f = usual;
        f.seed = seeds[i];
        f.steps = 1000;
        f.when = FORGE_STRETCH;
        f.slow = 0.30;
        f.length = 20;
        job_score s = score_jobs(&f, 1);
        assert_true(s.found == 1 && s.accused == 1 && s.since_near == 1);
    }
}

static void now_and_then(void **state)
{
    (void)state;
    forge f = usual;
    f.when = FORGE_SPORADIC;
    f.slow = 0.50;
    f.share = 0.10;
    assert_named(&f, false);
    f.when = FORGE_PERIODIC;
    assert_named(&f, false);
}

static void more_and_more(void **state)
{
    (void)state;
    forge f = usual;
    f.when = FORGE_RAMP;
    f.slow = 0.10;
    assert_named(&f, false);
}

static void once(void **state)
{
    (void)state;
    forge f = usual;
    f.when = FORGE_STOP;
    f.slow = 150;
    assert_named(&f, true);
}

static void whatever_healthy_ranks_do(void **state)
{
    (void)state;
    for (int noise = FORGE_PLAIN; noise < FORGE_NOISES; noise++) {
        forge f = usual;
        f.culprits = 0;
        f.noise = (enum forge_noise)noise;
        job_score s = score_jobs(&f, 5);
        print_message("noise %d: %zu of %zu with false verdicts\n", noise, s.with_false, s.jobs);
        assert_int_equal(s.with_false, 0);
    }
}

/* Windows of 2 steps: 20 steps after the first that has a slow one, at the latest. */
static void while_it_runs(void **state)
{
    (void)state;
    live_score late = {0}, fine = {0};
    forge f = usual;
    f.steps = 240;
    f.joined = false;
    f.when = FORGE_FOR_GOOD;
    f.slow = 0.05;
    score_live(&f, 2, 5, &late);
    f.culprits = 0;
    score_live(&f, 2, 5, &fine);
    print_message("%zu of %zu named, %zu in time\n", late.named, (size_t)5, late.near);
    assert_int_equal(late.named, 5);
    assert_int_equal(late.near, 5);
    assert_int_equal(late.with_false + fine.with_false, 0);
}

/* ---- what is said ---- */

static void assert_said(const forge *f, const char *name, const char *const *words, size_t count)
{
    bool culprit[64];
    pki_summary *ranks = calloc(f->ranks, sizeof *ranks);
    pki_job j;
    forge_make(f, ranks, culprit);
    assert_true(pki_job_of(&j, ranks, f->ranks, &(pki_job_steps){0}) == PKI_JOB_MADE);
    free(ranks);
    pki_job_findings found;
    assert_true(pki_job_find(&found, &j));
    pki_job_verdicts said;
    assert_true(pki_job_group_verdicts(&said, &found));
    print_message("%s\n", said.all[0].text);
    assert_string_equal(said.all[0].name, name);
    for (size_t i = 0; i < count; i++)
        assert_non_null(strstr(said.all[0].text, words[i]));
    for (size_t i = 0; i < said.count; i++)
        assert_string_not_equal(said.all[i].name, "no-finding");
    pki_job_verdicts_finish(&said);
    pki_job_findings_finish(&found);
    pki_job_finish(&j);
}

static void since_when_and_what_it_cost(void **state)
{
    (void)state;
    forge f = usual;
    f.quiet = true;
    f.slow = 0.20;
    f.when = FORGE_FOR_GOOD;
    f.steps = 100;
    char since[40];
    snprintf(since, sizeof since, "from step %zu on", forge_first(&f));
    assert_said(
        &f, "late-rank",
        (const char *const[]){since, "takes 20.0 % longer", "2.00 ms per step", "in backward"}, 4);
    f.when = FORGE_STRETCH;
    f.length = 20;
    snprintf(since, sizeof since, "in steps %zu to %zu, ", forge_first(&f), forge_first(&f) + 19);
    assert_said(&f, "late-rank", (const char *const[]){since, "40.0 ms in all"}, 2);
}

/* Which of a block it was, the rank's slowest steps say. */
static void which_step_and_why(void **state)
{
    (void)state;
    forge f = usual;
    f.slow = 150;
    f.when = FORGE_STOP;
    f.steps = 1000;
    f.quiet = true;
    char step[40];
    snprintf(step, sizeof step, ", step %zu: 1.50 s longer", forge_first(&f));
    assert_said(&f, "long-step", (const char *const[]){step, "why is not known", "in backward"}, 3);
}

/* Two ranks on each of two processors: one that takes longer is no slow processor. */
static void a_rank_is_not_taken_for_its_processor(void **state)
{
    (void)state;
    forge f = usual;
    f.ranks = 4;
    f.per_host = 0;
    f.crowd = FORGE_CROWD_TOLD;
    f.told = f.seated = true;
    f.joined = false;
    f.slow = 0.30;
    f.steps = 100;
    for (int when = FORGE_ALWAYS; when <= FORGE_FOR_GOOD; when++) {
        f.when = (enum forge_when)when;
        job_score s = score_jobs(&f, 10);
        print_message("%zu found, %zu accused, %zu processors\n", s.found, s.accused, s.processors);
        assert_int_equal(s.found, 10);
        assert_int_equal(s.accused, 10);
        assert_int_equal(s.processors, 0);
    }
}

/* Green is said of none of these; more work that a rank tells is no lateness. */
static void where_one_rank_stands_out_nothing_is_green(void **state)
{
    (void)state;
    forge f = usual;
    f.culprits = 0;
    f.quiet = true;
    f.noise = FORGE_UNEVEN;
    assert_said(&f, "uneven", (const char *const[]){"No rank is late for the same work"}, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(since_a_step),
        cmocka_unit_test(for_some_steps),
        cmocka_unit_test(for_few_blocks),
        cmocka_unit_test(now_and_then),
        cmocka_unit_test(more_and_more),
        cmocka_unit_test(once),
        cmocka_unit_test(whatever_healthy_ranks_do),
        cmocka_unit_test(while_it_runs),
        cmocka_unit_test(since_when_and_what_it_cost),
        cmocka_unit_test(which_step_and_why),
        cmocka_unit_test(a_rank_is_not_taken_for_its_processor),
        cmocka_unit_test(where_one_rank_stands_out_nothing_is_green),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
