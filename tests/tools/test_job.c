/* pk job against the truth: forged jobs, of which it is known who is slow, where, and by how much.
 * `./dev bench job` asks the same of many more. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "job/against/against.h"
#include "job/verdicts/findings.h"
#include "measure/figure.h"
#include "job_score.h"

/* Seeds are fixed: the same jobs on every machine. */
static const forge usual = {
    .seed = 1, .ranks = 64, .steps = 50, .slow = 0.05, .stage = FORGE_LOAD, .per_host = 8};

static double share(size_t part, size_t of)
{
    return of ? (double)part / (double)of : 1;
}

static void assert_named(const forge *f, size_t jobs)
{
    job_score s = score_jobs(f, jobs);
    print_message("%zu jobs: %zu of %zu found, %zu of %zu accused rightly, %zu in the stage\n",
                  s.jobs, s.found, s.culprits, s.rightly, s.accused, s.stages);
    assert_true(share(s.found, s.culprits) >= 0.95);
    assert_true(share(s.rightly, s.accused) >= 0.95);
    assert_true(s.stages == s.found);
}

static void names_one_and_two_of_64(void **state)
{
    (void)state;
    for (int varying = 0; varying < 2; varying++)
        for (size_t culprits = 1; culprits < 3; culprits++) {
            forge f = usual;
            f.varying = varying;
            f.culprits = culprits;
            assert_named(&f, 20);
        }
}

static void names_one_of_1024(void **state)
{
    (void)state;
    forge f = usual;
    f.ranks = 1024;
    f.culprits = 1;
    f.varying = true;
    f.stage = FORGE_BACKWARD;
    assert_named(&f, 3);
}

static void accuses_nobody_of_healthy_jobs(void **state)
{
    (void)state;
    for (int varying = 0; varying < 2; varying++) {
        forge f = usual;
        f.seed = 5000;
        f.varying = varying;
        assert_int_equal(score_jobs(&f, 50).with_false, 0);
    }
}

static void a_slow_link_is_communication(void **state)
{
    (void)state;
    forge f = usual;
    f.link = 10;
    job_score s = score_jobs(&f, 10);
    assert_int_equal(s.communication, 10);
    assert_int_equal(s.accused, 0);
}

/* ---- one job, looked at closely ---- */

typedef struct scene {
    job j;
    job_findings found;
    bool culprit[4096];
} scene;

static scene *scene_of(const forge *f)
{
    scene *s = calloc(1, sizeof *s);
    complaint why = {""};
    pki_summary *ranks = calloc(f->ranks, sizeof *ranks);
    forge_make(f, ranks, s->culprit);
    assert_true(job_of(&s->j, ranks, f->ranks, &(job_steps){0}, &why));
    s->found = job_find(&s->j);
    free(ranks);
    return s;
}

static void finish(scene *s)
{
    job_findings_finish(&s->found);
    job_finish(&s->j);
    free(s);
}

static void a_slow_host_is_one_finding(void **state)
{
    (void)state;
    forge f = usual;
    f.host = true;
    f.slow = 0.08;
    scene *s = scene_of(&f);
    const job_lateness *l = &s->found.lateness;
    assert_int_equal(l->count, 1);
    assert_true(l->late[0].host);
    assert_int_equal(l->late[0].ranks, 8);
    assert_string_equal(s->j.hosts.texts[l->late[0].host_at], "node7");
    assert_true(l->late[0].low < 0.08 && l->late[0].high > 0.08);
    finish(s);
}

static void of_two_hosts_the_slow_one_is_named(void **state)
{
    (void)state;
    forge f = usual;
    f.ranks = 16;
    f.host = true;
    f.slow = 0.10;
    scene *s = scene_of(&f);
    assert_int_equal(s->found.lateness.count, 1);
    assert_string_equal(s->j.hosts.texts[s->found.lateness.late[0].host_at], "node1");
    finish(s);
}

static void the_interval_and_the_cost_are_right(void **state)
{
    (void)state;
    forge f = usual;
    f.quiet = true;
    f.culprits = 1;
    f.slow = 0.10;
    scene *s = scene_of(&f);
    const job_lateness *l = &s->found.lateness;
    assert_int_equal(l->count, 1);
    assert_true(s->culprit[l->late[0].rank]);
    assert_true(fabs(l->late[0].by - 0.10) < 1e-4);
    assert_true(l->late[0].low <= l->late[0].by && l->late[0].by <= l->late[0].high);
    assert_true(fabs(l->late[0].excess - 1e6) < 100); /* 10 % of 10 ms */
    assert_true(fabs(l->late[0].cost - 1e6) < 100);
    assert_true(l->late[0].stage_share > 0.999);
    finish(s);
}

