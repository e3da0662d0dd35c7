/* Calls that are counted and not timed: which regions, what becomes of what was counted, and its
 * errors. */
#include "folder.h"
#include "../kit/rounds.h"
#include "session.h"
#include "tick.h"
#include "valgrind.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "core/registry.h"
#include "core/thin.h"
#include "measure/fold/fold.h"
#include "measure/thinning.h"
#include "session/options/config.h"
#include "session/session.h"
#include "stats/slot.h"

/* ---- calls that are counted and not timed ---- */

/* What becomes of their counts, of the times around them, of bytes, and of ends that do not match.
 */

static pk_region outer = PK_REGION("outer"), leaf = PK_REGION_OF(PK_COMPUTE, "leaf"),
                 deep = PK_REGION("deep"), twin = PK_REGION_OF(PK_COMPUTE, "leaf"),
                 reduce = PK_REGION_OF(PK_COMPUTE, "reduce");
static uint64_t sink;

static void work(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sink = sink * 6364136223846793005u + 1442695040888963407u;
    __asm__ volatile("" : : "r"(sink));
}

/* As session/collector/thinning.c does, and this thread has seen it. */
static void thin(pk_region *region, uint32_t n)
{
    pki_thin_set(pki_region_id(region), n);
    pki_registry_lock();
    pki_thin_watch(pki_registry_now(), true);
    pki_registry_unlock();
}

static int start_thin(void **state)
{
    if (start_session(state))
        return -1;
    pk_region_begin(&outer); /* joins */
    pk_region_end(&outer);
    thin(&leaf, 8);
    return 0;
}

static int stop_thin(void **state)
{
    pki_thin_reset();
    return stop_session(state);
}

static void call(pk_region *region)
{
    pk_region_begin(region);
    work(30);
    pk_region_end(region);
}

static void each_call_is_counted(void **state)
{
    (void)state;
    for (int i = 0; i < 10000; i++)
        call(&leaf);
    pk_counts c = stop_and_count();
    assert_int_equal(c.begun, 10001);
    assert_in_range(c.untimed, 6000, 9000); /* 2 of 8 timed, on average */
    const pk_stats *s = stats_of(&leaf);
    assert_int_equal(s->count, 10000);
    assert_int_equal(s->untimed, c.untimed);
    assert_true(s->sampling_error > 0.01 && s->sampling_error < 0.1);
    assert_int_equal(pki_load(&leaf.id), 0);
}

static void so_are_those_of_another_pk_region_of_that_name(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        pk_region_begin(&twin);
        pk_region_end(&leaf);
        pk_region_begin(&leaf);
        pk_region_end(&twin);
    }
    assert_int_equal(stop_and_count().unbalanced, 0);
    assert_int_equal(count_of(&leaf), 2000);
}

static void and_those_that_come_before_no_timed_one(void **state)
{
    (void)state;
    thin(&leaf, PKI_THIN_MOST);
    for (int i = 0; i < 7; i++)
        call(&leaf);
    assert_int_equal(stop_and_count().begun, 8);
    assert_int_equal(count_of(&leaf), 7);
}

/* What a region's calls owe: a timed call that was held up stands for others that were not. */
static uint64_t debt_of(pk_region *region)
{
    pki_fold_lock();
    uint64_t debt = pki_table_slot(&pki_fold_now()->totals, pki_region_id(region))->debt;
    pki_fold_unlock();
    return debt;
}

/* Whatever each call took: of the outer one what the timed calls inside stand for is taken off, but
 * for those of the last gap, which are as long as the mean of the others. */
static void self_times_add_up(void **state)
{
    uint64_t whole, all, last;
    (void)state;
    thin(&outer, 0);
    pk_region_begin(&outer);
    for (int i = 0; i < 20000; i++) {
        work(60);
        pk_region_begin(&leaf);
        work(30);
        call(&deep);
        pk_region_end(&leaf);
    }
    pk_region_end(&outer);
    stop_and_count();
    whole = stats_of(&outer)->sum;
    all = the_stats.self;
    all += stats_of(&leaf)->self;
    last = the_stats.self / 20000 * 16 + 16;
    all += stats_of(&deep)->self;
    assert_int_equal(the_stats.count, 20000);
    assert_int_equal(the_stats.untimed, 0);
    all -= debt_of(&outer) + debt_of(&leaf) + debt_of(&deep);
    assert_in_range(all, whole, whole + last);
}

