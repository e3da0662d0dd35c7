/* pk job of ranks that share processors, and of many that are late. */
#include "job_forge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "job/verdicts/verdicts.h"

/* ---- pk job of ranks that share processors ---- */

/* Who has none for steps on end is not late, and who is late among them is found. Seeds are fixed:
 * the same jobs on every machine. */

static const forge crowded = {
    .seed = 700, .ranks = 8, .steps = 100, .crowd = FORGE_CROWD_TOLD, .stage = FORGE_BACKWARD};

static void a_rank_without_a_processor_is_not_accused(void **state)
{
    (void)state;
    forge f = crowded;
    assert_int_equal(score_jobs(&f, 100).with_false, 0);
    f.crowd = FORGE_CROWD_OF_RUN;
    assert_int_equal(score_jobs(&f, 100).with_false, 0);
}

/* Else the tests above could not fail. */
static void without_being_told_it_would_be(void **state)
{
    (void)state;
    forge f = crowded;
    f.crowd = FORGE_CROWD_UNTOLD;
    assert_true(score_jobs(&f, 100).with_false > 10);
}

/* Of so few ranks the median itself is some parts in a thousand off. */
static void who_is_late_is_found(void **state)
{
    (void)state;
    forge f = crowded;
    f.culprits = 1;
    f.slow = 0.05;
    job_score s = score_jobs(&f, 50);
    print_message("%zu of %zu found, %zu accused\n", s.found, s.culprits, s.accused);
    assert_true(10 * s.found >= 9 * s.culprits);
    assert_int_equal(s.rightly, s.accused);
}

/* Half of the ranks sit on a processor that something else has a part of, all the run or by turns:
 * they are late together, and none of them is to blame. */
static void nobody_is_accused_of_his_processor(void **state)
{
    (void)state;
    forge f = crowded;
    f.uneven = 0.25;
    job_score s = score_jobs(&f, 100);
    print_message("by turns: %zu of %zu with false verdicts\n", s.with_false, s.jobs);
    assert_true(s.with_false <= 1);
    f.seated = true;
    s = score_jobs(&f, 100);
    print_message("seated: %zu of %zu with false verdicts\n", s.with_false, s.jobs);
    assert_true(s.with_false <= 1);
}

/* In steps in which it sits on the better one. */
static void who_is_late_on_such_processors_is_found(void **state)
{
    (void)state;
    forge f = crowded;
    f.uneven = 0.25;
    f.culprits = 1;
    f.slow = 0.08;
    job_score s = score_jobs(&f, 50);
    print_message("%zu of %zu found, %zu accused\n", s.found, s.culprits, s.accused);
    assert_true(2 * s.found >= s.culprits);
    assert_true(s.accused - s.rightly <= 1);
}

/* Where files tell who sat where, that is taken off. */
static void seats_tell_a_late_rank_from_a_slow_processor(void **state)
{
    (void)state;
    forge f = crowded;
    f.told = true;
    f.uneven = 0.27;
    for (int seated = 0; seated < 2; seated++) {
        f.seated = seated;
        f.culprits = 0;
        assert_int_equal(score_jobs(&f, 100).with_false, 0);
        f.culprits = 1;
        f.slow = 0.05;
        job_score s = score_jobs(&f, 50);
        print_message("%s: %zu of %zu found, %zu accused\n", seated ? "seated" : "by turns",
                      s.found, s.culprits, s.accused);
        assert_true(10 * s.found >= 8 * s.culprits);
        assert_int_equal(s.rightly, s.accused);
        f.slow = 0.08;
        s = score_jobs(&f, 50);
        assert_int_equal(s.found, 50);
        assert_int_equal(s.rightly, s.accused);
    }
}

/* Each makes the other less of an outlier. */
static void two_late_ranks_do_not_hide_each_other(void **state)
{
    (void)state;
    forge f = crowded;
    f.told = true;
    f.uneven = 0.27;
    f.culprits = 2;
    f.slow = 0.08;
    job_score s = score_jobs(&f, 50);
    print_message("%zu of %zu found, %zu accused\n", s.found, s.culprits, s.accused);
    assert_true(10 * s.found >= 9 * s.culprits);
    assert_int_equal(s.rightly, s.accused);
    f.slow = 0.05;
    s = score_jobs(&f, 50);
    print_message("%zu of %zu found, %zu accused\n", s.found, s.culprits, s.accused);
    assert_true(10 * s.found >= 7 * s.culprits);
    assert_int_equal(s.rightly, s.accused);
}

