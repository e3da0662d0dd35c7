/* Which steps are worth a capture, by whatever clause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "draw.h"

#include "capture/capture.h"

static pki_clauses clauses;
static pki_chooser chooser;
static pki_wish wishes[PKI_WISHES_MOST];

static bool parses(const char *text)
{
    char why[160] = "";
    bool parsed = pki_clauses_parse(text, &clauses, why, sizeof why);
    assert_true(parsed || why[0]);
    return parsed;
}

static void by(const char *text)
{
    assert_true(parses(text));
    memset(&chooser, 0, sizeof chooser);
    chooser.clauses = clauses;
}

/* ---- the text ---- */

static void clauses_are_read(void **state)
{
    (void)state;
    assert_true(parses("") && !clauses.request && clauses.slow == 0);
    assert_true(parses("slow=1.25;steps=100-104;steps=7;every=1000;request"));
    assert_true(clauses.slow > 1.2499 && clauses.slow < 1.2501 && clauses.floor_ns == 100000);
    assert_true(clauses.range_count == 2 && clauses.ranges[0].first == 100);
    assert_true(clauses.ranges[0].last == 104 && clauses.ranges[1].last == 7);
    assert_true(clauses.every == 1000 && clauses.request);
    assert_true(parses("slow=2,floor:0") && clauses.floor_ns == 0);
    assert_true(parses("cycle=skip:10,wait:5,warmup:1,active:3,repeat:2"));
    assert_true(clauses.cycle.skip == 10 && clauses.cycle.wait == 5 && clauses.cycle.warmup == 1);
    assert_true(clauses.cycle.active == 3 && clauses.cycle.repeat == 2);
    assert_true(parses("cycle=active:1") && clauses.cycle.repeat == 0);
    assert_int_equal(pki_clauses_longest(&clauses), 1);
    assert_true(parses("slow=1.2;cycle=active:7") && pki_clauses_longest(&clauses) == 7);
}

static void what_is_malformed_is_refused(void **state)
{
    static const char *const bad[] = {
        ";",
        "slow",
        "slow=",
        "slow=1",
        "slow=0.9",
        "slow=1.0",
        "slow=-2",
        "slow=nan",
        "slow=1,2",
        "slow=1.2;slow=1.3",
        "slow=1.2,floor",
        "slow=1.2,floor:",
        "slow=1.2,floor:x",
        "slow=1.2,floor:1,floor:2",
        "slow=1.2.3",
        "slow=1001",
        "slow= 1.2",
        "steps=",
        "steps=5-4",
        "steps=1-2-3",
        "steps=-1",
        "steps=0-10000",
        "steps=99999999999999999999",
        "every=0",
        "every=",
        "every=x",
        "every=1;every=2",
        "cycle=",
        "cycle=active:0",
        "cycle=wait:1",
        "cycle=active:1,active:2",
        "cycle=active",
        "cycle=active:1,pause:2",
        "cycle=active:1,",
        "cycle=active:1;cycle=active:1",
        "request=1",
        "request;",
        "fast=1",
        " slow=1.2",
        "slow=1.2 ",
        "cycle=active:10001",
        "steps=1;steps=1;steps=1;steps=1;steps=1;steps=1;steps=1;steps=1;steps=1"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parses(bad[i]))
            fail_msg("'%s' is taken", bad[i]);
}

/* ---- by number ---- */

/* Steps first to last end; all wishes must be this range, `times` of them. */
static unsigned steps(uint64_t first, uint64_t last)
{
    unsigned n = 0;
    for (uint64_t s = first; s <= last; s++)
        n += pki_choose(&chooser, s, 0, 1000, wishes + (n < 3 ? n : 0));
    return n;
}

static void expect(unsigned i, uint64_t first, uint64_t last, pki_capture_reason reason)
{
    assert_int_equal(wishes[i].first, first);
    assert_int_equal(wishes[i].last, last);
    assert_int_equal(wishes[i].reason, reason);
}

static void ranges(void **state)
{
    (void)state;
    by("steps=3-5;steps=0");
    assert_int_equal(steps(0, 0), 1);
    expect(0, 0, 0, PKI_CAPTURE_STEPS);
    assert_int_equal(steps(1, 4), 0);
    assert_int_equal(steps(7, 9), 1); /* 5 is missing: as soon as it is over */
    expect(0, 3, 5, PKI_CAPTURE_STEPS);
    assert_int_equal(pki_choose_at_end(&chooser, wishes), 0);
    by("steps=3-5");
    steps(0, 3);
    assert_int_equal(pki_choose_at_end(&chooser, wishes), 1);
    expect(0, 3, 3, PKI_CAPTURE_STEPS);
    assert_true(wishes[0].cut);
    by("steps=3-5");
    steps(0, 2);
    assert_int_equal(pki_choose_at_end(&chooser, wishes), 0);
}

