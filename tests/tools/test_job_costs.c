/* Beside time, over the ranks: events of calls and memory of devices, by hand; before and after;
 * and through the file of a rank. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "job/against/against.h"
#include "job/figures/counted.h"
#include "job/figures/spent.h"
#include "job_forge.h"
#include "measure/summary.h"
#include "out/report/report.h"

#define RANKS 4

static void none(pki_events_row *row)
{
    for (int i = 0; i < PKI_EVENT_MEANS; i++)
        row->value[i] = row->error[i] = -1;
    for (int i = 0; i < PKI_EVENT_RATIOS; i++)
        row->ratio[i] = row->ratio_error[i] = -1;
}

/* A rank's calls of that region: instructions and cycles of one, and the error of their quotient.
 */
static void count(pki_summary *s, const char *region, uint64_t calls, double instructions,
                  double cycles, double error)
{
    pki_events_row *row = &s->events.rows[s->events.row_count++];
    none(row);
    row->region = strdup(region);
    row->calls = calls;
    row->sampled = calls / 10;
    row->time = (uint64_t)(cycles * (double)calls);
    row->value[0] = instructions;
    row->value[1] = cycles;
    row->error[0] = 0;
    row->ratio[PKI_EVENT_IPC] = instructions / cycles;
    row->ratio_error[PKI_EVENT_IPC] = error;
    row->value[PKI_EVENT_SLOTS] = 4 * cycles;
    row->ratio[PKI_EVENT_RETIRING] = instructions / (4 * cycles);
    row->ratio_error[PKI_EVENT_RETIRING] = error < 0 ? -1 : error / 4;
}

static void allocate(pki_summary *s, uint64_t peak, uint64_t held)
{
    pki_gpu_memory_summary *m = &s->gpu_memory;
    m->asked = 1;
    m->why_not = strdup("");
    m->place_count = 3;
    m->places = calloc(3, sizeof *m->places);
    const char *const names[] = {"gpu0", "gpu1", "host"};
    for (size_t i = 0; i < 3; i++)
        m->places[i] = (pki_gpu_memory_place){
            .place = strdup(names[i]), .peak = peak / 2, .most_held = held / 2};
}

static void add_costs(pki_summary *s, unsigned rank, double faster)
{
    s->events.asked = 1;
    s->events.why_not_hardware = strdup("");
    s->events.why_not_software = strdup("");
    s->events.why_threads = strdup("");
    s->events.rows = calloc(4, sizeof *s->events.rows);
    count(s, "work", 100u * (rank + 1), 3000 * faster, 1000, 0.03);
    if (rank == 1)
        count(s, "alone", 10, 50, 100, -1);
    allocate(s, 1000 + 1000 * rank, 4000);
}

static void make_ranks(pki_summary *ranks, double faster)
{
    static const forge f = {.seed = 7, .ranks = RANKS, .steps = 20, .quiet = true};
    bool culprits[RANKS];
    forge_make(&f, ranks, culprits);
    for (unsigned i = 0; i < RANKS; i++)
        add_costs(&ranks[i], i, faster);
}

static job make(double faster)
{
    job j;
    complaint why = {""};
    job_steps steps = {0};
    pki_summary ranks[RANKS];
    make_ranks(ranks, faster);
    if (!job_of(&j, ranks, RANKS, &steps, &why))
        fail_msg("%s", why.text);
    return j;
}

static void expect_near(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-9 * fabs(wanted)))
        fail_msg("%.9g, not %.9g", got, wanted);
}

