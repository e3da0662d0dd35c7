/* Windows: what a run's figures are made of, what Prometheus reads of them, and a program that is
 * killed. */
#include "folder.h"
#include "../kit/tuning.h"
#include "golden.h"
#include "valgrind.h"

#include <pk/pk.h>

#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "measure/verdict/verdict.h"
#include "measure/window/merge.h"
#include "out/json_write.h"
#include "out/metrics/metrics.h"
#include "out/window/write.h"
#include "stats/buckets.h"
#include "stats/slot.h"

/* ---- what a run's figures are made of, taken apart and put together again ---- */

/* Slots, counters, steps, windows and their lines. */

static uint64_t next_random(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* -- differences -- */

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

/* -- steps -- */

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

/* -- a window by hand -- */

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

/* -- windows together -- */

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

static const struct CMUnitTest windows_tests[] = {
    cmocka_unit_test(differences_of_tallies),
    cmocka_unit_test(a_sealed_slot_keeps_its_extremes),
    cmocka_unit_test(steps_in_parts),
    cmocka_unit_test(a_line),
    cmocka_unit_test(two_windows),
    cmocka_unit_test(what_does_not_fit),
    cmocka_unit_test(a_long_course),
    cmocka_unit_test(thirds_are_medians),
};

/* ---- the text that Prometheus reads ---- */

/* Byte by byte, its escapes, the histogram's counts, and its bound. */

static pk_stats steps;

static char *metrics_text_of(const pki_metrics *m)
{
    char *text = NULL;
    size_t bytes;
    FILE *memory = open_memstream(&text, &bytes);
    pki_metrics_put(m, memory);
    assert_int_equal(fclose(memory), 0);
    return text;
}

static void metrics_add_step(uint64_t ns)
{
    steps.count++;
    steps.sum += ns;
    steps.buckets[pki_bucket(ns)]++;
}

static pki_metrics some_metrics(void)
{
    pki_metrics m = {.program = "train",
                     .host = "node\\1 \"a\"\nb\xff",
                     .version = "0.1.0",
                     .rank = 3,
                     .world_size = 8,
                     .pid = 77,
                     .running = true,
                     .now_unix = 1790000000123456789,
                     .wall = 5000000001,
                     .items = 96,
                     .kinds = {[PK_COMPUTE] = 3000000, [PK_DATA] = 1000000, [PKI_UNTRACKED] = 7},
                     .steps = &steps};
    m.counts = (pk_counts){.threads = 2,
                           .begun = 10,
                           .recorded = 9,
                           .dropped = 1,
                           .points = 3,
                           .untimed = 2,
                           .untraced = 5};
    m.toll = (pki_toll){.region_ns = 20,
                        .process = 4000000000,
                        .collector = 1000,
                        .counted_ns = 2,
                        .overhead_max = 0.02};
    m.regions[0] = (pki_metrics_region){"load \"x\"", PK_DATA, 3, 1000000, 900000, 4096, 2};
    m.regions[1] = (pki_metrics_region){"(others)", PK_OTHER, 1, 10, 10, 0, 0};
    m.region_count = 2;
    m.counters[0] = (pki_metrics_counter){"gpu0.memory", "bytes", 1.5e9};
    m.counter_count = 1;
    m.verdicts[0] = (pki_metrics_verdict){"input-bound", PKI_WARN};
    m.verdict_count = 1;
    return m;
}

static void golden(void **state)
{
    static pki_comm_row comm = {.library = (char *)(uintptr_t) "mpi",
                                .name = (char *)(uintptr_t) "world",
                                .calls = 12,
                                .bytes = 1 << 20,
                                .time = 5000,
                                .exposed = 4000};
    (void)state;
    memset(&steps, 0, sizeof steps);
    metrics_add_step(1023); /* of the first edge still */
    metrics_add_step(1024);
    metrics_add_step(1500000);
    metrics_add_step((uint64_t)1 << 50); /* beyond all edges */
    pki_metrics m = some_metrics();
    m.comms = &comm;
    m.comm_count = 1;
    char *text = metrics_text_of(&m);
    golden_check("metrics.prom", text);
    free(text);
}

static void expect_sample(const char *text, const char *name, const char *labels, const char *value)
{
    char sample[256];
    snprintf(sample, sizeof sample, "\n%s{program=\"train\",rank=\"3\"%s} %s\n", name, labels,
             value);
    if (!strstr(text, sample))
        fail_msg("no%s", sample);
}

/* What waits goes beyond the 81.92 s of OpenTelemetry's conventions. */
static void of_requests(void **state)
{
    pki_metrics m = some_metrics();
    (void)state;
    for (size_t i = 0; i < PKI_METRICS_STAGES; i++)
        m.stages[i] = &steps;
    m.outcomes[0] = 30;
    m.outcomes[1] = 2;
    m.outcomes[2] = 1;
    m.requests_good = 25;
    m.tokens = 4000;
    m.preemptions = 7;
    memset(&steps, 0, sizeof steps);
    metrics_add_step(60000000000);
    metrics_add_step(90000000000);
    char *text = metrics_text_of(&m);
    expect_sample(text, "gen_ai_server_request_duration_seconds_bucket", ",le=\"68.719476735\"",
                  "1");
    expect_sample(text, "pk_request_queue_time_seconds_bucket", ",le=\"137.438953471\"", "2");
    expect_sample(text, "gen_ai_server_time_to_first_token_seconds_count", "", "2");
    expect_sample(text, "gen_ai_server_time_per_output_token_seconds_bucket", ",le=\"8.589934591\"",
                  "0");
    expect_sample(text, "pk_inter_token_latency_seconds_bucket", ",le=\"+Inf\"", "2");
    expect_sample(text, "pk_requests_total", ",outcome=\"finished\"", "30");
    expect_sample(text, "pk_requests_total", ",outcome=\"cancelled\"", "2");
    expect_sample(text, "pk_requests_total", ",outcome=\"failed\"", "1");
    expect_sample(text, "pk_requests_good_total", "", "25");
    expect_sample(text, "pk_generation_tokens_total", "", "4000");
    expect_sample(text, "pk_request_preemptions_total", "", "7");
    free(text);
}

static unsigned count_series(const char *text)
{
    unsigned count = 0;
    for (; *text; text = strchr(text, '\n') + 1)
        count += *text != '#';
    return count;
}

static void fill_costs(pki_metrics *m, bool io, bool energy, bool goodput, bool devices)
{
    pki_metrics_costs *c = &m->costs;
    c->memory = (pki_memory_sum){5, 3 << 20, 4 << 20, 2 << 20, 700, 2};
    c->allocated_known = true;
    c->allocated = 12345;
    c->forced = 3;
    c->own = 40;
    c->saves = 2;
    c->save_bytes = 2000;
    c->save_time = 1500000000;
    m->toll.stepper = (pki_processor){4000000000, 3000000000, 250000000};
    c->io_known = io;
    c->io = (pki_io_counts){1 << 20, 1 << 10, 16, 4, 4096, 8192};
    c->energy_count = energy ? PKI_METRICS_ENERGY : 0;
    for (size_t i = 0; i < c->energy_count; i++)
        c->energy[i] = (pki_metrics_energy){"package-0", 1500000 + i};
    c->place_count = devices ? PKI_METRICS_PLACES : 0;
    for (size_t i = 0; i < c->place_count; i++)
        c->places[i] = (pki_metrics_place){"gpu0", 100 + i, 200, 300, 250};
    if (goodput)
        c->goodput = (pki_goodput_summary){.up = 9000000000, .steps = 100, .recomputed = 7};
    for (uint64_t i = 0; goodput && i < PKI_PARTS; i++)
        c->goodput.parts[i] = i * 100000000;
}

static char *text_of_costs(bool io, bool energy, bool goodput, bool devices)
{
    pki_metrics m = some_metrics();
    fill_costs(&m, io, energy, goodput, devices);
    return metrics_text_of(&m);
}

/* What is not known has no sample; what is has its value, in the format's units. */
static void costs(void **state)
{
    static const char *const always[] = {
        "pk_process_resident_memory_bytes{program=\"train\",rank=\"3\"} 3145728\n",
        "pk_process_page_faults_total{program=\"train\",rank=\"3\",kind=\"major\"} 2\n",
        "pk_allocated_bytes{program=\"train\",rank=\"3\"} 12345\n",
        "pk_checkpoint_seconds_total{program=\"train\",rank=\"3\"} 1.500000000\n",
        "pk_step_thread_seconds_total{program=\"train\",rank=\"3\",state=\"ready\"} 0.250000000\n",
        "pk_step_thread_seconds_total{program=\"train\",rank=\"3\",state=\"waiting\"} 0.750000000\n"};
    static const char *const asked[] = {
        "pk_io_device_written_bytes_total{program=\"train\",rank=\"3\"} 8192\n",
        "pk_energy_joules_total{program=\"train\",rank=\"3\",counter=\"package-0\"} 1.500000\n",
        "pk_device_memory_bytes{program=\"train\",rank=\"3\",device=\"gpu0\"} 100\n",
        "pk_device_memory_max_bytes{program=\"train\",rank=\"3\",device=\"gpu0\"} 200\n",
        "pk_device_pool_reserved_bytes{program=\"train\",rank=\"3\",device=\"gpu0\"} 300\n",
        "pk_device_pool_used_bytes{program=\"train\",rank=\"3\",device=\"gpu0\"} 250\n",
        "pk_goodput_seconds{program=\"train\",rank=\"3\",part=\"recomputed\"} 0.100000000\n",
        "pk_recomputed_steps_total{program=\"train\",rank=\"3\"} 7\n"};
    (void)state;
    char *all = text_of_costs(true, true, true, true),
         *some = text_of_costs(false, false, false, false);
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        assert_non_null(strstr(all, always[i]));
        assert_non_null(strstr(some, always[i]));
    }
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        assert_non_null(strstr(all, asked[i]));
    assert_null(strstr(some, "pk_io_"));
    assert_null(strstr(some, "pk_energy"));
    assert_null(strstr(some, "pk_device_"));
    assert_null(strstr(some, "pk_goodput"));
    assert_null(strstr(some, "pk_recomputed"));
    free(all);
    free(some);
}