/* How many of 50 are found; nobody else is accused, then and where all are healthy. */
static size_t found_of_fifty(forge f)
{
    f.culprits = 0;
    assert_int_equal(score_jobs(&f, 50).with_false, 0);
    f.culprits = 1;
    job_score s = score_jobs(&f, 50);
    print_message("%zu ranks%s, by %g: %zu of %zu found, %zu accused\n", f.ranks,
                  f.seated ? " that sit on such processors" : "", f.slow, s.found, s.culprits,
                  s.accused);
    assert_int_equal(s.rightly, s.accused);
    return s.found;
}

/* Two on each processor. Where every second one takes 20 % longer all the time, who is late on one
 * of the others takes no longer than most do. */
static void who_is_late_beside_one_other_is_found(void **state)
{
    (void)state;
    forge f = {.seed = 900,
               .steps = 100,
               .crowd = FORGE_CROWD_TOLD,
               .stage = FORGE_BACKWARD,
               .told = true,
               .pairs = true,
               .uneven = 0.2,
               .slow = 0.1};
    for (f.ranks = 4; f.ranks <= 16; f.ranks *= 2) {
        f.seated = false;
        assert_true(found_of_fifty(f) >= 45);
        f.seated = true;
        assert_true(found_of_fifty(f) >= 24);
    }
    f.ranks = 4;
    f.slow = 0.05;
    assert_true(found_of_fifty(f) >= 18);
    f.slow = 0.1;
    f.when = FORGE_FOR_GOOD;
    for (f.ranks = 4; f.ranks <= 16; f.ranks *= 2)
        assert_true(found_of_fifty(f) >= 20);
    f.ranks = 4;
    f.seated = false;
    assert_true(found_of_fifty(f) >= 25);
}

/* In a single step two differ by more than one is late; some of the healthy do in all of a run. */
static void noise_that_lasts_hides_few_of_them(void **state)
{
    (void)state;
    forge f = crowded;
    f.ranks = 4;
    f.told = true;
    f.uneven = 0.2;
    f.noise = FORGE_LASTING;
    assert_true(score_jobs(&f, 50).with_false <= 1);
    f.slow = 0.1;
    f.culprits = 1;
    job_score s = score_jobs(&f, 50);
    print_message("%zu of %zu found, %zu accused\n", s.found, s.culprits, s.accused);
    assert_true(s.found >= 40);
    assert_int_equal(s.rightly, s.accused);
}

static size_t count_verdicts(const forge *f, const char *name)
{
    bool culprit[8];
    pki_job j;
    size_t found = 0;
    pki_summary *ranks = calloc(f->ranks, sizeof *ranks);
    forge_make(f, ranks, culprit);
    assert_true(pki_job_of(&j, ranks, f->ranks, &(pki_job_steps){0}) == PKI_JOB_MADE);
    free(ranks);
    pki_job_findings all;
    assert_true(pki_job_find(&all, &j));
    pki_job_verdicts said;
    assert_true(pki_job_find_verdicts(&said, &all));
    for (size_t i = 0; i < said.count; i++)
        found += strcmp(said.all[i].name, name) == 0;
    pki_job_verdicts_finish(&said);
    pki_job_findings_finish(&all);
    pki_job_finish(&j);
    return found;
}

/* What cannot be known is said. */
static void who_may_be_late_is_said(void **state)
{
    (void)state;
    forge f = crowded;
    f.culprits = 1;
    f.slow = 0.08;
    assert_int_equal(count_verdicts(&f, "late-rank"), 1);
    assert_int_equal(count_verdicts(&f, "maybe-late"), 0);
    f.crowd = FORGE_CROWD_OF_RUN;
    assert_int_equal(count_verdicts(&f, "late-rank"), 0);
    assert_int_equal(count_verdicts(&f, "maybe-late"), 1);
    f = crowded;
    f.uneven = 0.25;
    f.seated = true;
    assert_int_equal(count_verdicts(&f, "late-rank"), 0);
    assert_int_equal(count_verdicts(&f, "maybe-late"), 1);
}

/* Where it is known of the run as a whole only, what that may explain is nobody's. */
static void late_beyond_what_the_processor_explains(void **state)
{
    (void)state;
    forge f = crowded;
    f.crowd = FORGE_CROWD_OF_RUN;
    f.culprits = 1;
    f.slow = 6;
    job_score s = score_jobs(&f, 10);
    assert_int_equal(s.found, 10);
    assert_int_equal(s.rightly, s.accused);
}

