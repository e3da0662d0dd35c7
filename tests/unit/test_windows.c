/* What a run's figures are made of, taken apart and put together again: slots, counters, steps,
 * windows and their lines. */
#include "golden.h"

#include <math.h>

#include "measure/verdict/verdict.h"
#include "measure/window/merge.h"
#include "out/json_shape.h"
#include "out/window/write.h"
#include "stats/slot.h"

static uint64_t next_random(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* ---- differences ---- */

static void expect_same(const pki_dist *a, const pki_dist *b)
{
    assert_memory_equal(a, b, sizeof *a);
}

static void differences_of_tallies(void **state)
{
    pki_tally all = {0}, before = {0}, sum = {0};
    (void)state;
    for (int part = 0; part < 20; part++) {
        pki_tally more;
        for (int i = 0; i < 50 * part; i++)
            pki_tally_add(&all, 8e10 + (double)(next_random() % 100000) / 7, 1);
        assert_true(pki_tally_difference(&all, &before, &more));
        assert_int_equal(more.moments.count, 50 * part);
        assert_true(pki_tally_merge(&sum, &more));
        pki_tally_finish(&more);
        pki_tally_finish(&before);
        assert_true(pki_tally_merge(&before, &all));
    }
    pki_dist a = pki_tally_dist(&all), b = pki_tally_dist(&sum);
    expect_same(&a, &b);
    pki_tally_finish(&all);
    pki_tally_finish(&before);
    pki_tally_finish(&sum);
}

static void a_sealed_slot_keeps_its_extremes(void **state)
{
    static pki_slot slot;
    static pk_stats stats;
    (void)state;
    pki_slot_clear(&slot, 5);
    pki_slot_add_moments(&slot, 100);
    pki_slot_seal(&slot);
    pki_slot_add_moments(&slot, 200);
    assert_true(slot.min == 200 && slot.max == 200);
    pki_slot_seal(&slot);
    pki_stats_begin(&stats);
    pki_stats_add_slot(&stats, &slot);
    assert_true(stats.min == 100 && stats.max == 200);
}

/* ---- steps ---- */

static const char *name_of(void *user, uint32_t id)
{
    static const char *const names[] = {"load", "work", "rare"};
    (void)user;
    return id < 3 ? names[id] : NULL;
}

static void add_step(pki_steps *steps, uint64_t index, uint64_t load, uint64_t work)
{
    pki_step step = {.index = index,
                     .start = 1000 * index,
                     .duration = load + work + 1000,
                     .items = 4,
                     .broken_down = true};
    pki_steps_add_self(steps, 0, PK_DATA, load);
    pki_steps_add_self(steps, 1, PK_COMPUTE, work);
    if (index % 50 == 49)
        pki_steps_add_self(steps, 2, PK_IO, 500);
    if (index % 10 == 9) {
        pki_step between = {
            .duration = 77, .start = 1000 * index, .between = true, .broken_down = true};
        step.kind = index % 20 == 9 ? "evaluation" : NULL;
        pki_steps_add(steps, &between);
    }
    pki_steps_add(steps, &step);
}

static char *text_of(const pki_steps *steps, uint32_t warmup)
{
    pki_summary all;
    char *text = NULL;
    size_t bytes;
    pki_summary_init(&all);
    assert_true(pki_steps_fill(steps, warmup, name_of, NULL, &all));
    free(all.steps.series);
    all.steps.series = NULL;
    all.steps.series_count = 0;
    all.steps.drift = all.steps.first_third = all.steps.last_third = 0;
    FILE *memory = open_memstream(&text, &bytes);
    pki_json json = {.file = memory};
    pki_json_object(&json, NULL, &pki_steps_shape, &all.steps);
    fclose(memory);
    pki_summary_finish(&all);
    return text;
}

static void cut_and_join(pki_steps *from, pki_steps *to)
{
    pki_steps_part part;
    assert_true(pki_steps_cut(from, &part));
    assert_true(pki_steps_join(to, &part));
    pki_steps_part_finish(&part);
}

/* Whole, cut, and put together of the parts: the same text. */
static void expect_joined(uint64_t count, uint64_t length, uint32_t warmup)
{
    pki_steps *whole = pki_steps_create(), *cut = pki_steps_create(), *joined = pki_steps_create();
    pki_steps_expect_warmup(whole, warmup);
    pki_steps_expect_warmup(cut, warmup);
    pki_steps_expect_warmup(joined, warmup);
    for (uint32_t id = 0; id < 3; id++)
        pki_steps_region(joined, id, (uint32_t[]){PK_DATA, PK_COMPUTE, PK_IO}[id]);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t load = next_random() % 1000, work = 5000 + next_random() % 3000;
        add_step(whole, i, load, work);
        add_step(cut, i, load, work);
        if (i % length == length - 1)
            cut_and_join(cut, joined);
    }
    cut_and_join(cut, joined);
    char *a = text_of(whole, warmup), *b = text_of(cut, warmup), *c = text_of(joined, warmup);
    assert_string_equal(a, b);
    assert_string_equal(a, c);
    free(a), free(b), free(c);
    pki_steps_destroy(whole), pki_steps_destroy(cut), pki_steps_destroy(joined);
}

