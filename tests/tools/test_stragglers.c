/* Who is late while a job runs: portions of steps in a window that moves on, with the verdicts of
 * `pk job`. The jobs are forged; seeds are fixed: the same on every machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/mpi/stragglers_window.h"
#include "job/verdicts/findings.h"
#include "job_forge.h"

#define STEPS 60

/* A job, a step a portion. */
typedef struct run {
    size_t ranks, at;
    pki_summary *all;
    bool *culprit;
    pk_job_steps_ *given;
    pki_straggler_window *window;
    pk_job_word_ word;
} run;

static void forge_again(run *r, const forge *f)
{
    for (size_t i = 0; r->all && i < r->ranks; i++)
        pki_summary_finish(&r->all[i]);
    free(r->all);
    free(r->culprit);
    r->all = calloc(f->ranks, sizeof *r->all);
    r->culprit = calloc(f->ranks, sizeof *r->culprit);
    forge_make(f, r->all, r->culprit);
}

static run begin(const forge *f)
{
    run r = {.ranks = f->ranks};
    forge_again(&r, f);
    char *hosts = calloc(f->ranks, PKI_WINDOW_HOST);
    for (size_t i = 0; i < f->ranks; i++)
        snprintf(hosts + i * PKI_WINDOW_HOST, PKI_WINDOW_HOST, "%s", r.all[i].run.host);
    r.window = pki_mpi_window_create((int32_t)f->ranks, hosts);
    r.given = calloc(f->ranks, sizeof *r.given);
    free(hosts);
    assert_non_null(r.window);
    return r;
}

static void finish(run *r)
{
    for (size_t i = 0; i < r->ranks; i++)
        pki_summary_finish(&r->all[i]);
    free(r->all);
    free(r->culprit);
    free(r->given);
    pki_mpi_window_destroy(r->window);
}

static void give(const run *r, size_t rank, size_t step)
{
    const pki_stage_summary *s = &r->all[rank].stages;
    const uint64_t *row = s->loops[0].numbers + step * s->width;
    pk_job_steps_ *to = &r->given[rank];
    *to = (pk_job_steps_){.first = r->at,
                          .steps = row[PKI_BLOCK_STEPS],
                          .time = row[PKI_BLOCK_TIME],
                          .items = row[PKI_BLOCK_ITEMS],
                          .observed = r->all[rank].steps.processor.observed,
                          .running = r->all[rank].steps.processor.running,
                          .ready = r->all[rank].steps.processor.ready};
    if (s->loops[0].no_processor) {
        to->no_processor = s->loops[0].no_processor[step];
        to->told = 1;
    }
    if (s->loops[0].seats) {
        to->processor = (uint32_t)s->loops[0].seats[2 * step];
        to->on_it = (uint32_t)s->loops[0].seats[2 * step + 1];
    }
    for (size_t i = 0; i < s->stage_count; i++) {
        snprintf(to->stages[i].name, sizeof to->stages[i].name, "%s", s->stages[i].name);
        to->stages[i].kind = (uint8_t)s->stages[i].kind;
        to->stages[i].self = row[PKI_BLOCK_HEAD + i];
    }
}

static void judge(run *r)
{
    pki_mpi_window_add(r->window, r->given);
    assert_true(pki_mpi_window_judge(r->window, &r->word));
    r->at++;
}

/* Of what there is already. */
static void judge_again(run *r)
{
    assert_true(pki_mpi_window_judge(r->window, &r->word));
}

static void next(run *r)
{
    for (size_t i = 0; i < r->ranks; i++)
        give(r, i, r->at % STEPS);
    judge(r);
}

static size_t culprit_of(const run *r)
{
    for (size_t i = 0; i < r->ranks; i++)
        if (r->culprit[i])
            return i;
    return SIZE_MAX;
}

static void nobody_is_named_in_a_healthy_job(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        run r = begin(&(forge){.seed = seed, .ranks = 16, .steps = STEPS, .varying = seed % 2});
        while (r.at < 2 * STEPS) {
            next(&r);
            assert_int_equal(r.word.count, 0);
        }
        assert_int_equal(r.word.last, r.at - 1);
        finish(&r);
    }
}