static pki_job_findings find(const forge *f, pki_job *j)
{
    bool culprit[8];
    pki_summary *ranks = calloc(f->ranks, sizeof *ranks);
    forge_make(f, ranks, culprit);
    assert_true(pki_job_of(j, ranks, f->ranks, &(pki_job_steps){0}) == PKI_JOB_MADE);
    free(ranks);
    pki_job_findings found;
    assert_true(pki_job_find(&found, j));
    return found;
}

static void a_slow_processor_is_said(void **state)
{
    (void)state;
    forge f = crowded;
    pki_job j;
    f.told = true;
    assert_int_equal(count_verdicts(&f, "slow-processor"), 0);
    f.uneven = 0.27;
    f.seated = true;
    assert_int_equal(count_verdicts(&f, "slow-processor"), 1);
    assert_int_equal(count_verdicts(&f, "late-rank") + count_verdicts(&f, "maybe-late"), 0);
    pki_job_findings found = find(&f, &j);
    const pki_job_slow_processor *slow = found.lateness.processors.slow;
    assert_int_equal(slow->number, 1);
    assert_true(slow->by > 0.24 && slow->by < 0.30);
    assert_true(slow->first < 10 && slow->last > 90 && slow->ranks >= 4);
    pki_job_findings_finish(&found);
    pki_job_finish(&j);
}

/* A processor each: the rank, or that. */
static void with_a_processor_each_both_are_said(void **state)
{
    (void)state;
    forge f = {.seed = 720, .ranks = 8, .steps = 50, .pinned = true, .uneven = 0.27};
    pki_job j;
    char text[1000];
    pki_job_findings found = find(&f, &j);
    assert_int_equal(found.lateness.count, 1);
    assert_int_equal(found.lateness.late[0].rank, 0);
    pki_job_describe_late(&j, &found.lateness.late[0], text, sizeof text);
    assert_non_null(strstr(text, "Rank 0, or processor 0 that it alone has (host node0), takes"));
    assert_int_equal(found.lateness.processors.slow_count, 0);
    pki_job_findings_finish(&found);
    pki_job_finish(&j);
}

/* How many are, if one takes 6 % longer, the collective so many times as long as it does, and all
 * run for so much of their time. */
static size_t late_if(double link, double running)
{
    forge f = crowded;
    bool culprit[8];
    pki_job j;
    f.culprits = 1;
    f.slow = 0.06;
    f.link = link;
    pki_summary *ranks = calloc(f.ranks, sizeof *ranks);
    forge_make(&f, ranks, culprit);
    for (size_t r = 0; r < f.ranks; r++) {
        pki_processor *p = &ranks[r].steps.processor;
        *p = (pki_processor){.observed = p->observed,
                             .running = (uint64_t)((double)p->observed * running),
                             .ready = p->observed / 4};
    }
    assert_true(pki_job_of(&j, ranks, f.ranks, &(pki_job_steps){0}) == PKI_JOB_MADE);
    free(ranks);
    pki_job_lateness l;
    assert_true(pki_job_find_late(&l, &j, NULL));
    size_t count = l.count;
    pki_job_lateness_finish(&l);
    pki_job_finish(&j);
    return count;
}

/* All ranks but wait: 6 % of what they compute is next to nothing of a step. */
static void what_costs_next_to_nothing_is_no_verdict(void **state)
{
    (void)state;
    assert_int_equal(late_if(1, 0.5), 1);
    assert_int_equal(late_if(1000, 0.02), 0); /* who waits sleeps */
}

/* MPICH's do: four times as long as they compute. */
static void ranks_that_spin_are_judged_by_what_they_compute(void **state)
{
    (void)state;
    assert_int_equal(late_if(25, 0.75), 1);
}

/* In every other rank `update` is another stage. */
static size_t roles_if(const char *name, uint32_t kind)
{
    forge f = {.seed = 730, .ranks = 8, .steps = 50};
    bool culprit[8];
    pki_job j;
    pki_summary *ranks = calloc(f.ranks, sizeof *ranks);
    forge_make(&f, ranks, culprit);
    for (size_t r = 0; r < f.ranks; r += 2) {
        pki_stage_row *of = &ranks[r].stages.stages[FORGE_UPDATE];
        free(of->name);
        *of = (pki_stage_row){strdup(name), kind};
    }
    assert_true(pki_job_of(&j, ranks, f.ranks, &(pki_job_steps){0}) == PKI_JOB_MADE);
    free(ranks);
    pki_job_lateness l;
    assert_true(pki_job_find_late(&l, &j, NULL));
    size_t roles = l.roles;
    pki_job_lateness_finish(&l);
    pki_job_finish(&j);
    return roles;
}

