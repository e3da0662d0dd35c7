/* Which steps are worth a capture, which captures an hour has room for, and which open spans are
 * in one. */
#include "draw.h"
#include "folder.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "capture/capture.h"
#include "core/names.h"
#include "history/format.h"
#include "measure/spans/spans.h"

/* ---- which steps are worth a capture, by whatever clause ---- */

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

/* -- the text -- */

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

/* -- by number -- */

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

/* -- slow -- */

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

static const struct CMUnitTest capture_choose_tests[] = {
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

/* ---- which captures an hour has room for ---- */

/* Never more, and the worst. */

static pki_budget budget;

static void keep(const char *path, uint64_t ns, double worth, uint64_t bytes)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0 && close(fd) == 0);
    pki_budget_enter(&budget, ns, worth, bytes, path);
}

/* As whoever writes captures does it. */
static bool offer(unsigned number, uint64_t ns, double worth, uint64_t bytes)
{
    char path[32];
    snprintf(path, sizeof path, "c%u", number);
    uint64_t allowed = pki_budget_allows(&budget, ns, worth);
    if (bytes > allowed)
        return false;
    pki_budget_make_room(&budget, ns, worth, bytes);
    keep(path, ns, worth, bytes);
    return true;
}

static void check_bounds(uint32_t captures, uint64_t bytes)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < budget.count; i++)
        sum += budget.kept[i].bytes;
    assert_true(budget.count <= captures && sum <= bytes);
    assert_int_equal(count_files(), budget.count);
}

static void the_worst_of_an_hour(void **state)
{
    (void)state;
    double worths[200];
    budget = (pki_budget){.captures = 10, .bytes = (uint64_t)1 << 40};
    for (unsigned i = 0; i < 200; i++) {
        worths[i] = 1.2 + (double)draw_below(1000000) / 1e6;
        offer(i, 1000 + i, worths[i], 5000000);
        check_bounds(10, (uint64_t)1 << 40);
    }
    for (unsigned i = 0; i < 200; i++) {
        char path[32];
        unsigned worse = 0;
        for (unsigned k = 0; k < 200; k++)
            worse += worths[k] > worths[i];
        snprintf(path, sizeof path, "c%u", i);
        assert_int_equal(exists(path), worse < 10);
    }
    pki_budget_finish(&budget);
}

static void bytes_are_bounded_too(void **state)
{
    (void)state;
    budget = (pki_budget){.captures = 1000, .bytes = 10000000};
    for (unsigned i = 0; i < 300; i++) {
        uint64_t bytes = 100000 + draw_below(3000000); /* compilers draw in an order of their own */
        offer(i, 1000 + i, 1.2 + (double)draw_below(1000) / 1e3, bytes);
        check_bounds(1000, 10000000);
    }
    assert_int_equal(pki_budget_allows(&budget, 2000, 1.0), 0);
    assert_int_equal(pki_budget_allows(&budget, 2000, PKI_WORTH_ASKED), 10000000);
    pki_budget_finish(&budget);
}

static void hours_pass(void **state)
{
    (void)state;
    budget = (pki_budget){.captures = 2, .bytes = (uint64_t)1 << 40};
    assert_true(offer(0, 0, 2, 1000) && offer(1, 1, 3, 1000));
    assert_false(offer(2, 2, 2, 1000)); /* of the same worth the earlier stays */
    assert_false(offer(3, PKI_BUDGET_HOUR_NS - 1, 1.5, 1000));
    assert_true(offer(4, PKI_BUDGET_HOUR_NS, 1.5, 1000));
    assert_true(exists("c0") && exists("c1") && exists("c4")); /* those of past hours stay */
    pki_budget_finish(&budget);
}

/* What somebody else has put in its place is not ours to remove. */
static void files_of_others_stay(void **state)
{
    (void)state;
    budget = (pki_budget){.captures = 1, .bytes = (uint64_t)1 << 40};
    assert_true(offer(0, 0, 2, 1000));
    assert_int_equal(rename("c0", "moved"), 0);
    int fd = open("c0", O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0 && close(fd) == 0);
    assert_true(offer(1, 1, 3, 1000));
    assert_true(exists("c0") && exists("moved") && exists("c1"));
    pki_budget_finish(&budget);
}