static void who_is_late_is_named_and_nobody_else(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        forge f = {.seed = 100 + seed,
                   .ranks = 16,
                   .steps = STEPS,
                   .slow = 0.08,
                   .culprits = 1,
                   .stage = FORGE_LOAD};
        char where[60];
        run r = begin(&f);
        while (r.at < 40) {
            next(&r);
            assert_true(r.word.count <= 1);
        }
        assert_int_equal(r.word.count, 1);
        assert_int_equal(r.word.late[0].rank, culprit_of(&r));
        assert_true(r.word.late[0].by > 0.06 && r.word.late[0].by < 0.10);
        snprintf(where, sizeof where, "in %s: ", forge_stages[FORGE_LOAD]);
        assert_non_null(strstr(r.word.late[0].text, where));
        assert_int_equal(r.word.first, r.at - PKI_WINDOW_BLOCKS);
        finish(&r);
    }
}

/* What was before is forgotten. */
static void it_begins_and_ends(void **state)
{
    (void)state;
    forge healthy = {.seed = 7, .ranks = 8, .steps = STEPS}, late = healthy;
    late.slow = 0.10;
    late.culprits = 1;
    late.stage = FORGE_FORWARD;
    run r = begin(&healthy);
    while (r.at < 50)
        next(&r);
    assert_int_equal(r.word.count, 0);
    forge_again(&r, &late);
    size_t since = r.at;
    while (r.word.count == 0 && r.at < since + PKI_WINDOW_BLOCKS + PKI_WINDOW_NAMED)
        next(&r);
    assert_int_equal(r.word.count, 1);
    forge_again(&r, &healthy);
    since = r.at;
    while (r.word.count && r.at < since + PKI_WINDOW_BLOCKS + PKI_WINDOW_CLEARED)
        next(&r);
    assert_int_equal(r.word.count, 0);
    finish(&r);
}

static void a_host_is_one_finding(void **state)
{
    (void)state;
    forge f = {.seed = 3,
               .ranks = 32,
               .per_host = 8,
               .steps = STEPS,
               .slow = 0.10,
               .host = true,
               .stage = FORGE_BACKWARD};
    run r = begin(&f);
    while (r.at < 40)
        next(&r);
    assert_int_equal(r.word.count, 1);
    assert_int_equal(r.word.late[0].rank, -1);
    assert_int_equal(r.word.late[0].ranks, 8);
    assert_string_equal(r.word.late[0].host, r.all[31].run.host);
    finish(&r);
}

/* More are late than a word has room for: how many is said. */
static void more_than_have_room(void **state)
{
    (void)state;
    forge f = {
        .seed = 5, .ranks = 48, .steps = STEPS, .slow = 0.2, .culprits = 10, .stage = FORGE_LOAD};
    run r = begin(&f);
    while (r.at < 40)
        next(&r);
    assert_int_equal(r.word.count, 10);
    pk_job_word_ before = r.word;
    while (r.at < 55) {
        next(&r);
        for (size_t i = 0; i < PK_JOB_LATE_; i++) /* with each verdict another one is latest */
            assert_int_equal(r.word.late[i].rank, before.late[i].rank);
    }
    finish(&r);
}

static void ranks_without_steps_are_not_compared(void **state)
{
    (void)state;
    forge f = {
        .seed = 9, .ranks = 8, .steps = STEPS, .slow = 0.2, .culprits = 1, .stage = FORGE_LOAD};
    run r = begin(&f);
    size_t culprit = culprit_of(&r);
    while (r.at < 40) {
        for (size_t i = 0; i < r.ranks; i++)
            give(&r, i, r.at);
        r.given[culprit] = (pk_job_steps_){0};
        judge(&r);
    }
    assert_int_equal(r.word.count, 0);
    for (size_t i = 0; i < r.ranks; i++)
        r.given[i] = (pk_job_steps_){.ended = 1};
    judge(&r);
    finish(&r);
}

static void nothing_is_said_before_there_are_steps(void **state)
{
    (void)state;
    run r = begin(&(forge){.seed = 9, .ranks = 8, .steps = STEPS});
    for (size_t i = 0; i < r.ranks; i++)
        r.given[i] = (pk_job_steps_){0};
    judge(&r);
    assert_int_equal(r.word.count, 0);
    assert_int_equal(r.word.last, 0);
    finish(&r);
}