static void every(void **state)
{
    (void)state;
    by("every=10");
    assert_int_equal(steps(0, 9), 0);
    assert_int_equal(steps(10, 10), 1);
    expect(0, 10, 10, PKI_CAPTURE_EVERY);
    assert_int_equal(steps(11, 19), 0);
    assert_int_equal(steps(21, 29), 1); /* 20 is missing */
    expect(0, 21, 21, PKI_CAPTURE_EVERY);
    by("every=1");
    assert_int_equal(steps(0, 9), 9);
}

/* torch.profiler.schedule's: skip_first, wait, warmup, active, repeat. */
static void cycles(void **state)
{
    (void)state;
    by("cycle=skip:10,wait:5,warmup:1,active:3,repeat:2");
    assert_int_equal(steps(0, 17), 0);
    assert_int_equal(steps(18, 18), 1);
    expect(0, 16, 18, PKI_CAPTURE_CYCLE);
    assert_int_equal(steps(19, 26), 0);
    assert_int_equal(steps(27, 27), 1);
    expect(0, 25, 27, PKI_CAPTURE_CYCLE);
    assert_int_equal(steps(28, 200), 0); /* it was for two */
    by("cycle=active:2");
    assert_int_equal(steps(0, 99), 50);
    by("cycle=wait:1,active:2,repeat:3");
    assert_int_equal(steps(0, 99), 3);
}

static void cycles_cut_by_the_end(void **state)
{
    (void)state;
    by("cycle=skip:10,wait:5,warmup:1,active:3,repeat:2");
    steps(0, 15);
    assert_int_equal(pki_choose_at_end(&chooser, wishes), 0); /* amid the warm-up */
    steps(16, 16);
    assert_int_equal(pki_choose_at_end(&chooser, wishes), 1);
    expect(0, 16, 16, PKI_CAPTURE_CYCLE);
    assert_true(wishes[0].cut);
    steps(17, 40);
    assert_int_equal(pki_choose_at_end(&chooser, wishes), 0);
    by("cycle=active:3");
    steps(0, 2);
    assert_int_equal(pki_choose_at_end(&chooser, wishes), 0); /* one is whole, none has begun */
    by("cycle=skip:10,active:3");
    steps(0, 3);
    assert_int_equal(pki_choose_at_end(&chooser, wishes), 0); /* skipped all of it */
}

/* Warm-up and what is to come, so that whoever needs time can begin. */
static void what_is_foreseen(void **state)
{
    (void)state;
    by("cycle=wait:5,warmup:1,active:3;steps=100-104");
    assert_true(!pki_choose_foresees(&chooser, 4, 4) && pki_choose_foresees(&chooser, 5, 5));
    assert_true(pki_choose_foresees(&chooser, 8, 8) && !pki_choose_foresees(&chooser, 9, 9));
    assert_true(pki_choose_foresees(&chooser, 3, 6) && !pki_choose_foresees(&chooser, 3, 5));
    assert_true(pki_choose_foresees(&chooser, 9, 20)); /* over and wait of the next one between */
    by("cycle=skip:10,wait:5,warmup:2,active:3,repeat:2");
    assert_true(!pki_choose_foresees(&chooser, 0, 16) && pki_choose_foresees(&chooser, 0, 17));
    assert_true(pki_choose_foresees(&chooser, 29, 1000) &&
                !pki_choose_foresees(&chooser, 30, 1000));
    by("steps=100-104");
    assert_true(!pki_choose_foresees(&chooser, 90, 99) && pki_choose_foresees(&chooser, 90, 100));
    assert_true(pki_choose_foresees(&chooser, 104, 104) &&
                !pki_choose_foresees(&chooser, 105, 106));
    by("every=100");
    assert_true(!pki_choose_foresees(&chooser, 0, 99) && pki_choose_foresees(&chooser, 0, 100));
    assert_true(pki_choose_foresees(&chooser, 100, 100) &&
                !pki_choose_foresees(&chooser, 101, 199));
    by("slow=1.2");
    assert_false(pki_choose_foresees(&chooser, 0, 1000000));
}

static void kernels_are_read(void **state)
{
    (void)state;
    assert_true(parses("slow=1.2") && clauses.kernels == PKI_KERNELS_UNSAID && clauses.behind == 4);
    assert_true(parses("slow=1.2;kernels=always") && clauses.kernels == PKI_KERNELS_ALWAYS);
    assert_int_equal(pki_clauses_longest(&clauses), 4);
    assert_true(parses("kernels=armed,steps:7;slow=1.2") && clauses.behind == 7);
    assert_true(clauses.kernels == PKI_KERNELS_ARMED && pki_clauses_longest(&clauses) == 11);
    assert_false(parses("kernels"));
    assert_false(parses("kernels="));
    assert_false(parses("kernels=never"));
    assert_false(parses("kernels=always,steps:3"));
    assert_false(parses("kernels=armed,steps:0"));
    assert_false(parses("kernels=armed,steps:1001"));
    assert_false(parses("kernels=armed,steps"));
    assert_false(parses("kernels=armed,steps:3,steps:3"));
    assert_false(parses("kernels=armed;kernels=always"));
}

