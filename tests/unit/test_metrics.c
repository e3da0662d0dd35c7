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

static unsigned count_series(const char *text)
{
    unsigned count = 0;
    for (; *text; text = strchr(text, '\n') + 1)
        count += *text != '#';
    return count;
}

static void never_more_than_the_bound(void **state)
{
    static pki_comm_row comms[PKI_METRICS_COMMS];
    (void)state;
    pki_metrics m = some_metrics();
    for (size_t i = 0; i < PKI_METRICS_COMMS; i++)
        comms[i].library = comms[i].name = (char *)(uintptr_t) "same";
    for (size_t i = 0; i <= PKI_METRICS_REGIONS; i++)
        m.regions[i] = m.regions[0];
    for (size_t i = 0; i < PKI_METRICS_COUNTERS; i++)
        m.counters[i] = m.counters[0];
    for (size_t i = 0; i < PKI_METRICS_VERDICTS; i++)
        m.verdicts[i] = m.verdicts[0];
    m.stages[0] = m.stages[1] = m.stages[2] = &steps;
    m.comms = comms;
    m.comm_count = PKI_METRICS_COMMS;
    m.region_count = PKI_METRICS_REGIONS + 1;
    m.counter_count = PKI_METRICS_COUNTERS;
    m.verdict_count = PKI_METRICS_VERDICTS;
    char *text = text_of(&m);
    assert_in_range(count_series(text), 200, PKI_METRICS_SERIES);
    free(text);
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
        cmocka_unit_test(never_more_than_the_bound),
        cmocka_unit_test(counts_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
