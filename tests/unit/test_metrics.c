/* The text that Prometheus reads: byte by byte, its escapes, the histogram's counts, and its bound.
 */
#include "golden.h"

#include "out/metrics/metrics.h"
#include "stats/buckets.h"

static pk_stats steps;

static char *text_of(const pki_metrics *m)
{
    char *text = NULL;
    size_t bytes;
    FILE *memory = open_memstream(&text, &bytes);
    pki_metrics_put(m, memory);
    assert_int_equal(fclose(memory), 0);
    return text;
}

static void add_step(uint64_t ns)
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
    add_step(1023); /* of the first edge still */
    add_step(1024);
    add_step(1500000);
    add_step((uint64_t)1 << 50); /* beyond all edges */
    pki_metrics m = some_metrics();
    m.comms = &comm;
    m.comm_count = 1;
    char *text = text_of(&m);
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
    add_step(60000000000);
    add_step(90000000000);
    char *text = text_of(&m);
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
    return text_of(&m);
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
    char *text = text_of(&m);
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
        add_step(ns);
        pki_metrics m = some_metrics();
        char *text = text_of(&m), *at = text;
        while ((at = strstr(at, ",le=\"0.0000"))) {
            unsigned long long le = strtoull(at + 11, &at, 10), count = strtoull(at + 3, NULL, 10);
            assert_int_equal(count, ns <= le);
        }
        free(text);
        ns += ns % 7;
    }
}

int main(int argc, char **argv)
{
    golden_folder = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden),
        cmocka_unit_test(of_requests),
        cmocka_unit_test(costs),
        cmocka_unit_test(never_more_than_the_bound),
        cmocka_unit_test(counts_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