/* ---- slow ---- */

/* 10 ms, and noise of up to 5 % of either sign. */
static uint64_t noisy(void)
{
    return 9500000 + draw_below(1000001);
}

static void all_that_are_slow_and_no_other(void **state)
{
    (void)state;
    static bool slowed[10000];
    unsigned found = 0, false_ones = 0;
    by("slow=1.12");
    for (unsigned n = 0; n < 100;) {
        uint64_t at = 20 + draw_below(9980);
        n += !slowed[at];
        slowed[at] = true;
    }
    for (uint64_t s = 0; s < 10000; s++) {
        uint64_t ns = noisy();
        ns = slowed[s] ? ns + ns * (20 + draw_below(31)) / 100 : ns;
        if (!pki_choose(&chooser, s, 0, ns, wishes))
            continue;
        expect(0, s - 3, s, PKI_CAPTURE_SLOW);
        assert_true(wishes[0].slow_step == s && wishes[0].slow_ns == ns);
        found += slowed[s];
        false_ones += !slowed[s];
    }
    assert_int_equal(found, 100);
    assert_int_equal(false_ones, 0);
}

static void like_is_compared_with_like(void **state)
{
    (void)state;
    by("slow=1.2");
    for (uint64_t s = 0; s < 1000; s++) {
        bool evaluation = s % 10 == 9;
        unsigned n =
            pki_choose(&chooser, s, evaluation ? 7 : 0, evaluation ? 100000000 : 10000000, wishes);
        assert_int_equal(n, 0);
    }
    assert_int_equal(pki_choose(&chooser, 1000, 0, 100000000, wishes), 1);
    assert_int_equal(pki_choose(&chooser, 1001, 7, 110000000, wishes), 0);
    assert_int_equal(pki_choose(&chooser, 1002, 7, 130000000, wishes), 1);
}

static void few_steps_and_short_ones_are_no_ground(void **state)
{
    (void)state;
    by("slow=1.2");
    for (uint64_t s = 0; s < PKI_LIKE_LEAST; s++)
        assert_int_equal(pki_choose(&chooser, s, 0, s == 3 ? 900000000 : 10000000, wishes), 0);
    by("slow=1.2"); /* 20 us, and 90 us more now and then: below the floor */
    for (uint64_t s = 0; s < 1000; s++)
        assert_int_equal(pki_choose(&chooser, s, 0, s % 50 == 49 ? 110000 : 20000, wishes), 0);
    by("slow=1.2,floor:50");
    for (uint64_t s = 0; s < 49; s++)
        assert_int_equal(pki_choose(&chooser, s, 0, 20000, wishes), 0);
    assert_int_equal(pki_choose(&chooser, 49, 0, 110000, wishes), 1);
}

/* A loop that has become slower for good is slow until half of the window is of its new kind. */
static void the_median_rolls(void **state)
{
    (void)state;
    unsigned n = 0;
    by("slow=1.2");
    for (uint64_t s = 0; s < 100; s++)
        n += pki_choose(&chooser, s, 0, 10000000, wishes);
    for (uint64_t s = 100; s < 300; s++)
        n += pki_choose(&chooser, s, 0, 20000000, wishes);
    assert_in_range(n, PKI_LIKE_STEPS / 2, PKI_LIKE_STEPS / 2 + 2);
}

static void medians_are_exact(void **state)
{
    (void)state;
    static pki_like_steps like;
    uint64_t turns[PKI_LIKE_STEPS];
    for (unsigned i = 0; i < 5000; i++) {
        uint64_t value = draw_below(50);
        pki_like_add(&like, value);
        turns[i % PKI_LIKE_STEPS] = value;
        uint32_t count = i < PKI_LIKE_STEPS ? i + 1 : PKI_LIKE_STEPS, below = 0, upto = 0;
        uint64_t median = pki_like_median(&like);
        for (uint32_t k = 0; k < count; k++) {
            below += turns[k] < median;
            upto += turns[k] <= median;
        }
        assert_true(count < PKI_LIKE_LEAST || (below <= count / 2 && upto > count / 2));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clauses_are_read),
        cmocka_unit_test(what_is_malformed_is_refused),
        cmocka_unit_test(ranges),
        cmocka_unit_test(every),
        cmocka_unit_test(cycles),
        cmocka_unit_test(cycles_cut_by_the_end),
        cmocka_unit_test(what_is_foreseen),
        cmocka_unit_test(kernels_are_read),
        cmocka_unit_test(all_that_are_slow_and_no_other),
        cmocka_unit_test(like_is_compared_with_like),
        cmocka_unit_test(few_steps_and_short_ones_are_no_ground),
        cmocka_unit_test(the_median_rolls),
        cmocka_unit_test(medians_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