/* Which stages have room of their own may be chance: that makes no other work of it. */
static void what_had_no_room_makes_no_role(void **state)
{
    (void)state;
    assert_int_equal(roles_if("embed", PK_COMPUTE), 2);
    assert_int_equal(roles_if("(other compute)", PK_COMPUTE), 1);
    assert_int_equal(roles_if("(other data)", PK_DATA), 2);
}

static void the_host_is_said(void **state)
{
    (void)state;
    forge f = crowded;
    bool culprit[8];
    pki_job j;
    f.per_host = 4;
    pki_summary *ranks = calloc(f.ranks, sizeof *ranks);
    forge_make(&f, ranks, culprit);
    assert_true(pki_job_of(&j, ranks, f.ranks, &(pki_job_steps){0}) == PKI_JOB_MADE);
    free(ranks);
    pki_job_findings found;
    assert_true(pki_job_find(&found, &j));
    assert_int_equal(found.crowd_count, 2);
    const pki_job_crowd *c = &found.crowds[1];
    assert_string_equal(j.hosts.texts[c->host], "node1");
    assert_int_equal(c->ranks, 4);
    assert_true(c->least > 0 && c->least < c->most && c->most < 1 && c->most_rank >= 4);
    pki_job_verdicts v;
    assert_true(pki_job_find_verdicts(&v, &found));
    assert_string_equal(v.all[0].name, "no-processor");
    assert_non_null(strstr(v.all[0].text, "Host node0: its 4 ranks"));
    pki_job_verdicts_finish(&v);
    pki_job_findings_finish(&found);
    pki_job_finish(&j);
}

static const struct CMUnitTest job_crowd_tests[] = {
    cmocka_unit_test(a_rank_without_a_processor_is_not_accused),
    cmocka_unit_test(without_being_told_it_would_be),
    cmocka_unit_test(who_is_late_is_found),
    cmocka_unit_test(nobody_is_accused_of_his_processor),
    cmocka_unit_test(who_is_late_on_such_processors_is_found),
    cmocka_unit_test(seats_tell_a_late_rank_from_a_slow_processor),
    cmocka_unit_test(two_late_ranks_do_not_hide_each_other),
    cmocka_unit_test(who_is_late_beside_one_other_is_found),
    cmocka_unit_test(noise_that_lasts_hides_few_of_them),
    cmocka_unit_test(a_slow_processor_is_said),
    cmocka_unit_test(with_a_processor_each_both_are_said),
    cmocka_unit_test(what_costs_next_to_nothing_is_no_verdict),
    cmocka_unit_test(ranks_that_spin_are_judged_by_what_they_compute),
    cmocka_unit_test(who_may_be_late_is_said),
    cmocka_unit_test(late_beyond_what_the_processor_explains),
    cmocka_unit_test(what_had_no_room_makes_no_role),
    cmocka_unit_test(the_host_is_said),
};

/* ---- verdicts for people ---- */

/* Of many that are late a few sentences, and each one in JSON. */

#define RANKS 20
#define STAGES 6

/* Of each rank: the stage in which it is late; STAGES: nobody knows. */
static pki_job_findings found_late(pki_job *j, const size_t *stages, size_t count)
{
    pki_job_findings f = {.of = j};
    j->rank_count = RANKS;
    j->world = RANKS;
    j->ranks = calloc(RANKS, sizeof *j->ranks);
    j->stage_count = STAGES;
    j->stages = calloc(STAGES, sizeof *j->stages);
    for (int i = 0; i < STAGES; i++) {
        char name[] = {(char)('A' + i), '\0'};
        j->stages[i].name = strdup(name);
    }
    pki_texts_add(&j->hosts, "left");
    pki_texts_add(&j->hosts, "right");
    f.lateness.count = count;
    f.lateness.cost = 5e6;
    f.lateness.late = calloc(count, sizeof *f.lateness.late);
    for (size_t i = 0; i < RANKS; i++) {
        j->ranks[i].rank = (int32_t)i;
        j->ranks[i].path = strdup("");
    }
    for (size_t i = 0; i < count; i++)
        f.lateness.late[i] = (pki_job_late){.rank = i,
                                            .host_at = i % 2,
                                            .ranks = 1,
                                            .processor = PKI_SEAT_UNKNOWN,
                                            .by = 0.5 - 0.01 * (double)i,
                                            .stage = stages[i],
                                            .stage_share = stages[i] < STAGES ? 0.9 : 0,
                                            .excess = 1e6};
    return f;
}