static void steps_in_parts(void **state)
{
    (void)state;
    expect_joined(0, 10, 0);
    expect_joined(1, 10, 0);
    expect_joined(100, 7, 0);
    expect_joined(256, 256, 0);
    expect_joined(3000, 100, 0);
    expect_joined(3000, 257, 0);
    expect_joined(3000, 100, 600); /* beyond what is kept whole */
    expect_joined(3000, 1, 300);
}

/* ---- a window by hand ---- */

static pki_whole_step whole_step(uint64_t index, uint64_t load, uint64_t work)
{
    pki_whole_step whole = {.step = {.index = index,
                                     .start = 10000 * index,
                                     .duration = load + work + 10,
                                     .items = 32,
                                     .broken_down = true},
                            .kinds = {[PK_DATA] = load, [PK_COMPUTE] = work, [PKI_UNTRACKED] = 10},
                            .bit_count = 2};
    whole.bits = calloc(2, sizeof *whole.bits);
    whole.bits[0] = (pki_step_bit){0, load};
    whole.bits[1] = (pki_step_bit){1, work};
    return whole;
}

static void give_sum(pki_window_sum *sum, uint64_t value, uint64_t count)
{
    pki_u128 squares = (pki_u128)value * value * count;
    *sum = (pki_window_sum){.count = count,
                            .sum = value * count,
                            .min = value,
                            .max = value,
                            .squares_high = (uint64_t)(squares >> 64),
                            .squares_low = (uint64_t)squares};
    pki_tally_count(&sum->buckets, pki_bucket(value), count);
}

static void give_facts(pki_window *w, uint64_t index)
{
    w->index = index;
    w->start = index * 1000000;
    w->end = w->start + 1000000;
    w->run = (pki_run){.program = strdup("train"),
                       .host = strdup("node\"1\""),
                       .version = strdup("0.1.0"),
                       .pid = 7,
                       .start_unix = 1790000000000000000,
                       .wall = 1000000,
                       .cpu = 900000,
                       .clock = strdup("tsc"),
                       .clock_hz = 3e9,
                       .trace_path = strdup(""),
                       .source = strdup("session")};
    w->counts = (pk_counts){.size = sizeof w->counts, .threads = 1, .begun = 200, .recorded = 200};
    w->overhead = (pki_overhead){.region_ns = 20, .collector = 100};
}

static void give_regions(pki_window *w)
{
    w->regions = calloc(2, sizeof *w->regions);
    w->region_count = 2;
    w->regions[0] = (pki_window_region){.name = strdup("load"), .kind = PK_DATA, .self = 30000};
    w->regions[1] = (pki_window_region){.name = strdup("work"), .kind = PK_COMPUTE, .self = 60000};
    give_sum(&w->regions[0].exact, 300, 100);
    give_sum(&w->regions[1].exact, 600, 100);
    w->counters = calloc(1, sizeof *w->counters);
    w->counter_count = 1;
    w->counters[0] = (pki_window_counter){.name = strdup("gpu.memory"), .unit = strdup("bytes")};
    pki_tally_add(&w->counters[0].exact, 1.5, 3);
    w->counters[0].last = 1.5;
}

