/* Which regions are thinned, and how far, from calls and costs that are made up. */
#include "measure/thinning.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/thin.h"

#define BOUND 0.02
#define LOOK 1e8 /* ns of CPU time */

static const pki_thin_costs costs = {.pair = 20,
                                     .timed = 50,
                                     .counted = 2,
                                     .pair_hidden = 10,
                                     .counted_hidden = 1.5,
                                     .fold = 30,
                                     .format = 60};

static pki_thinning thinning;
static pki_thin_region regions[8];

static void begin(bool traced)
{
    pki_thinning_init(&thinning, BOUND, traced, costs);
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++)
        regions[i] = (pki_thin_region){.id = (uint32_t)i};
}

/* What really happens in a stretch: calls are timed as the region's word says. Returns perfkit's
 * share. */
static double stretch(const double *calls, size_t count, bool *changed)
{
    double owner = 0, beside = 0;
    for (size_t i = 0; i < count; i++) {
        pki_thin_region *r = &regions[i];
        bool skips = pki_thin_skips_calls(r->thin);
        double timed = skips ? calls[i] * 2 / r->thin : calls[i];
        r->timed = (uint64_t)timed;
        r->untimed = (uint64_t)(calls[i] - timed);
        owner += timed * (skips ? costs.timed : costs.pair) + (calls[i] - timed) * costs.counted;
        beside += timed * (costs.fold +
                           (thinning.traced && r->thin != PKI_THIN_UNTRACED ? costs.format : 0));
    }
    const pki_thin_input input = {.process = LOOK, .beside = beside};
    *changed = pki_thinning_adjust(&thinning, &input, regions, count);
    return (owner + beside) / LOOK;
}

static double settle(const double *calls, size_t count, unsigned looks)
{
    bool changed;
    double share = 0;
    for (unsigned i = 0; i < looks; i++)
        share = stretch(calls, count, &changed);
    return share;
}

static void within_the_bound_nothing_is_thinned(void **state)
{
    const double calls[] = {1000, 2000};
    (void)state;
    begin(true);
    settle(calls, 2, 20);
    assert_int_equal(regions[0].thin, 0);
    assert_int_equal(regions[1].thin, 0);
}

static void the_bound_holds_after_a_few_looks(void **state)
{
    const double calls[] = {300000, 3000, 100};
    bool changed;
    (void)state;
    begin(true);
    assert_true(stretch(calls, 3, &changed) > 0.1);
    settle(calls, 3, 3);
    for (int i = 0; i < 100; i++)
        assert_true(stretch(calls, 3, &changed) <= BOUND);
    assert_true(pki_thin_skips_calls(regions[0].thin));
    assert_int_equal(regions[2].thin, 0); /* it costs nothing */
    assert_false(thinning.beyond);
}

static void events_go_before_times(void **state)
{
    const double calls[] = {18000};
    (void)state;
    begin(true);
    settle(calls, 1, 3);
    assert_int_equal(regions[0].thin, PKI_THIN_UNTRACED);
}

static void without_a_trace_times_go_at_once(void **state)
{
    const double calls[] = {50000};
    (void)state;
    begin(false);
    settle(calls, 1, 3);
    assert_true(regions[0].thin >= 8);
}

static void what_was_taken_too_much_is_saved_again(void **state)
{
    const double calls[] = {300000};
    bool changed;
    double taken = 0;
    (void)state;
    begin(false);
    for (int i = 0; i < 60; i++)
        taken += stretch(calls, 1, &changed);
    assert_true(taken / 60 <= BOUND);
}

static void with_room_times_come_back_and_stay(void **state)
{
    const double many[] = {300000}, few[] = {2000};
    bool changed;
    unsigned changes = 0;
    (void)state;
    begin(true);
    settle(many, 1, 10);
    assert_true(regions[0].thin > 2);
    settle(few, 1, 100);
    assert_int_equal(regions[0].thin, 0);
    for (int i = 0; i < 100; i++) {
        stretch(few, 1, &changed);
        changes += changed;
    }
    assert_int_equal(changes, 0);
}

/* Loads that lie anywhere: within a hundred looks it changes its mind a few times at most. */
static void it_does_not_flap(void **state)
{
    (void)state;
    for (double calls = 1000; calls < 800000; calls *= 1.07) {
        bool changed;
        unsigned changes = 0;
        begin(true);
        settle(&calls, 1, 200);
        for (int i = 0; i < 200; i++) {
            stretch(&calls, 1, &changed);
            changes += changed;
        }
        assert_in_range(changes, 0, 6);
    }
}

static void never_means_never(void **state)
{
    const double calls[] = {500000};
    (void)state;
    begin(true);
    regions[0].thin = PKI_THIN_NEVER;
    settle(calls, 1, 20);
    assert_true(regions[0].thin == PKI_THIN_NEVER);
    assert_true(thinning.beyond);
}

static void counting_alone_can_be_too_much(void **state)
{
    const double calls[] = {2000000}; /* 4 % of the time to count them */
    (void)state;
    begin(false);
    settle(calls, 1, 5);
    assert_false(thinning.beyond); /* not at once */
    settle(calls, 1, 25);
    assert_true(thinning.beyond);
    assert_true(regions[0].thin >= 64);
    assert_true(thinning.sure / thinning.cpu > BOUND);
    const double fewer[] = {1000};
    settle(fewer, 1, 1);
    assert_false(thinning.beyond);
}

/* In a row they take 2 ns each, which would be 2.6 %; it may be 1.95 % as well. */
static void what_may_be_hidden_is_not_said_to_be_too_much(void **state)
{
    const double calls[] = {1300000};
    (void)state;
    begin(false);
    settle(calls, 1, 100);
    assert_true(thinning.share > BOUND);
    assert_false(thinning.beyond);
    assert_true(regions[0].thin >= 64);
}

static void where_nothing_helps_the_few_keep_their_times(void **state)
{
    const double calls[] = {2000000, 20};
    (void)state;
    begin(true);
    settle(calls, 2, 50);
    assert_true(thinning.beyond);
    assert_int_equal(regions[1].thin, 0);
}

static void what_records_cost_is_learnt(void **state)
{
    const double calls[] = {100000};
    (void)state;
    begin(false);
    for (int i = 0; i < 10; i++) {
        regions[0].thin = 0;
        regions[0].timed = (uint64_t)calls[0];
        regions[0].untimed = 0;
        const pki_thin_input input = {.process = LOOK, .beside = calls[0] * costs.fold * 3};
        pki_thinning_adjust(&thinning, &input, regions, 1);
    }
    assert_true(thinning.scale > 2.9 && thinning.scale < 3.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_the_bound_nothing_is_thinned),
        cmocka_unit_test(the_bound_holds_after_a_few_looks),
        cmocka_unit_test(events_go_before_times),
        cmocka_unit_test(without_a_trace_times_go_at_once),
        cmocka_unit_test(what_was_taken_too_much_is_saved_again),
        cmocka_unit_test(with_room_times_come_back_and_stay),
        cmocka_unit_test(it_does_not_flap),
        cmocka_unit_test(never_means_never),
        cmocka_unit_test(counting_alone_can_be_too_much),
        cmocka_unit_test(what_may_be_hidden_is_not_said_to_be_too_much),
        cmocka_unit_test(where_nothing_helps_the_few_keep_their_times),
        cmocka_unit_test(what_records_cost_is_learnt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