/* Steps that begin anew are of another session. */
static void a_session_begins_anew(void **state)
{
    (void)state;
    forge f = {
        .seed = 11, .ranks = 8, .steps = STEPS, .slow = 0.2, .culprits = 1, .stage = FORGE_LOAD};
    run r = begin(&f);
    while (r.at < 40)
        next(&r);
    assert_int_equal(r.word.count, 1);
    r.at = 0;
    next(&r);
    assert_int_equal(r.word.count, 1); /* of the new one nothing is known yet */
    assert_int_equal(r.word.last, 39);
    while (r.at < 20)
        next(&r);
    assert_int_equal(r.word.count, 1);
    assert_int_equal(r.word.first, 0);
    assert_int_equal(r.word.last, 19);
    finish(&r);
}

/* A place gets another stage: nothing is told under a wrong name. */
static void a_place_of_another_stage(void **state)
{
    (void)state;
    run r = begin(&(forge){.seed = 12, .ranks = 8, .steps = STEPS});
    while (r.at < 20)
        next(&r);
    for (size_t i = 0; i < r.ranks; i++) {
        give(&r, i, 20);
        snprintf(r.given[i].stages[0].name, sizeof r.given[i].stages[0].name, "another");
    }
    judge(&r);
    assert_int_equal(r.word.last, 19);
    for (size_t more = 0; more < 20; more++) {
        for (size_t i = 0; i < r.ranks; i++) {
            give(&r, i, r.at);
            snprintf(r.given[i].stages[0].name, sizeof r.given[i].stages[0].name, "another");
        }
        judge(&r);
    }
    assert_int_equal(r.word.first, 20);
    finish(&r);
}

static bool is_found(const job_lateness *l, int32_t rank)
{
    for (size_t i = 0; i < l->count; i++)
        if (!l->late[i].host && (int32_t)l->late[i].rank == rank)
            return true;
    return false;
}

/* Ranks that share a processor: nobody is named whom `pk job` would not name of the same steps. */
static void on_a_crowded_host_as_pk_job(void **state)
{
    size_t found = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        forge f = {
            .seed = 300 + seed,
            .ranks = 8,
            .steps = PKI_WINDOW_BLOCKS,
            .slow = seed <= 6 ? 0.05 : 0.25,
            .culprits = 1,
            .stage = FORGE_LOAD,
            .link = 30, /* so little of a step is work that some are late, but not worth it */
            .crowd = FORGE_CROWD_TOLD,
            .uneven = seed <= 6 ? 0 : 0.27, /* which hides who is late, if seats are not told */
            .seated = true,
            .told = true};
        complaint why = {""};
        job j;
        run r = begin(&f);
        for (size_t i = 0; i < r.ranks; i++) {
            pki_processor *p = &r.all[i].steps.processor;
            p->running = p->observed - p->ready;
        }
        while (r.at < f.steps)
            next(&r);
        judge_again(&r);
        assert_true(job_of(&j, r.all, r.ranks, &(job_steps){.given = false}, &why));
        job_lateness l = job_find_late(&j, NULL);
        assert_int_equal(r.word.count, l.count);
        for (size_t i = 0; i < r.word.count; i++)
            assert_true(is_found(&l, r.word.late[i].rank));
        found += l.count;
        job_lateness_finish(&l);
        job_finish(&j);
        free(r.all);
        r.all = NULL;
        r.ranks = 0;
        finish(&r);
    }
    assert_true(found > 0);
}

/* Which of two in a row it is does not matter: late in one verdict alone is not late. */
static void one_verdict_is_none(void **state)
{
    (void)state;
    forge f = {.seed = 13,
               .ranks = 2,
               .steps = STEPS,
               .slow = 0.5,
               .culprits = 1,
               .stage = FORGE_LOAD,
               .quiet = true};
    run r = begin(&f);
    size_t named = 0, verdicts = 0;
    while (!named && r.at < 20) {
        next(&r);
        verdicts += r.at >= 7; /* so few as there can be for two ranks */
        named = r.word.count;
    }
    assert_int_equal(named, 1);
    assert_int_equal(verdicts, PKI_WINDOW_NAMED);
    finish(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_named_in_a_healthy_job),
        cmocka_unit_test(who_is_late_is_named_and_nobody_else),
        cmocka_unit_test(it_begins_and_ends),
        cmocka_unit_test(a_host_is_one_finding),
        cmocka_unit_test(more_than_have_room),
        cmocka_unit_test(ranks_without_steps_are_not_compared),
        cmocka_unit_test(nothing_is_said_before_there_are_steps),
        cmocka_unit_test(a_session_begins_anew),
        cmocka_unit_test(a_place_of_another_stage),
        cmocka_unit_test(on_a_crowded_host_as_pk_job),
        cmocka_unit_test(one_verdict_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
