/* Energy: counters that wrap, are reset, are missing or unreadable; shared out over steps by kind,
 * with what is too short refused. The counters are files of the test's. */
#include "folder.h"

#include <math.h>
#include <time.h>

#include <pk/pk.h>

#include "measure/costs/sums.h"
#include "measure/summary.h"
#include "measure/verdict/verdict.h"
#include "session/costs/energy.h"

#define MS 1000000u
#define S 1000000000u

static pki_energy_account a;
static pki_energy_summary sum;

static const pki_energy_row *row_of(const char *counter, const char *kind)
{
    for (size_t i = 0; i < sum.row_count; i++)
        if (strcmp(sum.rows[i].counter, counter) == 0 && strcmp(sum.rows[i].step_kind, kind) == 0)
            return &sum.rows[i];
    fail_msg("no row of %s, %s", counter, kind);
    return NULL;
}

static void fill(void)
{
    pki_energy_sums sums = {0};
    memset(&sum, 0, sizeof sum);
    assert_true(pki_energy_sum_up(&a, "", &sums) && pki_energy_fill(&sums, &sum));
    pki_energy_sums_finish(&sums);
}

static void give_back(void)
{
    for (size_t i = 0; i < sum.row_count; i++) {
        free(sum.rows[i].counter);
        free(sum.rows[i].step_kind);
    }
    free(sum.rows);
    free(sum.held_by);
    free(sum.why_not);
}

static void expect_near(double got, double wanted)
{
    if (fabs(got - wanted) > 1e-6 * fabs(wanted) + 1e-9)
        fail_msg("%.9g, not %.9g", got, wanted);
}

static void wraps_and_resets(void **state)
{
    (void)state;
    pki_energy_begin(&a);
    int wraps = pki_energy_counter_of(&a, "wraps", 100),
        never = pki_energy_counter_of(&a, "never", 0);
    assert_int_equal(pki_energy_counter_of(&a, "wraps", 100), wraps);
    const double readings[] = {60, 90, 20,
                               45, 5,  15}; /* 45 to 5: no wrap, it was in the lower half */
    for (unsigned i = 0; i < 6; i++) {
        pki_energy_read(&a, wraps, readings[i], i * (uint64_t)S);
        pki_energy_read(&a, never, i < 3 ? 10.0 * i : 1.0 * i, i * (uint64_t)S);
        pki_energy_round(&a, i * (uint64_t)S);
    }
    pki_energy_read(&a, -1, 1, S);
    fill();
    expect_near(a.counters[wraps].joules, 30 + 30 + 25 + 10);
    assert_int_equal(a.counters[wraps].resets, 1);
    expect_near(a.counters[never].joules, 10 + 10 + 1 + 1);
    assert_int_equal(a.counters[never].resets, 1);
    assert_true(row_of("wraps", "(run)")->refused); /* 5 periods long */
    assert_true(row_of("wraps", "(run)")->joules == 0);
    give_back();
}

/* Training at 100 W in stretches of 10 s, evaluation at 50 W: of 2 s, and one step alone. */
static void kinds_of_steps(void **state)
{
    double joules = 0;
    uint64_t now = 0;
    (void)state;
    pki_energy_begin(&a);
    int c = pki_energy_counter_of(&a, "gpu", 0);
    pki_energy_read(&a, c, 0, 1);
    pki_energy_round(&a, 1);
    for (unsigned i = 0; i < 1200; i++) {
        bool evaluates = i % 120 >= 100, alone = i == 50;
        joules += evaluates ? 5 : 10;
        pki_energy_step(&a,
                        evaluates ? "evaluation"
                        : alone   ? "alone"
                                  : NULL,
                        now, now + 100 * MS, 8);
        now += 100 * MS;
        pki_energy_read(&a, c, joules, now);
        pki_energy_round(&a, now);
    }
    fill();
    const pki_energy_row *steps = row_of("gpu", ""), *eval = row_of("gpu", "evaluation");
    expect_near(steps->per_step, 10);
    expect_near(steps->per_item, 10.0 / 8);
    expect_near(steps->watts, 100);
    expect_near(eval->per_step, 5);
    expect_near(eval->joules, 200 * 5);
    expect_near(row_of("gpu", "(run)")->joules, joules);
    expect_near(row_of("gpu", "(run)")->error, 2 * 0.1 * 50);
    expect_near(eval->error, 10 * 2 * 0.1 * 50); /* ten stretches */
    assert_true(row_of("gpu", "alone")->refused && row_of("gpu", "alone")->per_step == 0);
    give_back();
}