/* All that there can be at once, beside costs that are asked for or not. */
static unsigned count_most(bool io, bool energy, bool goodput, bool devices)
{
    static pki_comm_row comms[PKI_METRICS_COMMS];
    pki_metrics m = some_metrics();
    for (size_t i = 0; i < PKI_METRICS_COMMS; i++)
        comms[i].library = comms[i].name = (char *)(uintptr_t) "same";
    for (size_t i = 0; i <= PKI_METRICS_REGIONS; i++)
        m.regions[i] = m.regions[0];
    for (size_t i = 0; i < PKI_METRICS_COUNTERS; i++)
        m.counters[i] = m.counters[0];
    for (size_t i = 0; i < PKI_METRICS_VERDICTS; i++)
        m.verdicts[i] = m.verdicts[0];
    for (size_t i = 0; i < PKI_METRICS_STAGES; i++)
        m.stages[i] = &steps;
    m.utilisation = (pki_utilisation){.steps = 1, .time = 1, .peak = 1};
    m.comms = comms;
    m.comm_count = PKI_METRICS_COMMS;
    m.region_count = pki_metrics_room(io, energy, goodput, devices) + 1;
    m.counter_count = PKI_METRICS_COUNTERS;
    m.verdict_count = PKI_METRICS_VERDICTS;
    fill_costs(&m, io, energy, goodput, devices);
    char *text = metrics_text_of(&m);
    unsigned count = count_series(text);
    free(text);
    return count;
}