static void two_ranks_are_beside_each_other(void **state)
{
    (void)state;
    forge f = usual;
    f.ranks = 2;
    f.per_host = 0;
    f.culprits = 1;
    f.slow = 0.20;
    scene *s = scene_of(&f);
    assert_int_equal(s->found.lateness.count, 1);
    assert_true(s->culprit[s->found.lateness.late[0].rank]);
    assert_true(fabs(s->found.lateness.late[0].by - 0.20) < 0.05);
    finish(s);
}

static void too_few_steps_accuse_nobody(void **state)
{
    (void)state;
    forge f = usual;
    f.steps = 5;
    f.culprits = 1;
    f.slow = 0.5;
    scene *s = scene_of(&f);
    assert_int_equal(s->found.lateness.count, 0);
    assert_non_null(s->found.lateness.why_not);
    finish(s);
}

/* 5 % of what a rank does between operations that take twenty times as long. */
static void who_costs_next_to_nothing_is_not_accused(void **state)
{
    (void)state;
    forge f = usual;
    f.culprits = 1;
    f.link = 100;
    assert_int_equal(score_jobs(&f, 5).accused, 5);
    f.link = 400;
    assert_int_equal(score_jobs(&f, 5).accused, 0);
}

static const job_verdict *verdict_of(const job_verdict *all, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

/* Is there a rank beyond the limit that is not called late? The latest of them in *by. */
static bool is_beyond(const scene *s, double *by)
{
    const job_lateness *l = &s->found.lateness;
    bool beyond = false;
    *by = 0;
    for (size_t r = 0; r < s->j.rank_count; r++) {
        bool accused = false;
        for (size_t i = 0; i < l->count; i++)
            accused |= l->late[i].rank == r;
        if (accused || !(l->by[r] > JOB_LATE_LEAST))
            continue;
        beyond = true;
        *by = fmax(*by, l->by[r]);
    }
    return beyond;
}

/* "No rank is late" does not stand above a table in which one is beyond the limit. */
static void who_is_beyond_the_limit_and_not_late_is_told(void **state)
{
    (void)state;
    size_t told = 0;
    forge f = {.ranks = 8, .culprits = 1, .slow = 0.035, .stage = FORGE_LOAD};
    for (f.seed = 1; f.seed <= 60; f.seed++) {
        double by;
        size_t count;
        f.steps = 10 + f.seed % 8;
        scene *s = scene_of(&f);
        job_verdict *all = job_verdicts(&s->found, &count);
        bool beyond = is_beyond(s, &by);
        const job_verdict *unsure = verdict_of(all, count, "not-sure");
        assert_true(beyond == (unsure != NULL));
        assert_false(beyond && verdict_of(all, count, "no-finding"));
        if (unsure) {
            assert_int_equal(unsure->severity, PKI_NOTE);
            assert_non_null(strstr(unsure->text, pki_figure_percent(by).text));
            told++;
        }
        for (size_t i = 0; i < count; i++)
            free(all[i].text);
        free(all);
        finish(s);
    }
    print_message("%zu of 60 jobs have one\n", told);
    assert_in_range(told, 5, 55);
}

static void increments_add_up_to_the_step(void **state)
{
    (void)state;
    for (size_t ranks = 1; ranks <= 256; ranks *= 4) {
        forge f = usual;
        f.ranks = ranks;
        f.per_host = 0;
        f.varying = true;
        scene *s = scene_of(&f);
        double sum = 0;
        for (size_t k = 0; k < s->j.stage_count; k++)
            sum += s->found.frontier.stages[k].time;
        assert_true(fabs(sum - s->found.frontier.exposed) <= 1e-9 * s->found.frontier.exposed);
        finish(s);
    }
}

static void the_frontier_names_rank_and_stage(void **state)
{
    (void)state;
    forge f = usual;
    f.quiet = true;
    f.culprits = 1;
    f.slow = 0.10;
    f.stage = FORGE_FORWARD;
    scene *s = scene_of(&f);
    const job_increment *forward = &s->found.frontier.stages[FORGE_FORWARD];
    double steps = s->found.frontier.steps;
    assert_true(s->culprit[forward->rank]);
    assert_true(fabs(forward->time / steps - 4e6) < 10);
    assert_true(fabs(forward->of_rank - forward->time) < 1);
    /* Nobody waits for the all-reduce itself longer than it takes. */
    assert_true(fabs(s->found.frontier.stages[FORGE_REDUCE].time / steps - 0.5e6) < 10);
    finish(s);
}

/* By hand: 4 ranks, own times 10, 10, 10 and 12 ms of which 9 (11) before an all-reduce of 0.5 ms.
 */
static void efficiencies_are_those_by_hand(void **state)
{
    (void)state;
    forge f = usual;
    f.ranks = 4;
    f.per_host = 0;
    f.quiet = true;
    f.culprits = 1;
    f.slow = 0.20;
    scene *s = scene_of(&f);
    const job_pop *p = &s->found.pop;
    assert_true(fabs(p->load_balance - 10.5 / 12) < 0.01 * 10.5 / 12);
    assert_true(fabs(p->communication - 12 / 12.5) < 0.01 * 12 / 12.5);
    assert_true(fabs(p->parallel - 10.5 / 12.5) < 0.01 * 10.5 / 12.5);
    assert_null(p->why_no_transfer);
    assert_true(fabs(p->transfer_efficiency - 12 / 12.5) < 0.01);
    assert_true(fabs(p->serialisation - 1) < 0.01);
    job_spread load = job_spread_of_stage(&s->j, job_usual(&s->j), FORGE_LOAD);
    assert_true(fabs(load.mean - 2.0e6) < 10 && fabs(load.imbalance - (3.5 / 2.0 - 1)) < 1e-4);
    assert_true(s->culprit[load.max_rank]);
    finish(s);
}

/* ---- beside another run ---- */

static size_t slower_of(const forge *before, const forge *now, size_t pairs)
{
    size_t slower = 0;
    for (size_t i = 0; i < pairs; i++) {
        forge f = *before, g = *now;
        f.seed += 2 * i;
        g.seed += 2 * i + 1;
        scene *a = scene_of(&f), *b = scene_of(&g);
        against beside = job_against(&b->j, &a->j, AGAINST_MARGIN / 100.0);
        slower += beside.slower;
        against_finish(&beside);
        finish(a);
        finish(b);
    }
    return slower;
}

static void healthy_runs_are_not_slower(void **state)
{
    (void)state;
    forge f = usual;
    f.ranks = 16;
    assert_int_equal(slower_of(&f, &f, 30), 0);
}

/* All ranks of the only host: nobody is late, and the run is slower. */
static void a_slower_run_is_slower(void **state)
{
    (void)state;
    forge f = usual, g;
    f.ranks = f.per_host = 16;
    g = f;
    g.host = true;
    g.slow = 0.08;
    assert_int_equal(slower_of(&f, &g, 20), 20);
}

/* What a quiet machine's runs of 300 steps have to allow: two of the same, and 3 % more. */
static void three_percent_are_found(void **state)
{
    (void)state;
    forge f = {.seed = 1, .ranks = 8, .steps = 300, .stage = FORGE_BACKWARD, .per_host = 8};
    forge g = f;
    g.host = true;
    g.slow = 0.03;
    size_t wrong = slower_of(&f, &f, 40), found = slower_of(&f, &g, 40);
    print_message("of 40 pairs: %zu of the same are slower, %zu of those with +3 %%\n", wrong,
                  found);
    assert_in_range(wrong, 0, 2);
    assert_in_range(found, 36, 40);
}

/* Beside a busy process nothing is slower: whatever the steps say, it may be the processor. */
static void without_processors_nothing_is_slower(void **state)
{
    (void)state;
    forge f = {.seed = 1, .ranks = 8, .steps = 100, .crowd = FORGE_CROWD_TOLD}, g = f;
    g.slow = 0.5;
    g.culprits = 8;
    for (size_t i = 0; i < 10; i++) {
        f.seed++, g.seed += 2;
        scene *a = scene_of(&f), *b = scene_of(&g);
        against beside = job_against(&b->j, &a->j, AGAINST_MARGIN / 100.0);
        assert_true(beside.is_short && !beside.slower && beside.without[0] >= 0.05);
        assert_true(beside.count > 4 && beside.rows[0].decision.change == PKI_UNSURE);
        assert_true(beside.rows[0].decision.interval.low < beside.rows[0].decision.ratio);
        against_finish(&beside);
        finish(a);
        finish(b);
    }
}

/* ---- ranks that do not fit together ---- */

static void join_blocks(pki_summary *s)
{
    pki_loop_row *l = s->stages.loops;
    size_t width = s->stages.width, blocks = l->number_count / width / 2;
    for (size_t i = 0; i < blocks; i++) {
        uint64_t *to = l->numbers + i * width, *from = l->numbers + 2 * i * width;
        memmove(to, from, width * sizeof *to);
        for (size_t k = PKI_BLOCK_STEPS; k < width; k++)
            to[k] += from[width + k];
    }
    l->number_count = blocks * width;
}

static void blocks_of_other_lengths_are_joined(void **state)
{
    (void)state;
    forge f = usual;
    f.ranks = 8;
    pki_summary ranks[8];
    bool culprit[8];
    complaint why = {""};
    job j;
    forge_make(&f, ranks, culprit);
    join_blocks(&ranks[3]);
    join_blocks(&ranks[5]);
    assert_true(job_of(&j, ranks, 8, &(job_steps){0}, &why));
    const job_loop *loop = job_usual(&j);
    assert_int_equal(loop->block_count, 25);
    for (size_t i = 0; i < 25 * 8; i++)
        assert_true(loop->steps[i] == 2);
    job_finish(&j);
}

static void a_rank_that_ends_early_costs_its_own_steps(void **state)
{
    (void)state;
    forge f = usual;
    f.ranks = 8;
    pki_summary ranks[8];
    bool culprit[8];
    complaint why = {""};
    job j;
    forge_make(&f, ranks, culprit);
    ranks[2].stages.loops->number_count = 20 * ranks[2].stages.width;
    ranks[2].run.complete = false;
    pki_summary_finish(&ranks[6]);
    ranks[6] = ranks[7];
    assert_true(job_of(&j, ranks, 7, &(job_steps){0}, &why));
    job_findings found = job_find(&j);
    assert_int_equal(job_usual(&j)->block_count, 50);
    assert_true(job_usual(&j)->steps[job_cell(&j, 19, 2)] == 1);
    assert_true(job_usual(&j)->steps[job_cell(&j, 20, 2)] == 0);
    assert_int_equal(found.cut_count, 1);
    assert_int_equal(found.cut[0], 2);
    assert_int_equal(found.missing_count, 1);
    assert_int_equal(found.gap_count, 1);
    assert_true(found.gaps[0].first == 6 && found.gaps[0].last == 6);
    assert_int_equal(found.lateness.count, 0);
    job_findings_finish(&found);
    job_finish(&j);
}

static void damaged_stages_are_no_stages(void **state)
{
    (void)state;
    forge f = usual;
    f.ranks = 4;
    pki_summary ranks[4];
    bool culprit[4];
    complaint why = {""};
    job j;
    forge_make(&f, ranks, culprit);
    ranks[1].stages.width = 3;
    ranks[2].stages.loops->number_count = 7;
    ranks[3].stages.width = UINT64_MAX;
    assert_true(job_of(&j, ranks, 4, &(job_steps){0}, &why));
    job_findings found = job_find(&j);
    assert_int_equal(found.lateness.count, 0);
    job_findings_finish(&found);
    job_finish(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_one_and_two_of_64),
        cmocka_unit_test(names_one_of_1024),
        cmocka_unit_test(accuses_nobody_of_healthy_jobs),
        cmocka_unit_test(a_slow_link_is_communication),
        cmocka_unit_test(a_slow_host_is_one_finding),
        cmocka_unit_test(of_two_hosts_the_slow_one_is_named),
        cmocka_unit_test(the_interval_and_the_cost_are_right),
        cmocka_unit_test(two_ranks_are_beside_each_other),
        cmocka_unit_test(too_few_steps_accuse_nobody),
        cmocka_unit_test(who_costs_next_to_nothing_is_not_accused),
        cmocka_unit_test(who_is_beyond_the_limit_and_not_late_is_told),
        cmocka_unit_test(increments_add_up_to_the_step),
        cmocka_unit_test(the_frontier_names_rank_and_stage),
        cmocka_unit_test(efficiencies_are_those_by_hand),
        cmocka_unit_test(healthy_runs_are_not_slower),
        cmocka_unit_test(a_slower_run_is_slower),
        cmocka_unit_test(three_percent_are_found),
        cmocka_unit_test(without_processors_nothing_is_slower),
        cmocka_unit_test(blocks_of_other_lengths_are_joined),
        cmocka_unit_test(a_rank_that_ends_early_costs_its_own_steps),
        cmocka_unit_test(damaged_stages_are_no_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