static void bytes_are_exact(void **state)
{
    (void)state;
    for (int i = 0; i < 1001; i++) {
        pk_region_begin(&leaf);
        pk_region_add(&leaf, 3, 7);
        pk_region_end(&leaf);
    }
    stop_and_count();
    assert_int_equal(stats_of(&leaf)->bytes, 3003);
    assert_int_equal(the_stats.flops, 7007);
}

static void an_end_closes_what_is_left_open_inside(void **state)
{
    (void)state;
    if (tick_ns() > 2) /* two outer ones may begin in one tick: see pki_untimed in core/thread.h */
        skip();
    for (int i = 0; i < 1000; i++) {
        pk_region_begin(&outer);
        pk_region_begin(&leaf);
        pk_region_end(&outer);
        pk_region_begin(&leaf);
        pk_region_begin(&deep);
        pk_region_end(&leaf);
    }
    pk_region_begin(&leaf); /* whoever is next finds out */
    pk_region_end(&leaf);
    pk_region_end(&leaf);
    pk_counts c = stop_and_count();
    assert_int_equal(c.unbalanced, 2000);
    assert_int_equal(c.stray_ends, 1);
    assert_int_equal(c.begun, 1 + 4 * 1000 + 1);
    assert_int_equal(count_of(&deep), 1000);
}

static void one_region_after_the_other(void **state)
{
    (void)state;
    pk_region_begin(&leaf);
    for (int i = 0; i < 3000; i++) {
        pk_region_next(&leaf, &deep);
        pk_region_next(&deep, &leaf);
        pk_region_next(&leaf, &twin);
    }
    pk_region_end(&leaf);
    pk_counts c = stop_and_count();
    assert_int_equal(c.begun, 1 + 9001);
    assert_int_equal(c.unbalanced + c.stray_ends, 0);
    assert_int_equal(count_of(&leaf), 6001);
    assert_int_equal(count_of(&deep), 3000);
}

static void regions_nest_in_themselves(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        for (int k = 0; k < 100; k++)
            pk_region_begin(&leaf);
        for (int k = 0; k < 100; k++)
            pk_region_end(&leaf);
    }
    pk_counts c = stop_and_count();
    assert_int_equal(c.begun, 1 + 200 * 100);
    assert_int_equal(c.unbalanced + c.stray_ends, 0);
    assert_int_equal(c.recorded + c.dropped, c.begun);
}

static uint64_t chain(uint64_t x, unsigned links)
{
    for (unsigned i = 0; i < links; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ __volatile__("" : "+r"(x));
    }
    return x;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { BATCHES = 201, IN_BATCH = 50 };

/* What one takes in a row, beside as many calls of which few are timed. */
static double truth_beside_calls(unsigned links)
{
    double took[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        uint64_t before = pki_monotonic_ns();
        for (int k = 0; k < IN_BATCH; k++)
            sink = chain(sink, links);
        took[i] = (double)(pki_monotonic_ns() - before) / IN_BATCH;
        for (int k = 0; k < 4 * IN_BATCH; k++) {
            pk_region_begin(&leaf);
            sink = chain(sink, links);
            pk_region_end(&leaf);
        }
    }
    qsort(took, BATCHES, sizeof *took, by_size);
    return took[BATCHES / 2];
}

static bool is_within(unsigned links)
{
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    thin(&leaf, 16);
    double truth = truth_beside_calls(links), pair = pki_the_session.toll.region_ns;
    assert_int_equal(pk_stop(), PK_OK);
    pki_thin_reset();
    const pki_region_thinned t = pki_region_thinned_of(stats_of(&leaf), 0, 10, pair);
    return t.untimed && t.call_error > pair && truth >= t.p50[0] && truth <= t.p50[1];
}

/* A timed call behind many that were not: the processor is ahead of the chain by 200 ns and more,
 * and what was read as it came was too short by as much. */
static void a_chain_of_any_length(void **state)
{
    (void)state;
    if (is_slow())
        skip();
    for (unsigned links = 20; links <= 2000; links *= 3) {
        bool within = false;
        for (int i = 0; i < 5 && !within; i++)
            within = is_within(links);
        assert_true(within);
    }
}

static void all_times_come_back(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        call(&leaf);
    thin(&leaf, 0);
    call(&leaf);
    pk_flush();
    uint64_t untimed = stats_of(&leaf)->untimed;
    assert_true(pki_load(&leaf.id) != 0);
    for (int i = 0; i < 100; i++)
        call(&leaf);
    stop_and_count();
    assert_int_equal(stats_of(&leaf)->count, 201);
    assert_int_equal(the_stats.untimed, untimed);
}

static void operations_are_never_left_out(void **state)
{
    pk_comm *comm = pk_comm_create("test", "all", 1, 0, 2);
    (void)state;
    thin(&reduce, 8);
    for (int i = 0; i < 100; i++) {
        pk_region_begin(&reduce);
        pk_comm_call(&reduce, comm, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 10, -1);
        pk_region_end(&reduce);
    }
    stop_and_count();
    assert_int_equal(stats_of(&reduce)->count, 100);
    assert_int_equal(the_stats.untimed, 0);
}

static int leave_session(void **state)
{
    stop_session(state);
    return leave_folder(state);
}

static bool report_says(const char *path, const char *wanted)
{
    static char text[65536];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return strstr(text, wanted);
}

/* Calls in a session of its own; how many. */
static uint64_t call_until_thinned(bool by_hand, const char *report, int rounds)
{
    pk_counts c = {.size = sizeof c};
    uint64_t begun = 0;
    assert_int_equal(
        pk_start(pk_options(.backends = "none", .overhead_max = 0.001, .report_path = report,
                            .tuning = kit_tuning("clock=%s", the_clock))),
        PK_OK);
    if (by_hand)
        kit_end_collector();
    for (int round = 0; round < rounds && c.untimed < 1000; round++, begun += 1000) {
        for (int i = 0; i < 1000; i++)
            call(&leaf);
        if (by_hand)
            kit_round();
        pk_get_counts(&c);
    }
    return begun;
}

/* With a sanitizer's checks that may be so: there is nothing to save. */
static bool counting_costs_more(void)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    return pki_the_session.toll.counted_ns >= pki_the_session.toll.region_ns / 2;
#else
    return false;
#endif
}