/* Of 100, 200, 300, 400 calls: weights of 0.1, 0.2, 0.3, 0.4, whose root of squares is 0.5477. */
static void events_are_those_of_all_calls(void **state)
{
    (void)state;
    size_t regions;
    job j = make(1);
    job_counted *all = job_counted_of(&j, &regions);
    assert_int_equal(regions, 2);
    assert_string_equal(all[0].region, "work");
    assert_int_equal(all[0].calls, 1000);
    assert_int_equal(all[0].sampled, 100);
    expect_near(all[0].value[PKI_FIGURE_IPC], 3);
    expect_near(all[0].error[PKI_FIGURE_IPC], 0.03 * sqrt(0.3));
    expect_near(all[0].value[PKI_FIGURE_INSTRUCTIONS], 3000);
    assert_true(all[0].value[PKI_FIGURE_CACHE] < 0 && all[0].value[PKI_FIGURE_PROCESSOR] < 0);
    expect_near(all[0].value[PKI_FIGURE_RETIRING], 0.75);
    expect_near(all[0].error[PKI_FIGURE_RETIRING], 0.0075 * sqrt(0.3));
    assert_true(all[0].value[PKI_FIGURE_BACKEND_BOUND] < 0);
    assert_int_equal(all[0].by[PKI_FIGURE_IPC].have, RANKS);
    expect_near(all[1].value[PKI_FIGURE_IPC], 0.5);
    assert_true(all[1].error[PKI_FIGURE_IPC] < 0); /* nobody knows */
    assert_int_equal(all[1].by[PKI_FIGURE_IPC].max_rank, 1);
    free(all);
    job_finish(&j);
}

static char *printed(void (*print)(const job *, FILE *), const job *j)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    print(j, to);
    fclose(to);
    return text;
}

static void says(char *text, const char *what)
{
    if (!strstr(text, what))
        fail_msg("no \"%s\" in\n%s", what, text);
}

static void in_words(void **state)
{
    (void)state;
    job j = make(1);
    char *text = printed(job_counted_text, &j);
    says(text, "work                IPC");
    says(text, "3   0.55 %        3        3     0");
    says(text, "retiring         75.0 %   0.41 %   75.0 %   75.0 %     0");
    says(text, "alone               IPC");
    says(text, "0.500        ?    0.500    0.500     1");
    free(text);
    text = printed(job_costs_text, &j);
    says(text, "device memory at most");
    says(text, "10.0 KB    1.00 KB    2.50 KB    4.00 KB     3      60.0 %");
    says(text, "... taken, with pools");
    free(text);
    job_finish(&j);
}

static const against_event *event_of(const against *a, const char *region, pki_event_figure figure)
{
    for (size_t i = 0; i < a->events.count; i++)
        if (strcmp(a->events.rows[i].region, region) == 0 && a->events.rows[i].figure == figure)
            return &a->events.rows[i];
    return NULL;
}

/* 3 +- 0.0164 against 3.03 and 3.3: beyond the root of both squares, 0.0232, or not. */
static void before_and_after(void **state)
{
    (void)state;
    static const double faster[] = {1.005, 1.1};
    for (int i = 0; i < 2; i++) {
        job before = make(1), now = make(faster[i]);
        against a = job_against(&now, &before, 0.03);
        const against_event *work = event_of(&a, "work", PKI_FIGURE_IPC);
        assert_true(work && work->before < work->now && work->differs == (i == 1));
        assert_false(event_of(&a, "alone", PKI_FIGURE_IPC)->differs);
        assert_false(a.slower);
        char *text = NULL;
        size_t size;
        FILE *to = open_memstream(&text, &size);
        against_text(&a, "before", to);
        fclose(to);
        says(text, i ? "+10.0 %" : "        -");
        free(text);
        against_finish(&a);
        job_finish(&now);
        job_finish(&before);
    }
}

static void keep(void *user, size_t part, pki_summary *rank)
{
    assert_int_equal(part, 0);
    *(pki_summary *)user = *rank;
}

static void a_ranks_file_has_them(void **state)
{
    (void)state;
    pki_summary ranks[RANKS], back;
    make_ranks(ranks, 1);
    char path[] = "/tmp/pk-job-costs-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    assert_int_equal(pki_report_rank(&ranks[2], file), 0);
    assert_int_equal(fclose(file), 0);
    complaint why = {""};
    if (!job_load(path, keep, &back, &why))
        fail_msg("%s", why.text);
    unlink(path);
    assert_int_equal(back.events.row_count, 1);
    expect_near(back.events.rows[0].ratio[PKI_EVENT_IPC], 3);
    job_spent spent = job_spent_of(&back);
    assert_true(spent.of[JOB_ON_DEVICES] == 3000 && spent.of[JOB_TAKEN] == 4000);
    job_spent_finish(&spent);
    pki_summary_finish(&back);
    for (size_t i = 0; i < RANKS; i++)
        pki_summary_finish(&ranks[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_those_of_all_calls),
        cmocka_unit_test(in_words),
        cmocka_unit_test(before_and_after),
        cmocka_unit_test(a_ranks_file_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