static const struct CMUnitTest capture_budget_tests[] = {
    in_folder(the_worst_of_an_hour),
    in_folder(bytes_are_bounded_too),
    in_folder(hours_pass),
    in_folder(files_of_others_stay),
};

/* ---- the table of open spans against a plain list ---- */

/* And which of their events a capture has. */

static uint64_t chance = 88172645463325252u;

static uint32_t any(uint32_t below)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (uint32_t)(chance >> 33) % below;
}

#define SERIALS 4096u

/* Serials far apart by a power of two meet in one place. */
static uint32_t serial_of(uint32_t n)
{
    return n % 2 ? n : n << 18;
}

static void the_table_has_what_a_list_has(void **state)
{
    static bool there[SERIALS];
    pki_open_spans spans = {0};
    size_t count = 0;
    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        uint32_t n = any(SERIALS);
        pki_open_span *found = pki_open_spans_find(&spans, serial_of(n));
        assert_int_equal(found != NULL, there[n]);
        if (found) {
            assert_int_equal(found->id, n);
            pki_open_spans_remove(&spans, found);
        } else {
            const pki_open_span s = {
                .id = n, .serial = serial_of(n), .state = n % 3 ? PKI_SPAN_OPEN : PKI_SPAN_ENDED};
            assert_true(pki_open_spans_add(&spans, &s));
        }
        there[n] = !there[n];
        count = there[n] ? count + 1 : count - 1;
        assert_int_equal(spans.used, count);
    }
    size_t ended = 0;
    for (uint32_t n = 0; n < SERIALS; n++)
        ended += there[n] && n % 3 == 0;
    assert_int_equal(spans.ended, ended);
    pki_open_spans_finish(&spans);
    assert_null(spans.cells);
}

static void ends_and_begins_meet_in_either_order(void **state)
{
    pki_span_counter c = {0};
    const pki_open_span one = {.start = 5, .serial = 1, .name = 3, .state = PKI_SPAN_OPEN};
    const pki_open_span two = {.start = 5, .serial = 2, .name = 3, .state = PKI_SPAN_OPEN};
    const pki_open_span lost = {.start = 5, .serial = 3, .name = 4, .state = PKI_SPAN_OPEN};
    (void)state;
    assert_true(pki_spans_begin(&c, &one) == UINT64_MAX);
    assert_true(pki_spans_end(&c, &one, 10, false));
    assert_false(pki_spans_end(&c, &two, 11, false));
    assert_int_equal(pki_spans_begin(&c, &two), 11);
    assert_true(pki_spans_end(&c, &lost, 12, true));
    assert_false(pki_spans_end(&c, &one, 10, false)); /* a copy's */
    assert_false(pki_spans_end(&c, &one, 10, false));
    assert_int_equal(c.open.ended, 1);
    pki_spans_mark(&c, 900);
    pki_span_row row = pki_spans_row(&c, 3, 0);
    assert_true(row.begun == 2 && row.ended == 2 && row.unfinished == 0 && row.marks == 0);
    row = pki_spans_row(&c, 4, 0);
    assert_true(row.begun == 1 && row.ended == 1);
    row = pki_spans_row(&c, 900, 5); /* four of them without a record */
    assert_true(row.begun == 0 && row.marks == 5 && row.events > 0);
    assert_int_equal(pki_spans_row(&c, 70000, 9).events, 0);
    pki_spans_finish_counter(&c);
}

/* -- captures -- */

static pki_clock_map map;
static char text[8192];

static pki_chrome_name name_of(void *user, uint32_t id)
{
    (void)user;
    (void)id;
    return (pki_chrome_name){.name = "request", .key = "", .length = 7};
}

static bool sink(void *user, const char *event, size_t n)
{
    (void)user;
    strncat(text, event, n);
    return true;
}

typedef struct scene {
    pki_open_spans seen;
    pki_history_range range;
    pki_chrome chrome;
} scene;

