/* How far two clocks are apart, from forged messages: the truth is always inside what is said. */
#include "job/clocks.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

static uint64_t state = 1;

/* 0 .. 1 */
static double draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) / 9007199254740992.0;
}

/* A delay as networks have them: something fixed, and a long tail; the two ways differ. */
static double delay(double least)
{
    return least - 3 * least * log(1 - draw());
}

typedef struct truth {
    double offset, drift, span;
} truth;

static double offset_at(const truth *t, double at)
{
    return t->offset + t->drift * at;
}

/* What a message to the clock says, and one from it. */
static void exchange(pki_bounds *b, const truth *t, double at, double least)
{
    double late = at + delay(least), early = at - delay(4 * least);
    pki_bounds_most(b, at, late - at + offset_at(t, at));
    pki_bounds_least(b, at, early - at + offset_at(t, at));
}

static truth draw_truth(void)
{
    return (truth){.offset = 1e9 * (draw() - 0.5),
                   .drift = 40e-6 * (draw() - 0.5),
                   .span = 1e9 + draw() * 1.2e12};
}

#ifdef __SANITIZE_ADDRESS__
#define RUNS 200 /* for what is accessed; the rest is the other configurations' matter */
#else
#define RUNS 1000
#endif

static void test_truth_is_inside(void **unused)
{
    (void)unused;
    int inside = 0, asked = 0;
    for (int run = 0; run < RUNS; run++) {
        truth t = draw_truth();
        pki_bounds b = {.span = t.span};
        int exchanges = 4 + (int)(draw() * 200);
        for (int i = 0; i < exchanges; i++)
            exchange(&b, &t, draw() * t.span, 500 + 50000 * draw());
        for (int i = 0; i <= 2; i++) {
            double at = t.span * i / 2, least, most;
            if (pki_bounds_at(&b, at, &least, &most) != PKI_BOUNDS_BOTH)
                continue; /* nothing within ten minutes of that moment */
            double true_offset = offset_at(&t, at);
            asked++;
            inside += least - 1e-3 <= true_offset && true_offset <= most + 1e-3;
        }
    }
    assert_true(asked > 2 * RUNS);
    assert_int_equal(inside, asked);
}

/* More messages, and over a longer time, say more than the best pair of them. */
static void test_narrower_than_any_pair(void **unused)
{
    (void)unused;
    truth t = {.offset = 1e6, .drift = 10e-6, .span = 1e10};
    pki_bounds b = {.span = t.span};
    double pair = INFINITY, least, most;
    for (int i = 0; i < 1000; i++) {
        double at = t.span * i / 1000, to = delay(1000), from = delay(1000);
        pki_bounds_most(&b, at, offset_at(&t, at) + to);
        pki_bounds_least(&b, at, offset_at(&t, at) - from);
        pair = fmin(pair, to + from);
    }
    assert_int_equal(pki_bounds_at(&b, t.span / 2, &least, &most), PKI_BOUNDS_BOTH);
    assert_true(most - least <= 1.2 * pair);
    assert_int_equal(b.count, 2000);
}

static void test_one_side_is_open(void **unused)
{
    (void)unused;
    double least, most;
    pki_bounds b = {.span = 100};
    assert_int_equal(pki_bounds_at(&b, 0, &least, &most), PKI_BOUNDS_OPEN);
    pki_bounds_least(&b, 50, 7);
    assert_int_equal(pki_bounds_at(&b, 0, &least, &most), PKI_BOUNDS_OPEN);
    assert_true(least == 7 && isinf(most));
    pki_bounds_most(&b, 50, 9);
    assert_int_equal(pki_bounds_at(&b, 50, &least, &most), PKI_BOUNDS_BOTH);
    assert_true(fabs(least - 7) < 1e-6 && fabs(most - 9) < 1e-6);
}

static void test_contradictions(void **unused)
{
    (void)unused;
    double least, most;
    pki_bounds b = {.span = 1e9};
    pki_bounds_least(&b, 5e8, 1000);
    pki_bounds_most(&b, 5e8, 900);
    assert_int_equal(pki_bounds_at(&b, 5e8, &least, &most), PKI_BOUNDS_BROKEN);
    pki_bounds c = {.span = 1e9}; /* a jump amid the run */
    for (int i = 0; i < 100; i++) {
        double at = 1e7 * i, offset = i < 50 ? 0 : 1e8;
        pki_bounds_least(&c, at, offset - 1000);
        pki_bounds_most(&c, at, offset + 1000);
    }
    assert_int_equal(pki_bounds_at(&c, 0, &least, &most), PKI_BOUNDS_BROKEN);
}

/* What was an hour ago says nothing: clocks do not drift evenly for so long. */
static void test_what_is_far_away(void **unused)
{
    (void)unused;
    double least, most;
    pki_bounds b = {.span = 3.6e12};
    pki_bounds_least(&b, 0, -10);
    pki_bounds_most(&b, 0, 10);
    assert_int_equal(pki_bounds_at(&b, 3.6e12, &least, &most), PKI_BOUNDS_OPEN);
    assert_int_equal(pki_bounds_at(&b, 1e9, &least, &most), PKI_BOUNDS_BOTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truth_is_inside),  cmocka_unit_test(test_narrower_than_any_pair),
        cmocka_unit_test(test_one_side_is_open), cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_what_is_far_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
