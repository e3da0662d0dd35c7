/* A rank that is late at the end of a slow link: the link's doing, if it is little beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "job/verdicts/findings.h"
#include "job_forge.h"

#define RANKS 8
#define STEPS 100

static job made;
static size_t culprit;
static double excess; /* ns of the run */

/* One of them takes 8 % longer. */
static int forge_job(void **state)
{
    (void)state;
    const forge f = {.seed = 7, .ranks = RANKS, .steps = STEPS, .slow = 0.08, .culprits = 1};
    static pki_summary ranks[RANKS];
    static bool culprits[RANKS];
    complaint why = {""};
    forge_make(&f, ranks, culprits);
    while (!culprits[culprit])
        culprit++;
    return job_of(&made, ranks, RANKS, &(job_steps){0}, &why) ? 0 : -1;
}

static int forget_job(void **state)
{
    (void)state;
    job_finish(&made);
    return 0;
}

static void without_links_it_is_late(void **state)
{
    (void)state;
    job_lateness l = job_find_late(&made, NULL);
    assert_int_equal(l.count, 1);
    assert_int_equal(l.late[0].rank, culprit);
    excess = l.late[0].excess * STEPS;
    assert_true(excess > 0);
    job_lateness_finish(&l);
}

/* One message a step from a rank to another takes so much longer, in all. */
static job_lateness late_beside(size_t from, size_t to, double cost, bool slow)
{
    job_link links[] = {{.from = from,
                         .to = to,
                         .transfer = 1e3 + cost / STEPS,
                         .usual = 1e3,
                         .messages = STEPS,
                         .slow = slow},
                        {.from = to, .to = from, .transfer = 1e3, .usual = 1e3, .messages = STEPS}};
    job_waits waits = {.links = links, .link_count = 2};
    return job_find_late(&made, &waits);
}

static void assert_late(job_lateness l, bool late)
{
    assert_int_equal(l.count, late);
    assert_int_equal(l.at_link.ranks, !late);
    if (!late) {
        assert_int_equal(l.at_link.rank, culprit);
        assert_true(l.at_link.by > 0.05 && l.at_link.by < 0.11);
        assert_true(l.cost == 0);
    }
    job_lateness_finish(&l);
}

static void a_tenth_of_its_link_is_the_link(void **state)
{
    (void)state;
    size_t next = (culprit + 1) % RANKS;
    assert_late(late_beside(culprit, next, 20 * excess, true), false);
    assert_late(late_beside(next, culprit, 20 * excess, true), false);
}

static void more_than_that_is_its_own(void **state)
{
    (void)state;
    assert_late(late_beside(culprit, (culprit + 1) % RANKS, 5 * excess, true), true);
}

static void links_of_others_excuse_nobody(void **state)
{
    (void)state;
    size_t next = (culprit + 1) % RANKS, other = (culprit + 2) % RANKS;
    assert_late(late_beside(next, other, 20 * excess, true), true);
    assert_late(late_beside(culprit, next, 20 * excess, false), true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_links_it_is_late), /* first: the others need its excess */
        cmocka_unit_test(a_tenth_of_its_link_is_the_link),
        cmocka_unit_test(more_than_that_is_its_own),
        cmocka_unit_test(links_of_others_excuse_nobody),
    };
    return cmocka_run_group_tests(tests, forge_job, forget_job);
}