static void give_steps(pki_window *w)
{
    pki_steps_part *part = &w->steps.exact;
    w->steps.count = w->steps.of_all_kinds = 101;
    w->steps.first = 101 * w->index;
    w->steps.last = w->steps.first + 100;
    w->steps.processor = (pki_processor){1000, 800, 100};
    part->span = (pki_steps_span){101, 101, w->steps.first, w->steps.last, w->start, w->end};
    part->head = calloc(1, sizeof *part->head);
    part->head_count = 1;
    part->head[0] = whole_step(w->steps.first, 300, 600);
    part->slow = calloc(1, sizeof *part->slow);
    part->slow_count = 1;
    part->slow[0] = whole_step(w->steps.first + 50, 310, 640);
    part->tail = (pki_step_totals){.items = 3200, .broken_down = 100};
    part->tail.kinds[PK_DATA] = 30000;
    part->tail.kinds[PK_COMPUTE] = 60000;
    pki_tally_add(&part->tail.durations, 910, 99);
    pki_tally_add(&part->tail.durations, 960, 1);
    pki_tally_add(&part->untracked, 10, 100);
    part->regions = calloc(1, sizeof *part->regions);
    part->region_count = 1;
    part->regions[0] = (pki_steps_part_region){.id = 1, .kind = PK_COMPUTE};
    pki_tally_add(&part->regions[0].self, 600, 100);
}

static pki_window window_of(uint64_t index)
{
    pki_window w = {0};
    pki_tally durations;
    give_facts(&w, index);
    give_regions(&w);
    give_steps(&w);
    assert_true(pki_steps_part_durations(&w.steps.exact, &durations));
    w.steps.time = pki_tally_dist(&durations);
    pki_tally_finish(&durations);
    return w;
}

static void a_line(void **state)
{
    static pki_window_line line;
    pki_window w = window_of(0);
    (void)state;
    pki_summary judged = {0};
    assert_true(pki_verdict_add(&judged, "input-bound", PKI_WARN, 0.4, 0.3, "Getting \"input\"."));
    w.verdicts = judged.verdicts;
    w.verdict_count = judged.verdict_count;
    assert_true(pki_window_line_begin(&line, &w));
    while (!pki_window_line_advance(&line))
        ;
    assert_true(pki_window_line_end(&line));
    assert_int_equal(line.bytes, strlen(line.text));
    assert_ptr_equal(strchr(line.text, '\n'), line.text + line.bytes - 1);
    golden_check("window.jsonl", line.text);
    pki_window_line_finish(&line);
    pki_window_finish(&w);
}

/* ---- windows together ---- */

static void expect_refused(pki_windows *all, pki_window *w, const char *why)
{
    const char *said = pki_windows_add(all, w);
    assert_non_null(said);
    assert_non_null(strstr(said, why));
    pki_window_finish(w);
}

static pki_windows *with_one(uint64_t index)
{
    pki_windows *all = pki_windows_create(false);
    pki_window w = window_of(index);
    assert_null(pki_windows_add(all, &w));
    pki_window_finish(&w);
    return all;
}

static void two_windows(void **state)
{
    pki_windows *all = with_one(0);
    pki_window w = window_of(1);
    pki_summary sum;
    (void)state;
    w.last = true;
    assert_null(pki_windows_add(all, &w));
    pki_window_finish(&w);
    assert_int_equal(pki_windows_count(all), 2);
    assert_true(pki_windows_summary(all, &sum));
    assert_string_equal(sum.run.source, "windows 0 to 1");
    assert_true(sum.run.complete && sum.run.wall == 2000000 && sum.run.cpu == 1800000);
    assert_true(sum.steps.count == 202 && sum.steps.warmup == 1 && sum.steps.all.count == 202);
    assert_true(sum.region_count == 2 && sum.regions[0].time.count == 200);
    assert_true(sum.regions[0].self == 120000 && sum.regions[0].time.stddev == 0);
    assert_true(sum.counters[0].value.count == 6 && sum.counters[0].point_count == 2);
    assert_true(sum.counts.recorded == 400 && sum.overhead.collector == 200);
    assert_int_equal(sum.steps.series_count, 2);
    pki_summary_finish(&sum);
    pki_windows_destroy(all);
}