/* The bound is far below what a loop of nothing but regions takes, so that it comes to this however
 * busy the machine is. But in an emulator a session may find, as it starts, that to count a call
 * costs as much as its time: then there is nothing to save, and the next one measures anew. */
static void expect_thinned(bool by_hand)
{
    const char *path = "report.txt";
    const int rounds = is_slow() || is_instrumented() ? 1000 : 100000;
    uint64_t begun = call_until_thinned(by_hand, path, rounds);
    pk_counts c = stop_and_count();
    for (int again = 0; is_slow() && c.untimed < 1000 && again < 30; again++) {
        begun = call_until_thinned(by_hand, path, rounds);
        c = stop_and_count();
    }
    if (c.untimed < 1000 && counting_costs_more())
        skip();
    assert_true(c.untimed >= 1000);
    assert_int_equal(c.begun, begun);
    assert_int_equal(count_of(&leaf), begun);
    assert_true(report_says(path, " calls timed: total +- "));
    assert_true(report_says(path, "overhead_max 0.1"));
    assert_true(pki_load(&pki_thin[pki_region_id(&leaf)]) == 0);
}

static void a_session_thins_by_itself(void **state)
{
    (void)state;
    expect_thinned(false);
}

/* However the rounds fall. */
static void so_does_one_with_a_round_every_thousand_calls(void **state)
{
    (void)state;
    expect_thinned(true);
}

static void refuse(const pk_options *options, const char *why)
{
    static pki_config config;
    assert_int_equal(pki_config_read(&config, options), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), why));
}

static void shares_are_between_0_and_a_half(void **state)
{
    static pki_config config;
    (void)state;
    assert_int_equal(pki_config_read(&config, NULL), PK_OK);
    assert_true(config.overhead_max == 0);
    assert_int_equal(pki_config_read(&config, pk_options(.overhead_max = 0.25)), PK_OK);
    assert_true(config.overhead_max == 0.25);
    setenv("PK_OVERHEAD_MAX", "0.125", 1);
    assert_int_equal(pki_config_read(&config, NULL), PK_OK);
    assert_true(config.overhead_max == 0.125);
    refuse(pk_options(.overhead_max = 0.6), "0.5");
    refuse(pk_options(.overhead_max = -0.01), "0.5");
    refuse(pk_options(.overhead_max = NAN), "0.5");
    setenv("PK_OVERHEAD_MAX", "1%", 1);
    refuse(NULL, "no number");
    setenv("PK_OVERHEAD_MAX", "1", 1);
    refuse(NULL, "0.5");
    unsetenv("PK_OVERHEAD_MAX");
}

#define IN_A_SESSION(test) cmocka_unit_test_setup_teardown(test, start_thin, stop_thin)

