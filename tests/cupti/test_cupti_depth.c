/* A host that is ahead of its device, so that CUPTI keeps buffers back: what each step's kernels
 * are is known, and report and captures have it or say that they do not. Also where another tool
 * comes and goes. For many more runs: MOCK --runs 1000 [FIRST]. */
#include "scene.h"

#include <math.h>

#include "backend/cupti/control.h"
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

/* TAKES: CUPTI's buffers, as Kineto does. RETURNS: what is its own comes back to us. HOLDS: it is
 * subscribed as the session begins, and leaves. */
typedef enum tool { NOBODY, TAKES, RETURNS, HOLDS, TOOLS } tool;

typedef enum captured { NOTHING, ALWAYS, ARMED, CAPTURED } captured;

typedef struct plan {
    unsigned steps, kernels, streams, ahead, threads; /* kernels: of a step and thread */
    uint64_t ns, pause; /* of a kernel; of the host between two launches */
    tool other;
    unsigned at; /* the step in which it does something */
    captured captured;
} plan;

static struct {
    pthread_mutex_t lock;
    kernel kernels[KERNELS_MOST];
    size_t count, finished;
    uint64_t free_at[STREAMS_MOST];
    uint64_t unseen[STREAMS_MOST]; /* end of the last, if launched before CUPTI was on */
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

static bool is_on(void)
{
    return __atomic_load_n(&fake->enabled, __ATOMIC_RELAXED) >> CUPTI_ACTIVITY_KIND_RUNTIME & 1;
}

static void launch_next(const plan *p, unsigned stream)
{
    pthread_mutex_lock(&truth.lock);
    bool unseen = !is_on();
    uint64_t soonest = clock_now() + 5 * US, free_at = truth.free_at[stream];
    kernel k = {.start = free_at > soonest ? free_at : soonest};
    launch(.kernel = "k", .stream = stream + 1, .at = k.start, .started = &k.start, .ns = p->ns);
    k.end = truth.free_at[stream] = k.start + p->ns;
    truth.unseen[stream] = unseen ? k.end : 0;
    truth.kernels[truth.count++] = k;
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

/* ---- the other tool ---- */

#define THEIR_BYTES 8192u
#define THEIRS_MOST 4096u

static struct {
    void *all[THEIRS_MOST];
    uint32_t count;
} theirs;

static void CUPTIAPI their_request(uint8_t **data, size_t *size, size_t *most)
{
    uint32_t n = __atomic_fetch_add(&theirs.count, 1, __ATOMIC_RELAXED);
    if (n >= THEIRS_MOST)
        abort();
    *data = theirs.all[n] = aligned_alloc(64, THEIR_BYTES);
    *size = THEIR_BYTES;
    *most = 0;
}

/* Some of it is not its own. */
static void CUPTIAPI their_completed(CUcontext context, uint32_t stream, uint8_t *data, size_t size,
                                     size_t valid)
{
    (void)context, (void)stream, (void)data, (void)size, (void)valid;
}

static void give_us_theirs(void)
{
    uint8_t *data;
    size_t size, most;
    their_request(&data, &size, &most);
    pki_cupti_buffer_completed(NULL, 0, data, size, 64);
}

static void do_of_other(const plan *p, unsigned step)
{
    if (p->other == RETURNS)
        give_us_theirs();
    if (step != p->at)
        return;
    if (p->other == TAKES)
        fake->register_other(their_request, their_completed);
    __atomic_store_n(&fake->subscribe, CUPTI_SUCCESS, __ATOMIC_RELAXED);
}

/* With all that was its own. */
static void other_goes(const plan *p)
{
    /* Who has taken it unseen, since hardly anything was launched afterwards, is not spared. */
    if (p->other == TAKES && strncmp(fake->misuse, "disable of", 10) == 0)
        fake->misuses = 0;
    assert_int_equal(fake->misuses, 0);
    fake->reset();
    while (theirs.count)
        free(theirs.all[--theirs.count]);
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
        do_of_other(p, i);
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

/* Nothing tells of what is queued on a stream that gets nothing more. */
static bool is_unknown(uint64_t step)
{
    bool unknown = false;
    for (unsigned i = 0; i < STREAMS_MOST; i++)
        unknown |= truth.before[step] < truth.unseen[i];
    return unknown;
}

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
        fail_msg("step %llu: %llu kernels, not %llu to %llu", (unsigned long long)step,
                 (unsigned long long)found, (unsigned long long)least, (unsigned long long)most);
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

/* Each step that is measured is; how many they are. */
static size_t expect_rows(void)
{
    const pki_gpu_row *gpu = summary.gpus;
    qsort(truth.kernels, truth.count, sizeof *truth.kernels, by_start);
    assert_int_equal(summary.activities.late, 0);
    assert_true(summary.gpu_count <= 1);
    for (size_t i = 0; gpu && i < gpu->series_count; i++)
        if (!is_unknown(gpu->series[i].index))
            expect_row(&gpu->series[i]);
    return gpu ? gpu->series_count : 0;
}

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
    assert_int_equal(gpu->kernels, truth.count);
    assert_int_equal(expect_rows(), p->steps);
    pki_summary_finish(&summary);
}

/* Steps that are not measured have a reason. */
static void expect_truth_or_words(const plan *p)
{
    assert_true(pki_run_summarise(&pki_the_session, &summary));
    size_t measured = expect_rows();
    pki_summary_finish(&summary);
    assert_true(measured <= p->steps);
    if (measured < p->steps && p->captured != ARMED && status().live)
        fail_msg("%zu of %u steps, and nothing is said: %s", measured, p->steps, status().reason);
}

/* ---- captures ---- */

static unsigned captures_from(const plan *p, unsigned i)
{
    return i ? p->steps / 2 : 1;
}

static void start(const plan *p)
{
    static const char *const kernels[] = {
        [NOTHING] = "", [ALWAYS] = ";kernels=always", [ARMED] = ";kernels=armed"};
    char which[64] = "";
    unsigned first = captures_from(p, 0), second = captures_from(p, 1);
    if (p->captured)
        snprintf(which, sizeof which, "steps=%u-%u;steps=%u-%u%s", first, first + 1, second,
                 second + 1, kernels[p->captured]);
    if (p->other == HOLDS)
        fake->subscribe = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    assert_int_equal(
        pk_start(pk_options(.report_path = "r.txt", .backends = "cupti", .capture = which,
                            .capture_path = "c-%s.json", .tuning = "flush_ms=100")),
        PK_OK);
}

static uint64_t number_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(member(object, key));
}

static size_t kernels_within(const json_t *doc, uint64_t from, uint64_t until)
{
    size_t n = 0, all = count_of_cat(doc, "kernel", NULL);
    for (size_t i = 0; i < all; i++) {
        double ns = 1e3 * ts_of(nth_event(doc, "kernel", NULL, i));
        n += ns >= (double)from && ns < (double)until;
    }
    return n;
}

static bool says_kernels_of(const json_t *doc, uint64_t step)
{
    size_t i;
    json_t *n;
    bool says = false;
    json_array_foreach(member(member(doc, "perfkitCapture"), "kernels"), i, n) says |=
        (uint64_t)json_integer_value(n) == step;
    return says;
}

/* Complete, or it says of which steps it is not. */
static void expect_capture(const plan *p, unsigned first)
{
    char path[32];
    size_t i, missing = 0, seen = 0;
    json_t *step;
    snprintf(path, sizeof path, "c-%u.json", first);
    json_t *doc = load_document(path);
    json_array_foreach(member(member(doc, "perfkitCapture"), "steps"), i, step)
    {
        uint64_t n = number_of(step, "step"), from = number_of(step, "start_ns");
        if (n < first || n > first + 1)
            continue;
        seen++;
        if (says_kernels_of(doc, n) && is_unknown(n))
            continue;
        if (says_kernels_of(doc, n))
            expect_kernels(n, kernels_within(doc, from, from + number_of(step, "duration_ns")));
        else
            missing++;
    }
    assert_int_equal(seen, 2);
    uint64_t late = number_of(member(doc, "perfkitCapture"), "kernels_late");
    assert_true(late <= missing);
    if (p->captured == ALWAYS && p->other != TAKES && p->other != HOLDS)
        assert_int_equal(late, missing);
    json_decref(doc);
    unlink(path);
}

static void expect_all_of(const plan *p)
{
    start(p);
    train(p);
    assert_int_equal(pk_stop(), PK_OK);
    for (unsigned i = 0; p->captured && i < 2; i++)
        expect_capture(p, captures_from(p, i));
    if (p->captured != ARMED && (p->other == NOBODY || p->other == RETURNS))
        expect_truth(p);
    else
        expect_truth_or_words(p);
    other_goes(p);
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

static int first_run, runs = TOOLS * CAPTURED; /* each of both with each */

static void any_depth_length_streams_and_threads(void **state)
{
    (void)state;
    for (int i = first_run; i < first_run + runs; i++) {
        srand((unsigned)i + 1);
        plan p = {.steps = 8 + below(24),
                  .kernels = 1 + below(20),
                  .streams = 1 + below(3),
                  .ahead = below(12),
                  .threads = 1 + below(3),
                  .ns = (20 + below(600)) * US,
                  .pause = below(2) * below(300) * US,
                  .other = (tool)(i % TOOLS),
                  .captured = (captured)(i % CAPTURED)};
        p.at = below(p.steps);
        print_message("run %d: %u steps, %u kernels of %u us, %u streams, %u ahead, %u threads, "
                      "tool %d in step %u, captures %d\n",
                      i, p.steps, p.kernels, (unsigned)(p.ns / US), p.streams, p.ahead, p.threads,
                      (int)p.other, p.at, (int)p.captured);
        expect_all_of(&p);
    }
}

/* A host so far ahead that what it had launched before CUPTI was on runs beyond the captured step:
 * when that was over is known only behind the capture. */
static void queued_beyond_what_is_captured(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++)
        expect_all_of(&(plan){.steps = 9,
                              .kernels = 2,
                              .streams = 1,
                              .ahead = 10,
                              .threads = 2,
                              .ns = 542 * US,
                              .other = NOBODY,
                              .captured = ARMED});
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
        cmocka_unit_test_setup_teardown(queued_beyond_what_is_captured, reset_fake, stop_and_leave),
        cmocka_unit_test_setup_teardown(graphs_as_wholes, reset_fake, stop_and_leave),
        cmocka_unit_test_setup_teardown(what_still_runs_at_the_end, reset_fake, stop_and_leave),
    };
    if (argc < 2)
        return 1;
    open_fake(argv[1]);
    if (argc > 3 && strcmp(argv[2], "--runs") == 0)
        runs = atoi(argv[3]);
    if (argc > 4)
        first_run = atoi(argv[4]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