static void never_more_than_the_bound(void **state)
{
    (void)state;
    assert_int_equal(pki_metrics_room(false, false, false, false), PKI_METRICS_REGIONS);
    for (int i = 0; i < 16; i++)
        assert_in_range(count_most(i & 1, i & 2, i & 4, i & 8), PKI_METRICS_SERIES - 8,
                        PKI_METRICS_SERIES);
}

/* Each `le` is the last nanosecond before an edge, so a bucket's count is that of all values up to
 * it, no matter where they lie. */
static void counts_are_exact(void **state)
{
    (void)state;
    for (uint64_t ns = 900; ns < 5000; ns++) {
        memset(&steps, 0, sizeof steps);
        metrics_add_step(ns);
        pki_metrics m = some_metrics();
        char *text = metrics_text_of(&m), *at = text;
        while ((at = strstr(at, ",le=\"0.0000"))) {
            unsigned long long le = strtoull(at + 11, &at, 10), count = strtoull(at + 3, NULL, 10);
            assert_int_equal(count, ns <= le);
        }
        free(text);
        ns += ns % 7;
    }
}

static const struct CMUnitTest metrics_tests[] = {
    cmocka_unit_test(golden),
    cmocka_unit_test(of_requests),
    cmocka_unit_test(costs),
    cmocka_unit_test(never_more_than_the_bound),
    cmocka_unit_test(counts_are_exact),
};