static void finish(pki_job *j, pki_job_findings *f)
{
    pki_job_findings_finish(f);
    pki_job_finish(j);
}

static void assert_says(const pki_job_verdict *v, const char *name, const char *text)
{
    assert_string_equal(v->name, name);
    if (!strstr(v->text, text))
        fail_msg("\"%s\" does not say \"%s\"", v->text, text);
}

static void few_are_named_each(void **state)
{
    (void)state;
    pki_job j = {0};
    size_t stages[PKI_JOB_LATE_SAID] = {0};
    pki_job_findings f = found_late(&j, stages, PKI_JOB_LATE_SAID);
    pki_job_verdicts said;
    assert_true(pki_job_group_verdicts(&said, &f));
    assert_int_equal(said.count, PKI_JOB_LATE_SAID);
    for (size_t i = 0; i < said.count; i++)
        assert_string_equal(said.all[i].name, "late-rank");
    pki_job_verdicts_finish(&said);
    finish(&j, &f);
}

static void many_are_said_by_stage(void **state)
{
    (void)state;
    pki_job j = {0};
    const size_t stages[] = {3, 0, 0, 1, 0, 1, 0, 2};
    pki_job_findings f = found_late(&j, stages, 8);
    pki_job_verdicts said;
    assert_true(pki_job_group_verdicts(&said, &f));
    assert_int_equal(said.count, 5);
    assert_says(&said.all[0], "late-ranks",
                "4 ranks of 2 hosts take 44.0 % to 49.0 % longer than the others for the same work,"
                " most of it in A. Most of all host right, rank 1: 1.00 ms per step. Ranks 1-2, 4,"
                " 6.");
    assert_says(&said.all[1], "late-ranks", "2 ranks of host right take 45.0 % to 47.0 %");
    assert_says(&said.all[2], "late-rank", "Rank 0 (host left)");
    assert_says(&said.all[3], "late-rank", "Rank 7 (host right)");
    assert_says(&said.all[4], "late-ranks",
                "All 8 that are late together make the job's steps 5.00 ms longer.");
    pki_job_verdicts_finish(&said);
    assert_true(pki_job_find_verdicts(&said, &f));
    assert_int_equal(said.count, 8);
    for (size_t i = 0; i < said.count; i++)
        assert_string_equal(said.all[i].name, "late-rank");
    pki_job_verdicts_finish(&said);
    finish(&j, &f);
}

/* However many stages there are. */
static void small_stages_are_said_as_one(void **state)
{
    (void)state;
    pki_job j = {0};
    const size_t stages[] = {0, 0, 1, 1, 2, 2, 3, 4, STAGES};
    pki_job_findings f = found_late(&j, stages, 9);
    pki_job_verdicts said;
    assert_true(pki_job_group_verdicts(&said, &f));
    assert_int_equal(said.count, 5);
    assert_says(&said.all[0], "late-ranks", "most of it in A");
    assert_says(&said.all[3], "late-ranks", "3 ranks of 2 hosts take 42.0 % to 44.0 %");
    assert_says(&said.all[3], "late-ranks", "most of it in 3 other stages");
    pki_job_verdicts_finish(&said);
    finish(&j, &f);
}

static void hosts_are_said_together(void **state)
{
    (void)state;
    pki_job j = {0};
    const size_t stages[] = {0, 0, 0, 0, 0, 0, 0, 0};
    pki_job_findings f = found_late(&j, stages, 8);
    f.lateness.late[2].host = f.lateness.late[3].host = true;
    pki_job_verdicts said;
    assert_true(pki_job_group_verdicts(&said, &f));
    assert_int_equal(said.count, 3);
    assert_says(&said.all[0], "late-hosts",
                "2 hosts, all ranks of each, take 47.0 % to 48.0 % longer");
    assert_says(&said.all[0], "late-hosts", "Most of all host left: ");
    assert_says(&said.all[1], "late-ranks", "6 ranks of 2 hosts");
    pki_job_verdicts_finish(&said);
    finish(&j, &f);
}

static const struct CMUnitTest job_late_groups_tests[] = {
    cmocka_unit_test(few_are_named_each),
    cmocka_unit_test(many_are_said_by_stage),
    cmocka_unit_test(small_stages_are_said_as_one),
    cmocka_unit_test(hosts_are_said_together),
};

int main(void)
{
    int failed = cmocka_run_group_tests(job_crowd_tests, NULL, NULL);
    failed += cmocka_run_group_tests(job_late_groups_tests, NULL, NULL);
    return failed;
}