static void what_does_not_fit(void **state)
{
    pki_windows *all = with_one(5);
    pki_window w = window_of(5);
    (void)state;
    expect_refused(all, &w, "follow");
    w = window_of(6);
    w.run.pid = 8;
    expect_refused(all, &w, "another run");
    w = window_of(6);
    w.end = w.start - 1;
    expect_refused(all, &w, "cannot be");
    w = window_of(6);
    w.steps.exact.slow[0].bits[1].id = 2;
    expect_refused(all, &w, "refers");
    w = window_of(6);
    w.steps.exact.regions[0].id = 9;
    expect_refused(all, &w, "refers");
    w = window_of(6);
    w.counters[0].exact.moments.first = NAN;
    expect_refused(all, &w, "finite");
    pki_windows_destroy(all);
}

/* A run of weeks: the course has its rows joined, two, four, eight ... at a time. */
static void a_long_course(void **state)
{
    pki_windows *all = pki_windows_create(true);
    pki_summary sum;
    (void)state;
    enum { MANY = 10000 };
    for (uint64_t i = 0; i < MANY; i++) {
        pki_window w = window_of(i);
        assert_null(pki_windows_add(all, &w));
        pki_window_finish(&w);
    }
    assert_true(pki_windows_summary(all, &sum));
    assert_in_range(sum.steps.series_count, 2048, 4096);
    uint64_t steps = 0;
    for (size_t i = 0; i < sum.steps.series_count; i++)
        steps += sum.steps.series[i].steps;
    assert_int_equal(steps, 101 * MANY);
    assert_true(sum.steps.drift == 0 && sum.steps.first_third > 0);
    pki_summary_finish(&sum);
    pki_windows_destroy(all);
}

/* Two steps of each window are far from the others: no median knows of them. */
static void thirds_are_medians(void **state)
{
    pki_windows *all = pki_windows_create(true);
    pki_summary sum;
    (void)state;
    for (uint64_t i = 0; i < 30; i++) {
        pki_window w = window_of(i);
        pki_tally durations;
        pki_tally_finish(&w.steps.exact.tail.durations);
        w.steps.exact.tail.durations = (pki_tally){0};
        pki_tally_add(&w.steps.exact.tail.durations, i < 15 ? 15800 : 31600, 98);
        pki_tally_add(&w.steps.exact.tail.durations, 1200000, 2);
        assert_true(pki_steps_part_durations(&w.steps.exact, &durations));
        w.steps.time = pki_tally_dist(&durations);
        pki_tally_finish(&durations);
        assert_null(pki_windows_add(all, &w));
        pki_window_finish(&w);
    }
    assert_true(pki_windows_summary(all, &sum));
    assert_true(sum.steps.steady.mean > 1.5 * 15800);
    assert_true(fabs(sum.steps.first_third / 15800 - 1) < 1.0 / 128);
    assert_true(fabs(sum.steps.last_third / 31600 - 1) < 1.0 / 128);
    pki_summary_finish(&sum);
    pki_windows_destroy(all);
}

int main(int argc, char **argv)
{
    golden_folder = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_of_tallies),
        cmocka_unit_test(a_sealed_slot_keeps_its_extremes),
        cmocka_unit_test(steps_in_parts),
        cmocka_unit_test(a_line),
        cmocka_unit_test(two_windows),
        cmocka_unit_test(what_does_not_fit),
        cmocka_unit_test(a_long_course),
        cmocka_unit_test(thirds_are_medians),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