/* A program may call its steps whatever it likes: the run's row stays its own. */
static void kinds_called_as_the_run(void **state)
{
    static const char *const kinds[] = {"(run)", "(run)(run)", "(runner)"};
    (void)state;
    pki_energy_begin(&a);
    int c = pki_energy_counter_of(&a, "gpu", 0);
    pki_energy_read(&a, c, 0, 1);
    for (uint64_t i = 0; i < 90; i++) {
        pki_energy_step(&a, kinds[i / 30], i * 100 * MS, (i + 1) * 100 * MS, 1);
        pki_energy_read(&a, c, (double)(i + 1), (i + 1) * 100 * MS);
        pki_energy_round(&a, (i + 1) * 100 * MS);
    }
    fill();
    assert_int_equal(sum.row_count, 4);
    assert_int_equal(row_of("gpu", "(run)")->steps, 90);
    assert_int_equal(row_of("gpu", "(run)(run)")->steps, 30);
    assert_int_equal(row_of("gpu", "(run)(run)(run)")->steps, 30);
    assert_int_equal(row_of("gpu", "(runner)")->steps, 30);
    give_back();
}

/* Steps of 100 ms, and of 120 ms while GPU 1 is held down. */
static void clocks_held_down(void **state)
{
    pki_summary s;
    (void)state;
    pki_summary_init(&s);
    pki_energy_begin(&a);
    for (unsigned i = 0; i < 100; i++) {
        uint64_t at = i * 200 * (uint64_t)MS;
        if (i == 60)
            pki_energy_held(&a, 1, "the power cap");
        pki_energy_step(&a, NULL, at, at + (i < 60 ? 100 : 120) * MS, 1);
    }
    pki_energy_step(&a, "evaluation", 0, S, 1);
    pki_energy_held(&a, 1, NULL);
    pki_energy_sums sums = {0};
    assert_true(pki_energy_sum_up(&a, "", &sums) && pki_energy_fill(&sums, &s.energy));
    pki_energy_sums_finish(&sums);
    assert_int_equal(s.energy.held_steps, 40);
    assert_int_equal(s.energy.free_steps, 60);
    assert_true(pki_verdicts_fill(&s));
    const pki_verdict *v = NULL;
    for (size_t i = 0; i < s.verdict_count; i++)
        v = strcmp(s.verdicts[i].name, "gpu-throttled") == 0 ? &s.verdicts[i] : v;
    assert_non_null(v);
    expect_near(v->value, 1.2);
    assert_non_null(strstr(v->text, "by the power cap in 40 of 100 steps"));
    s.energy.held_steps = 9; /* too few */
    assert_true(pki_verdicts_fill(&s));
    for (size_t i = 0; i < s.verdict_count; i++)
        assert_string_not_equal(s.verdicts[i].name, "gpu-throttled");
    pki_summary_finish(&s);
}

static pki_energy_sums so_far(void)
{
    pki_energy_sums sums = {0};
    assert_true(pki_energy_sum_up(&a, "why", &sums));
    return sums;
}

static void expect_same_rows(const pki_energy_summary *b)
{
    assert_int_equal(sum.row_count, b->row_count);
    for (size_t i = 0; i < sum.row_count; i++) {
        pki_energy_row x = sum.rows[i], y = b->rows[i];
        assert_string_equal(x.counter, y.counter);
        assert_string_equal(x.step_kind, y.step_kind);
        x.counter = x.step_kind = y.counter = y.step_kind = NULL;
        assert_memory_equal(&x, &y, sizeof x);
    }
}

/* A step of 100 ms; the third counter is found late, as a GPU's is. */
static void make_step(uint64_t i)
{
    uint64_t now = (i + 1) * 100 * MS;
    double spent = 7.123456 * (double)i + (double)(i % 7) / 3;
    pki_energy_held(&a, 0, i % 5 == 3 ? "heat" : NULL);
    pki_energy_step(&a, i < 300 || i % 40 > 30 ? "evaluation" : NULL, now - 100 * MS, now, i % 9);
    pki_energy_read(&a, pki_energy_counter_of(&a, "package-0", 1000), fmod(spent, 1000), now);
    pki_energy_read(&a, pki_energy_counter_of(&a, "dram", 0), i % 1000 == 999 ? 0 : spent / 9, now);
    if (i > 700)
        pki_energy_read(&a, pki_energy_counter_of(&a, "gpu0", 0), 3 * spent, now);
    pki_energy_round(&a, now);
}

