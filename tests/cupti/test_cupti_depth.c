/* A host that is ahead of its device, so that CUPTI keeps buffers back: what each step's kernels
 * are is known, and the report has it or says that it does not. */
#include "scene.h"

#include "measure/summary.h"
#include "session/report/run.h"
#include "session/session.h"

#define US UINT64_C(1000)
#define STEPS_MOST 64u
#define KERNELS_MOST 4096u
#define STREAMS_MOST 3u
#define DOUBT (20 * US)

typedef struct kernel {
    uint64_t start, end;
} kernel;

typedef struct plan {
    unsigned steps, kernels, streams, ahead, threads; /* kernels: of a step and thread */
    uint64_t ns, pause; /* of a kernel; of the host between two launches */
} plan;

static struct {
    pthread_mutex_t lock;
    kernel kernels[KERNELS_MOST];
    size_t count, finished;
    uint64_t free_at[STREAMS_MOST];
    uint64_t before[STEPS_MOST + 1], after[STEPS_MOST + 1]; /* each step's end; [0]: the begin */
} truth;

static uint64_t clock_now(void)
{
    return fake->clock();
}

static void sleep_until(uint64_t ns)
{
    uint64_t t = clock_now();
    if (t < ns)
        nanosleep(
            &(struct timespec){(time_t)((ns - t) / 1000000000u), (long)((ns - t) % 1000000000u)},
            NULL);
}

/* The device's side: what has ended by now is complete. Kernels end in the order of their launches
 * only on one stream: the double completes them in that order, which is later than CUPTI would. */
static void go_on(void)
{
    size_t done = 0;
    pthread_mutex_lock(&truth.lock);
    while (truth.finished < truth.count && truth.kernels[truth.finished].end <= clock_now()) {
        truth.finished++;
        done++;
    }
    if (done)
        fake->finish_some(done);
    pthread_mutex_unlock(&truth.lock);
}

static void wait_for_device(size_t ahead)
{
    for (;;) {
        go_on();
        pthread_mutex_lock(&truth.lock);
        bool behind = truth.count - truth.finished > ahead;
        uint64_t next = behind ? truth.kernels[truth.finished].end : 0;
        pthread_mutex_unlock(&truth.lock);
        if (!behind)
            return;
        sleep_until(next);
    }
}

static void launch_next(const plan *p, unsigned stream)
{
    pthread_mutex_lock(&truth.lock);
    uint64_t soonest = clock_now() + 5 * US, free_at = truth.free_at[stream];
    kernel k = {.start = free_at > soonest ? free_at : soonest};
    k.end = truth.free_at[stream] = k.start + p->ns;
    truth.kernels[truth.count++] = k;
    launch(.kernel = "k", .stream = stream + 1, .at = k.start, .ns = p->ns);
    pthread_mutex_unlock(&truth.lock);
}

static void launch_a_step(const plan *p)
{
    for (unsigned i = 0; i < p->kernels; i++) {
        wait_for_device(p->ahead);
        launch_next(p, i % p->streams);
        if (p->pause)
            sleep_until(clock_now() + p->pause);
    }
}

static void *launch_beside(void *of)
{
    const plan *p = of;
    for (unsigned i = 0; i < p->steps; i++)
        launch_a_step(p);
    return NULL;
}

static void train(const plan *p)
{
    pthread_t beside[4];
    memset(&truth, 0, sizeof truth);
    pthread_mutex_init(&truth.lock, NULL);
    for (unsigned i = 1; i < p->threads; i++)
        assert_int_equal(pthread_create(&beside[i], NULL, launch_beside, (void *)p), 0);
    truth.before[0] = clock_now();
    pk_step_begin();
    truth.after[0] = clock_now();
    for (unsigned i = 0; i < p->steps; i++) {
        launch_a_step(p);
        truth.before[i + 1] = clock_now();
        pk_step(1);
        truth.after[i + 1] = clock_now();
    }
    for (unsigned i = 1; i < p->threads; i++)
        pthread_join(beside[i], NULL);
    wait_for_device(0);
}

/* ---- what it should be ---- */

/* Kernels that began in the step: fewest and most, since its ends are known from outside. */
static void expect_kernels(uint64_t step, uint64_t found)
{
    uint64_t least = 0, most = 0;
    for (size_t i = 0; i < truth.count; i++) {
        uint64_t start = truth.kernels[i].start;
        least += start >= truth.after[step] + DOUBT && start + DOUBT < truth.before[step + 1];
        most += start + DOUBT >= truth.before[step] && start < truth.after[step + 1] + DOUBT;
    }
    if (found < least || found > most)
        fail_msg("%llu kernels, not %llu to %llu", (unsigned long long)found,
                 (unsigned long long)least, (unsigned long long)most);
}