static const struct CMUnitTest thinned_tests[] = {
    IN_A_SESSION(each_call_is_counted),
    IN_A_SESSION(so_are_those_of_another_pk_region_of_that_name),
    IN_A_SESSION(and_those_that_come_before_no_timed_one),
    IN_A_SESSION(self_times_add_up),
    IN_A_SESSION(bytes_are_exact),
    IN_A_SESSION(an_end_closes_what_is_left_open_inside),
    IN_A_SESSION(one_region_after_the_other),
    IN_A_SESSION(regions_nest_in_themselves),
    cmocka_unit_test(a_chain_of_any_length),
    IN_A_SESSION(all_times_come_back),
    IN_A_SESSION(operations_are_never_left_out),
    cmocka_unit_test(shares_are_between_0_and_a_half),
    cmocka_unit_test_setup_teardown(a_session_thins_by_itself, enter_folder, leave_session),
    cmocka_unit_test_setup_teardown(so_does_one_with_a_round_every_thousand_calls, enter_folder,
                                    leave_session),
};

/* ---- which regions are thinned, and how far, from calls and costs that are made up ---- */

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

static void begin_with(double bound, bool traced)
{
    pki_thinning_init(&thinning, bound, traced, costs);
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++)
        regions[i] = (pki_thin_region){.id = (uint32_t)i};
}

static void begin(bool traced)
{
    begin_with(BOUND, traced);
}

/* What really happens in a stretch: calls are timed as the region's word says. Returns perfkit's
 * share. */
static double noisy_stretch(const double *calls, size_t count, double noise, bool *changed)
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
    beside *= noise;
    const pki_thin_input input = {.process = LOOK, .beside = beside};
    *changed = pki_thinning_adjust(&thinning, &input, regions, count);
    return (owner + beside) / LOOK;
}