/* In parts as in one piece, to the last digit: what windows are for. */
static void parts_add_up(void **state)
{
    pki_energy_sums before = {0}, all = {0};
    (void)state;
    pki_energy_begin(&a);
    for (uint64_t i = 0; i < 2500; i++) {
        make_step(i);
        if (i % 97 != 96 && i != 2499)
            continue;
        pki_energy_sums now = so_far(), part;
        assert_true(pki_energy_more(&now, &before, &part) && pki_energy_add(&all, &part));
        pki_energy_sums_finish(&before);
        pki_energy_sums_finish(&part);
        before = now;
    }
    pki_energy_summary added = {0};
    assert_true(pki_energy_fill(&all, &added));
    fill();
    assert_int_equal(sum.row_count, 3 * 3);
    assert_true(row_of("gpu0", "")->joules > 0 && row_of("dram", "(run)")->resets == 2);
    expect_same_rows(&added);
    assert_int_equal(added.held_steps, sum.held_steps);
    assert_int_equal(added.free_time, sum.free_time);
    assert_string_equal(added.held_by, "heat");
    give_back();
    sum = added;
    give_back();
    pki_energy_sums_finish(&before);
    pki_energy_sums_finish(&all);
}

static void more_than_there_is_room_for(void **state)
{
    char name[16];
    (void)state;
    pki_energy_begin(&a);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "c%d", i);
        int c = pki_energy_counter_of(&a, name, 0);
        assert_int_equal(c, i < PKI_ENERGY_COUNTERS ? i : -1);
        pki_energy_step(&a, name, 0, MS, 1);
    }
    pki_energy_round(&a, S);
    fill();
    assert_true(sum.row_count <= PKI_ENERGY_COUNTERS * (PKI_ENERGY_KINDS + 1));
    give_back();
}

/* ---- sessions, on files ---- */

static void zone(const char *folder, const char *name, const char *joules)
{
    char path[128];
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/name", folder);
    write_file(path, name);
    snprintf(path, sizeof path, "%s/max_energy_range_uj", folder);
    write_file(path, "262143328850\n");
    snprintf(path, sizeof path, "%s/energy_uj", folder);
    if (joules)
        write_file(path, joules);
}

static char *report_of(const char *path)
{
    size_t n;
    pki_energy_folder = ".";
    assert_int_equal(pk_start(pk_options(.costs = "energy", .report_path = path, .backends = "none",
                                         .arena_path = "none")),
                     PK_OK);
    pk_step(4);
    zone("intel-rapl:0", "package-0\n", "7000000\n");
    assert_int_equal(pk_stop(), PK_OK);
    pki_energy_folder = "/sys/class/powercap";
    return read_file(path, &n);
}

static void counters_of_a_machine(void **state)
{
    (void)state;
    zone("intel-rapl:0", "package-0\n", "5000000\n");
    zone("intel-rapl:0:0", "dram\n", "100\n");
    zone("intel-rapl-mmio:0", "package-0\n", "5000000\n");
    zone("intel-rapl:1", "package-1\n", NULL); /* unreadable, as for all but root */
    char *report = report_of("report.json");
    assert_non_null(strstr(report, "\"energy\":{"));
    assert_non_null(strstr(report, "\"counter\":\"package-0\""));
    assert_non_null(strstr(report, "\"counter\":\"package-0 dram\""));
    assert_non_null(strstr(report, "1 of 3 counters of energy cannot be read"));
    free(report);
    report = report_of("report.txt");
    assert_non_null(strstr(report, "ENERGY\n"));
    free(report);
}

static void a_machine_without_counters(void **state)
{
    size_t n;
    (void)state;
    pki_energy_folder = "nothing";
    assert_int_equal(
        pk_start(pk_options(.costs = "energy", .report_path = "r.txt", .backends = "none")), PK_OK);
    pk_step(1);
    assert_int_equal(pk_stop(), PK_OK);
    pki_energy_folder = "/sys/class/powercap";
    char *report = read_file("r.txt", &n);
    assert_non_null(strstr(report, "this machine has no counters of energy"));
    assert_null(strstr(report, "a step  an item"));
    free(report);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wraps_and_resets),        cmocka_unit_test(kinds_of_steps),
        cmocka_unit_test(kinds_called_as_the_run), cmocka_unit_test(parts_add_up),
        cmocka_unit_test(clocks_held_down),        cmocka_unit_test(more_than_there_is_room_for),
        IN_FOLDER(counters_of_a_machine),          IN_FOLDER(a_machine_without_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