static void put(scene *s, pki_record_type type, uint32_t serial, uint64_t start, uint64_t ticks)
{
    char event[PKI_EVENT_BYTES];
    const pki_record r = {start, ticks, PKI_WHAT(5, type, 0), serial}, more = {77, 0, 0, 0};
    size_t n = pki_history_span(&s->seen, &s->chrome, event, 4, &s->range, &r, &more);
    sink(NULL, event, n);
}

/* Letters of the events of a span, in their order. */
static const char *events_of(uint32_t serial)
{
    static char found[16];
    char id[32];
    size_t n = 0;
    snprintf(id, sizeof id, "\"id\":%u,\"args\":", serial);
    for (char *line = text; (line = strstr(line, "{\"ph\":\"")) && n < 15; line++) {
        const char *next = strchr(line, '\n'), *at = strstr(line, id);
        if (at && (!next || at < next))
            found[n++] = line[7];
    }
    found[n] = 0;
    return found;
}

static void a_capture_has_what_overlaps(void **state)
{
    const pki_open_span open[] = {{10, 1, 20, 5, PKI_SPAN_OPEN, 0},
                                  {900, 1, 21, 5, PKI_SPAN_OPEN, 0}};
    scene s = {.range = {.from = 100, .until = 200, .open = open, .open_count = 2}};
    (void)state;
    pki_clock_map_init(&map, 1, (pki_clock_sample){1, 1, 0}, (pki_clock_sample){2, 2, 0});
    pki_chrome_init(&s.chrome, &map, 42, name_of, NULL);
    text[0] = 0;
    put(&s, PKI_RECORD_SPAN_BEGIN, 1, 110, 1); /* within */
    put(&s, PKI_RECORD_SPAN_MARK, 1, 120, 10);
    put(&s, PKI_RECORD_SPAN_END, 1, 110, 20);
    put(&s, PKI_RECORD_SPAN_BEGIN, 2, 50, 1); /* before, into it */
    put(&s, PKI_RECORD_SPAN_END, 2, 50, 100);
    put(&s, PKI_RECORD_SPAN_BEGIN, 3, 50, 1); /* before */
    put(&s, PKI_RECORD_SPAN_MARK, 3, 60, 10);
    put(&s, PKI_RECORD_SPAN_END, 3, 50, 10);
    put(&s, PKI_RECORD_SPAN_END, 4, 20, 120); /* whose begin is gone */
    put(&s, PKI_RECORD_SPAN_END, 5, 130, 20); /* whose begin comes later in the history */
    put(&s, PKI_RECORD_SPAN_BEGIN, 5, 130, 1);
    put(&s, PKI_RECORD_SPAN_BEGIN, 6, 50, 1);  /* all over it */
    put(&s, PKI_RECORD_SPAN_BEGIN, 7, 150, 1); /* within, and still open */
    put(&s, PKI_RECORD_SPAN_BEGIN, 8, 250, 1); /* behind it */
    put(&s, PKI_RECORD_SPAN_END, 8, 250, 9);
    assert_true(pki_history_open_spans(&s.seen, &s.chrome, &s.range, 200, sink, NULL));
    const char *const expected[] = {"", "bne", "be", "", "be", "be", "be", "be", ""};
    for (uint32_t i = 1; i < 9; i++)
        assert_string_equal(events_of(i), expected[i]);
    assert_string_equal(events_of(20), "be");
    assert_non_null(strstr(text, "\"id\":7,\"args\":{\"id\":1,\"unfinished\":1}}"));
    assert_string_equal(events_of(21), "");
    pki_open_spans_finish(&s.seen);
    pki_chrome_finish(&s.chrome);
}

static const struct CMUnitTest open_spans_tests[] = {
    cmocka_unit_test(the_table_has_what_a_list_has),
    cmocka_unit_test(ends_and_begins_meet_in_either_order),
    cmocka_unit_test(a_capture_has_what_overlaps),
};

int main(void)
{
    int failed = cmocka_run_group_tests(capture_choose_tests, NULL, NULL);
    failed += cmocka_run_group_tests(capture_budget_tests, NULL, NULL);
    failed += cmocka_run_group_tests(open_spans_tests, NULL, NULL);
    return failed;
}
