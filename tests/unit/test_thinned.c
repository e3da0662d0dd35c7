/* Calls that are counted and not timed: what becomes of their counts, of the times around them, of
 * bytes, and of ends that do not match.
 */
#include "folder.h"
#include "session.h"
#include "tick.h"
#include "valgrind.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "core/registry.h"
#include "core/thin.h"
#include "measure/fold/fold.h"
#include "measure/thinned.h"
#include "session/options/config.h"
#include "session/session.h"

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
        pk_comm_call(&reduce, comm, PK_OP_ALL_REDUCE, PK_TYPE_FLOAT32, 10, -1);
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
static uint64_t call_until_thinned(const char *collector, const char *report, int rounds)
{
    pk_counts c = {.size = sizeof c};
    uint64_t begun = 0;
    assert_int_equal(
        pk_start(pk_options(.clock = the_clock, .backends = "none", .collector = collector,
                            .overhead_max = 0.001, .report_path = report)),
        PK_OK);
    for (int round = 0; round < rounds && c.untimed < 1000; round++, begun += 1000) {
        for (int i = 0; i < 1000; i++)
            call(&leaf);
        if (collector)
            pk_flush();
        pk_get_counts(&c);
    }
    return begun;
}

/* The bound is far below what a loop of nothing but regions takes, so that it comes to this however
 * busy the machine is. But in an emulator a session may find, as it starts, that to count a call
 * costs as much as its time: then there is nothing to save, and the next one measures anew. */
static void expect_thinned(const char *collector)
{
    const char *path = "report.txt";
    const int rounds = is_slow() ? 1000 : 100000;
    uint64_t begun = call_until_thinned(collector, path, rounds);
    pk_counts c = stop_and_count();
    for (int again = 0; is_slow() && c.untimed < 1000 && again < 30; again++) {
        begun = call_until_thinned(collector, path, rounds);
        c = stop_and_count();
    }
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
    expect_thinned(NULL);
}

/* pk_flush does all that the collector's rounds do. */
static void so_does_one_without_a_collector(void **state)
{
    (void)state;
    expect_thinned("none");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        cmocka_unit_test_setup_teardown(so_does_one_without_a_collector, enter_folder,
                                        leave_session),
    };
    return both_clocks(tests);
}