/* ---- windows that come fast, of a program that is killed ---- */

/* Those of all but the last second are in the file; and the next run with the same path keeps
 * them. */

#define PATH "w.jsonl"
#define OF_A_WINDOW 1000u
#define REGIONS 40
#define STEP_NS 30000u
#define SECOND 1000000000u

/* What the child has done, seen by its parent. */
static uint64_t *steps_made;

static pk_region regions[REGIONS];

static void make_step(unsigned i)
{
    uint64_t until = pki_monotonic_ns() + STEP_NS;
    for (unsigned k = 0; k < 3; k++) {
        PK_REGION_SCOPE(regions[(i + k) % REGIONS]);
    }
    while (pki_monotonic_ns() < until)
        ;
    pk_step(1);
}

static void name_regions(void)
{
    static char names[REGIONS][16];
    for (unsigned i = 0; i < REGIONS; i++) {
        snprintf(names[i], sizeof names[i], "region %u", i);
        regions[i] = (pk_region)PK_REGION(names[i]);
    }
}

static void run_for_ever(void)
{
    name_regions();
    if (pk_start(pk_options(.windows_path = PATH, .backends = "none",
                            .tuning = kit_tuning("window_steps=%u", OF_A_WINDOW))))
        _exit(1);
    for (unsigned i = 0;; i++) {
        make_step(i);
        pki_store_release(steps_made, pki_load(steps_made) + 1);
    }
}

static unsigned lines_of(const char *path)
{
    size_t n;
    unsigned count = 0;
    char *text = read_file(path, &n);
    for (size_t i = 0; i < n; i++)
        count += text[i] == '\n';
    free(text);
    return count;
}

static void all_but_the_last_second(void **state)
{
    (void)state;
    steps_made =
        mmap(NULL, sizeof *steps_made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(steps_made != MAP_FAILED);
    pid_t child = fork();
    if (child == 0)
        run_for_ever();
    while (pki_load_acquire(steps_made) < 30 * OF_A_WINDOW)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    /* A second later, on a machine that has one to spare. */
    uint64_t then = pki_load_acquire(steps_made), since = pki_monotonic_ns(), took = 0;
    while (took < SECOND || (took < 20 * SECOND && lines_of(PATH) < then / OF_A_WINDOW)) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        took = pki_monotonic_ns() - since;
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    unsigned windows = lines_of(PATH);
    print_message("%llu steps a second before the kill, %u windows of %u\n",
                  (unsigned long long)then, windows, OF_A_WINDOW);
    assert_true(windows >= then / OF_A_WINDOW);
    assert_int_equal(pk_start(pk_options(.windows_path = PATH, .backends = "none",
                                         .tuning = kit_tuning("window_steps=%u", OF_A_WINDOW))),
                     PK_OK);
    pk_step(1);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(lines_of(PATH), 1);
    assert_int_equal(lines_of(PATH ".prev"), windows);
}

static const struct CMUnitTest windows_killed_tests[] = {
    cmocka_unit_test_setup_teardown(all_but_the_last_second, enter_folder, leave_folder),
};

static int run_windows_killed(void)
{
    /* How soon something is written is told by the clock, and valgrind's is fifty times as slow. */
    if (forked_child_may_not_record())
        return 0;
    return cmocka_run_group_tests(windows_killed_tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    golden_folder = argc > 1 ? argv[1] : NULL;
    int failed = cmocka_run_group_tests(windows_tests, NULL, NULL);
    failed += cmocka_run_group_tests(metrics_tests, NULL, NULL);
    failed += run_windows_killed();
    return failed;
}