static double stretch(const double *calls, size_t count, bool *changed)
{
    return noisy_stretch(calls, count, 1, changed);
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
    assert_true(pki_thin_skips_calls(regions[0].thin));
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

#define A_MILLION 100000.0 /* a second, in one look */

/* Whatever came before, what may be taken is used: of each ten looks as much. */
static void expect_used(double bound, const double *calls, size_t count)
{
    bool changed;
    for (int window = 0; window < 20; window++) {
        double taken = 0;
        for (int i = 0; i < 10; i++)
            taken += stretch(calls, count, &changed);
        assert_true(taken / 10 >= 0.8 * bound);
        assert_true(taken / 10 <= bound);
    }
}

static void what_may_be_taken_is_used(void **state)
{
    (void)state;
    for (double million = 0.3; million < 3; million *= 1.1) {
        const double calls[] = {million * A_MILLION};
        begin_with(0.01, false);
        settle(calls, 1, 100);
        expect_used(0.01, calls, 1);
    }
}

static void so_it_is_with_two_regions_of_different_rate(void **state)
{
    const double calls[] = {A_MILLION, A_MILLION / 20};
    (void)state;
    for (int traced = 0; traced < 2; traced++) {
        begin_with(0.01, traced);
        settle(calls, 2, 100);
        expect_used(0.01, calls, 2);
        assert_true(regions[1].thin < regions[0].thin);
    }
}

static void a_load_that_doubles_is_within_the_bound_at_the_next_look(void **state)
{
    const double calls[] = {A_MILLION}, twice[] = {2 * A_MILLION};
    bool changed;
    (void)state;
    begin_with(0.01, false);
    settle(calls, 1, 100);
    assert_true(stretch(twice, 1, &changed) > 0.01);
    for (int i = 0; i < 50; i++)
        assert_true(stretch(twice, 1, &changed) <= 0.01);
    expect_used(0.01, twice, 1);
    settle(calls, 1, 20);
    expect_used(0.01, calls, 1);
}

/* What perfkit's thread takes comes in lumps: a third more or less from look to look. */
static void lumps_make_it_neither_flap_nor_shrink(void **state)
{
    const double calls[] = {A_MILLION, A_MILLION / 20};
    unsigned changes = 0;
    double taken = 0;
    uint32_t x = 1;
    (void)state;
    begin_with(0.01, false);
    settle(calls, 2, 50);
    for (int i = 0; i < 1000; i++) {
        bool changed;
        x = x * 1664525u + 1013904223u;
        taken += noisy_stretch(calls, 2, 0.67 + 0.66 * (x >> 8) / (1 << 24), &changed);
        changes += changed;
    }
    assert_true(taken / 1000 >= 0.008 && taken / 1000 <= 0.01);
    assert_in_range(changes, 0, 60);
}

/* Where a timed call takes longer than what is left out saves, no step is lost on it. */
static void steps_that_save_nothing_are_left_out(void **state)
{
    const double calls[] = {A_MILLION};
    bool changed;
    (void)state;
    begin_with(0.02, false);
    thinning.costs.timed = 5 * costs.pair;
    stretch(calls, 1, &changed);
    assert_true(changed && pki_thin_skips_calls(regions[0].thin));
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

/* In the cost that is told. A call without its event is timed as any other. */
static void untimed_calls_share_what_timing_others_takes(void **state)
{
    const pki_thin_input input = {.process = LOOK, .beside = 0};
    (void)state;
    begin(true);
    assert_true(pki_thinning_counted_ns(&thinning) == costs.counted);
    regions[0] = (pki_thin_region){.id = 1, .thin = PKI_THIN_UNTRACED, .timed = 1000};
    pki_thinning_adjust(&thinning, &input, regions, 1);
    assert_true(pki_thinning_counted_ns(&thinning) == costs.counted);
    regions[0] = (pki_thin_region){.id = 1, .thin = 4, .timed = 500, .untimed = 500};
    pki_thinning_adjust(&thinning, &input, regions, 1);
    double told = costs.pair * 500 + pki_thinning_counted_ns(&thinning) * 500;
    assert_true(fabs(told - (costs.timed * 500 + costs.counted * 500)) < 1e-6);
}

static const struct CMUnitTest thinning_tests[] = {
    cmocka_unit_test(untimed_calls_share_what_timing_others_takes),
    cmocka_unit_test(within_the_bound_nothing_is_thinned),
    cmocka_unit_test(the_bound_holds_after_a_few_looks),
    cmocka_unit_test(events_go_before_times),
    cmocka_unit_test(without_a_trace_times_go_at_once),
    cmocka_unit_test(what_was_taken_too_much_is_saved_again),
    cmocka_unit_test(with_room_times_come_back_and_stay),
    cmocka_unit_test(it_does_not_flap),
    cmocka_unit_test(what_may_be_taken_is_used),
    cmocka_unit_test(so_it_is_with_two_regions_of_different_rate),
    cmocka_unit_test(a_load_that_doubles_is_within_the_bound_at_the_next_look),
    cmocka_unit_test(lumps_make_it_neither_flap_nor_shrink),
    cmocka_unit_test(steps_that_save_nothing_are_left_out),
    cmocka_unit_test(never_means_never),
    cmocka_unit_test(counting_alone_can_be_too_much),
    cmocka_unit_test(what_may_be_hidden_is_not_said_to_be_too_much),
    cmocka_unit_test(where_nothing_helps_the_few_keep_their_times),
    cmocka_unit_test(what_records_cost_is_learnt),
};

/* ---- the errors that are stated of thinned regions are the errors ---- */

/* Calls of many kinds, of which some are timed as core/thin.h has it, and how often the figures of
 * all lie where they are said to. */

static uint64_t chance = 88172645463325252u;

static double uniform(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (double)(chance >> 11) / 9007199254740992.0;
}

enum { CALLS = 30000 };
#define TRIALS (is_slow() ? 50 : 200)
static uint64_t calls[CALLS];
static pk_stats sample, all;

static void add(pk_stats *s, uint64_t ns, uint64_t weight)
{
    s->count += weight;
    s->sum += ns * weight;
    s->min = PKI_MIN(s->min, ns);
    s->max = PKI_MAX(s->max, ns);
    s->spare[0] += ns * ns * weight;
    s->spare[2] += weight * (weight - 1);
    s->untimed += weight - 1;
    s->buckets[pki_bucket(ns)] += weight;
}

static void draw(unsigned n)
{
    pki_stats_begin(&sample);
    pki_stats_begin(&all);
    for (int i = 0, last = -1, next = 0; i < CALLS; i++) {
        add(&all, calls[i], 1);
        if (i != next && i != CALLS - 1)
            continue;
        add(&sample, calls[i], (uint64_t)(i - last));
        last = i;
        next = i + 1 + (int)(uniform() * (2 * n - 1));
    }
    pki_stats_finish(&sample, 1);
    pki_stats_finish(&all, 1);
}

typedef struct hits {
    unsigned sum, p50, p99;
} hits;

static bool lies_in(double value, const double range[2])
{
    return value >= range[0] && value <= range[1];
}

static hits try(unsigned n, uint64_t (*duration)(int))
{
    hits h = {0, 0, 0};
    for (int t = 0; t < TRIALS; t++) {
        for (int i = 0; i < CALLS; i++)
            calls[i] = duration(i);
        draw(n);
        pki_region_thinned said = pki_region_thinned_of(&sample, 0, 0, 0);
        assert_int_equal(sample.count, CALLS);
        h.sum += fabs((double)sample.sum - (double)all.sum) <= 1.96 * said.sum_error;
        h.p50 += lies_in((double)pk_stats_quantile(&all, 0.5), said.p50);
        h.p99 += lies_in((double)pk_stats_quantile(&all, 0.99), said.p99);
    }
    return h;
}

static uint64_t with_a_tail(int i)
{
    double u = uniform();
    (void)i;
    return (uint64_t)(200 + 100 / (u + 0.01));
}

/* A loop's rhythm, which a fixed distance of 16 would never see. */
static uint64_t in_turns(int i)
{
    return (uint64_t)(i % 16 == 0 ? 4000 : 100 + 10 * (i % 16)) + (uint64_t)(uniform() * 20);
}

static void errors_are_what_is_said(void **state)
{
    static uint64_t (*const durations[])(int) = {with_a_tail, in_turns};
    static const unsigned distances[] = {8, 16, 50};
    (void)state;
    for (size_t d = 0; d < 2; d++)
        for (size_t n = 0; n < 3; n++) {
            hits h = try(distances[n], durations[d]);
            assert_true(h.sum >= TRIALS * 0.88);
            assert_true(h.p50 >= TRIALS * 0.88);
            assert_true(h.p99 >= TRIALS * 0.88);
        }
}

/* What a clock of steps makes of a duration that begins anywhere in one. */
static uint64_t in_steps(double ns, double step)
{
    double start = uniform() * step;
    return (uint64_t)(floor((start + ns) / step) * step);
}

static double usual_call(int i)
{
    return 18 + 6 * uniform() + (i % 40 == 0 ? 40 : 0);
}

static int hits_of(const pki_region_thinned *said)
{
    return lies_in((double)pk_stats_quantile(&all, 0.5), said->p50) +
           lies_in((double)pk_stats_quantile(&all, 0.9), said->p90) +
           lies_in((double)pk_stats_quantile(&all, 0.99), said->p99);
}

/* Each timed call takes some nanoseconds more where few of them are timed, and a step of the clock
 * may lie between. */
static void the_clock_s_step_is_in_the_range(void **state)
{
    const double step = 10, more = 4;
    int with = 0, without = 0;
    (void)state;
    for (int t = 0; t < TRIALS; t++) {
        pki_stats_begin(&all);
        pki_stats_begin(&sample);
        for (int i = 0; i < CALLS; i++)
            add(&all, in_steps(usual_call(i), step), 1);
        for (int i = 0; i < CALLS / 20; i++)
            add(&sample, in_steps(usual_call(i) + more, step), 20);
        pki_stats_finish(&sample, 1);
        pki_stats_finish(&all, 1);
        const pki_region_thinned coarse = pki_region_thinned_of(&sample, 0, step, 0),
                                 fine = pki_region_thinned_of(&sample, 0, 1, 0);
        with += hits_of(&coarse);
        without += hits_of(&fine);
    }
    assert_true(with >= 3 * TRIALS * 0.95);
    assert_true(without < with);
}

/* What timing takes may be in a timed call, or have hidden behind it. */
static void what_timing_takes_is_in_the_range(void **state)
{
    (void)state;
    pki_stats_begin(&sample);
    for (int i = 0; i < 1000; i++)
        add(&sample, 100, 20);
    pki_stats_finish(&sample, 1);
    const pki_region_thinned t = pki_region_thinned_of(&sample, 0, 1, 20);
    assert_true(t.call_error >= 20 && t.call_error <= 60);
    assert_true(t.p50[0] <= 100 - t.call_error && t.p50[1] >= 100 + t.call_error);
    assert_true(pki_thinned_sum_range(&t, sample.count) >= 20000 * t.call_error);
}

static const struct CMUnitTest thinned_error_tests[] = {
    cmocka_unit_test(errors_are_what_is_said), cmocka_unit_test(the_clock_s_step_is_in_the_range),
    cmocka_unit_test(what_timing_takes_is_in_the_range)};

int main(void)
{
    int failed = both_clocks(thinned_tests);
    failed += cmocka_run_group_tests(thinning_tests, NULL, NULL);
    failed += is_instrumented() ? 0 : cmocka_run_group_tests(thinned_error_tests, NULL, NULL);
    return failed;
}