static int by_start(const void *a, const void *b)
{
    const kernel *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static uint64_t busy_between(uint64_t from, uint64_t until)
{
    uint64_t sum = 0, at = from;
    for (size_t i = 0; i < truth.count; i++) { /* sorted */
        uint64_t start = truth.kernels[i].start > at ? truth.kernels[i].start : at;
        uint64_t end = truth.kernels[i].end < until ? truth.kernels[i].end : until;
        if (end > start) {
            sum += end - start;
            at = end;
        }
    }
    return sum;
}

static void expect_row(const pki_gpu_series_row *row)
{
    uint64_t n = row->index;
    uint64_t least = busy_between(truth.after[n], truth.before[n + 1]);
    uint64_t most = busy_between(truth.before[n], truth.after[n + 1]);
    assert_int_equal(row->steps, 1);
    expect_kernels(n, row->kernels);
    if (row->busy + DOUBT < least || row->busy > most + DOUBT)
        fail_msg("step %llu: busy %llu ns, not %llu to %llu", (unsigned long long)n,
                 (unsigned long long)row->busy, (unsigned long long)least,
                 (unsigned long long)most);
}

static pki_summary summary;

static const pki_gpu_row *the_gpu(void)
{
    assert_true(pki_run_summarise(&pki_the_session, &summary));
    assert_int_equal(summary.gpu_count, 1);
    assert_true(summary.gpus[0].measured);
    return &summary.gpus[0];
}

static void expect_truth(const plan *p)
{
    const pki_gpu_row *gpu = the_gpu();
    qsort(truth.kernels, truth.count, sizeof *truth.kernels, by_start);
    assert_int_equal(summary.activities.late, 0);
    assert_int_equal(gpu->kernels, truth.count);
    assert_int_equal(gpu->series_count, p->steps);
    for (size_t i = 0; i < gpu->series_count; i++)
        expect_row(&gpu->series[i]);
    pki_summary_finish(&summary);
}

static void expect_all_of(const plan *p)
{
    assert_int_equal(
        pk_start(pk_options(.report_path = "r.txt", .backends = "cupti", .tuning = "flush_ms=100")),
        PK_OK);
    train(p);
    assert_int_equal(pk_stop(), PK_OK);
    expect_truth(p);
}

/* ---- the cases ---- */

/* As it was found: never a moment at which nothing runs. */
static void always_five_ahead(void **state)
{
    (void)state;
    expect_all_of(&(plan){
        .steps = 40, .kernels = 20, .streams = 1, .ahead = 5, .threads = 1, .ns = 500 * US});
}

static unsigned below(unsigned n)
{
    return (unsigned)rand() % n;
}

/* PK_TEST_RUNS of them. */
static void any_depth_length_streams_and_threads(void **state)
{
    const char *given = getenv("PK_TEST_RUNS");
    int runs = given ? atoi(given) : 3;
    (void)state;
    for (int i = 0; i < runs; i++) {
        srand((unsigned)i + 1);
        plan p = {.steps = 8 + below(24),
                  .kernels = 1 + below(20),
                  .streams = 1 + below(3),
                  .ahead = below(12),
                  .threads = 1 + below(3),
                  .ns = (20 + below(600)) * US,
                  .pause = below(2) * below(300) * US};
        print_message("run %d: %u steps, %u kernels of %u us, %u streams, %u ahead, %u threads\n",
                      i, p.steps, p.kernels, (unsigned)(p.ns / US), p.streams, p.ahead, p.threads);
        expect_all_of(&p);
    }
}

/* What runs yet as the session ends has no times, and is said to be missing. */
static void what_still_runs_at_the_end(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    launch(.kernel = "a");
    fake->finish();
    launch(.kernel = "b");
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "kernel", NULL), 1);
    assert_int_equal(fate(doc, "bad_time"), 1);
    assert_non_null(strstr(status().reason, "1 without times"));
    fake->finish();
    json_decref(doc);
}

/* What is inside a graph that is recorded as a whole is not claimed: neither how much of a
 * collective was hidden, nor that the device was busy all the time. */
static void graphs_as_wholes(void **state)
{
    const plan p = {.steps = 20};
    (void)state;
    assert_int_equal(
        pk_start(pk_options(.report_path = "r.txt", .backends = "cupti", .tuning = "flush_ms=100")),
        PK_OK);
    for (unsigned i = 0; i < p.steps; i++) {
        uint64_t begin = clock_now();
        launch(.kernel = "ncclDevKernel_AllReduce", .at = begin, .ns = 100 * US);
        play(RUNTIME, .id = CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
             .device = CUPTI_ACTIVITY_KIND_GRAPH_TRACE, .graph = 3, .at = begin + 100 * US,
             .ns = 900 * US);
        sleep_until(begin + 1000 * US);
        fake->finish();
        pk_step(1);
    }
    assert_int_equal(pk_stop(), PK_OK);
    const pki_gpu_row *gpu = the_gpu();
    assert_int_equal(gpu->graphs, p.steps);
    assert_int_equal(gpu->graph_time, p.steps * 900 * US);
    assert_int_equal(gpu->per_step[PKI_GPU_COMM_EXPOSED].count, 0);
    assert_int_equal(gpu->per_step[PKI_GPU_COMM_HIDDEN].count, 0);
    pki_summary_finish(&summary);
    size_t size;
    char *text = read_file("r.txt", &size);
    assert_non_null(strstr(text, "20 of them CUDA graphs as wholes"));
    free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(always_five_ahead, reset_fake, stop_and_leave),
        cmocka_unit_test_setup_teardown(any_depth_length_streams_and_threads, reset_fake,
                                        stop_and_leave),
        cmocka_unit_test_setup_teardown(graphs_as_wholes, reset_fake, stop_and_leave),
        cmocka_unit_test_setup_teardown(what_still_runs_at_the_end, reset_fake, stop_and_leave),
    };
    if (argc < 2)
        return 1;
    open_fake(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
