/* Spans on a GPU: what they cost, whose threads they are on, and where they are placed on the
 * host's clock. */
#include "gpu.h"

#include <pk/gpu.h>
#include <pk/pk.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a thread without a context ---- */

/* What the driver answers there, and that spans begun and ended on it are recorded all the same
 * and leave it without one. And the time between two events, backwards. */

#define SPANS 100

static pk_region region = PK_REGION("threads.span");
static cuda_stream threads_stream;
static cuda_event threads_first, second;

static void show(const char *key, int code)
{
    gpu_figure(key, "%d %s", code, driver_error(code));
}

/* Whatever the codes are, the documentation says that they may be INVALID_CONTEXT and nothing else.
 */
static void check_code(const char *key, int code)
{
    show(key, code);
    gpu_check(code == CUDA_OK || code == CUDA_INVALID_CONTEXT, "%s: %d %s", key, code,
              driver_error(code));
}

static void *bare(void *unused)
{
    float ms = 0;
    int capturing = 0;
    check_code("threads.query", cu.cuda_event_query(second));
    check_code("threads.elapsed", cu.cuda_event_elapsed(&ms, threads_first, second));
    check_code("threads.is_capturing", cu.cuda_stream_is_capturing(threads_stream, &capturing));
    check_code("threads.record",
               cu.cuda_event_record(threads_first, threads_stream)); /* the last: it is under way */
    return unused;
}

static void *spans(void *unused)
{
    cuda_context context = (cuda_context)(void *)&context;
    for (int i = 0; i < SPANS; i++) {
        pk_gpu_begin(&region, threads_stream);
        pk_gpu_end(&region, threads_stream);
    }
    must(cu.cuda_get_current(&context));
    gpu_check(context == NULL, "perfkit left a context behind");
    return unused;
}

static void on_a_thread(void *(*function)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, NULL) == 0)
        pthread_join(thread, NULL);
}

static void backwards(void)
{
    float forth = 0, back = 0;
    must(cu.cuda_event_record(threads_first, threads_stream));
    driver_launch(threads_stream, the_kernels.empty);
    must(cu.cuda_event_record(second, threads_stream));
    must(cu.cuda_stream_synchronize(threads_stream));
    int code = cu.cuda_event_elapsed(&forth, threads_first, second);
    int reversed = cu.cuda_event_elapsed(&back, second, threads_first);
    gpu_figure("threads.reversed", "%d %s: %.6f ms one way, %.6f ms the other", reversed,
               driver_error(reversed), (double)forth, (double)back);
    gpu_check(code == CUDA_OK, "%d %s", code, driver_error(code));
    gpu_check(reversed != CUDA_OK || back == -forth, "%.6f and %.6f ms", (double)forth,
              (double)back);
}

int test_threads(int argc, char **argv)
{
    (void)argc, (void)argv;
    pk_gpu_counts counts = {.size = sizeof counts};
    driver_open();
    driver_load_kernels();
    must(cu.cuda_stream_create(&threads_stream, CUDA_NON_BLOCKING));
    must(cu.cuda_event_create(&threads_first, 0));
    must(cu.cuda_event_create(&second, 0));
    backwards();
    on_a_thread(bare);
    gpu_start("cuda");
    gpu_need("cuda");
    on_a_thread(spans);
    must(cu.cuda_stream_synchronize(threads_stream));
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    pk_get_gpu_counts(&counts);
    gpu_figure("threads.spans", "%llu of %d recorded", (unsigned long long)counts.recorded, SPANS);
    gpu_check(counts.recorded == SPANS, "%llu recorded, %llu dropped, %llu skipped, %llu lost",
              (unsigned long long)counts.recorded, (unsigned long long)counts.dropped,
              (unsigned long long)counts.skipped, (unsigned long long)counts.lost);
    return gpu_result();
}

/* ---- pairs ---- */

/* What a begin and an end on a stream cost, beside the two cuEventRecord calls that they cannot do
 * without: in turns, on the same stream, medians of the ratios. */

#define PAIRS 500
#define ROUNDS 60
#define WARM_UP 10
#define BAR 1.10

static pk_region pairs_region = PK_REGION("pairs.span");
static cuda_event begins[PAIRS], ends[PAIRS];
static cuda_stream pairs_stream;

static double pairs_bare(void)
{
    uint64_t t = gpu_now();
    for (int i = 0; i < PAIRS; i++) {
        cu.cuda_event_record(begins[i], pairs_stream);
        cu.cuda_event_record(ends[i], pairs_stream);
    }
    return (double)(gpu_now() - t) / PAIRS;
}

static double bare_and_asked(void)
{
    int status;
    uint64_t t = gpu_now();
    for (int i = 0; i < PAIRS; i++) {
        cu.cuda_stream_is_capturing(pairs_stream, &status);
        cu.cuda_event_record(begins[i], pairs_stream);
        cu.cuda_stream_is_capturing(pairs_stream, &status);
        cu.cuda_event_record(ends[i], pairs_stream);
    }
    return (double)(gpu_now() - t) / PAIRS;
}

static double ours(void)
{
    uint64_t t = gpu_now();
    for (int i = 0; i < PAIRS; i++) {
        pk_gpu_begin(&pairs_region, pairs_stream);
        pk_gpu_end(&pairs_region, pairs_stream);
    }
    return (double)(gpu_now() - t) / PAIRS;
}

/* The device has passed them all, and the pool has its events back. */
static void settle(void)
{
    must(cu.cuda_stream_synchronize(pairs_stream));
    pk_flush();
    pk_flush();
}

static void show_reading(void)
{
    float ms;
    uint64_t t = gpu_now();
    for (int i = 0; i < 10000; i++)
        cu.cuda_event_query(ends[0]);
    uint64_t queried = gpu_now();
    for (int i = 0; i < 10000; i++)
        cu.cuda_event_elapsed(&ms, begins[0], ends[0]);
    gpu_figure("pairs.query_ns", "%.0f", (double)(queried - t) / 1e4);
    gpu_figure("pairs.elapsed_ns", "%.0f", (double)(gpu_now() - queried) / 1e4);
}

int test_pairs(int argc, char **argv)
{
    (void)argc, (void)argv;
    static double plain[ROUNDS], asked[ROUNDS], spans[ROUNDS], ratio[ROUNDS];
    driver_open();
    must(cu.cuda_stream_create(&pairs_stream, CUDA_NON_BLOCKING));
    for (int i = 0; i < PAIRS; i++) {
        must(cu.cuda_event_create(&begins[i], 0));
        must(cu.cuda_event_create(&ends[i], 0));
    }
    const char *path = gpu_start("cuda");
    gpu_need("cuda");
    for (int i = -WARM_UP; i < ROUNDS; i++) {
        int at = i < 0 ? 0 : i;
        plain[at] = pairs_bare();
        settle();
        spans[at] = ours();
        settle();
        asked[at] = bare_and_asked();
        settle();
        ratio[at] = spans[at] / plain[at];
    }
    show_reading();
    pk_stop();
    pk_gpu_counts counts = {.size = sizeof counts};
    pk_get_gpu_counts(&counts);
    gpu_check(counts.dropped == 0 && counts.lost == 0 && counts.skipped == 0,
              "%llu dropped, %llu lost, %llu skipped", (unsigned long long)counts.dropped,
              (unsigned long long)counts.lost, (unsigned long long)counts.skipped);
    double middle = gpu_median(ratio, ROUNDS);
    gpu_figure("pairs.bare_ns", "%.0f", gpu_median(plain, ROUNDS));
    gpu_figure("pairs.asked_ns", "%.0f", gpu_median(asked, ROUNDS));
    gpu_figure("pairs.perfkit_ns", "%.0f", gpu_median(spans, ROUNDS));
    gpu_figure("pairs.ratio", "%.3f (p10 %.3f, p90 %.3f)", middle, gpu_quantile(ratio, ROUNDS, 0.1),
               gpu_quantile(ratio, ROUNDS, 0.9));
    gpu_bar(middle <= BAR, "%.3f x two bare records", middle);
    gpu_read_trace(path);
    return gpu_result();
}

/* ---- what the program's own kernel launch costs it ---- */

/* Before there is a session, within one, on a stream that has had spans, within a span, and when
 * the session is over. Only the launch is timed; the stream is emptied in between, so that no
 * launch waits for room in its queue. */

#define LAUNCHES 200
#define LAUNCH_SPANS 50
#define LAUNCH_BAR 1.05

static pk_region launch_region = PK_REGION("launch.span");
static cuda_stream launch_stream;

static double one_round(void)
{
    uint64_t begun = gpu_now();
    for (int i = 0; i < LAUNCHES; i++)
        driver_launch(launch_stream, the_kernels.empty);
    double each = (double)(gpu_now() - begun) / LAUNCHES;
    must(cu.cuda_stream_synchronize(launch_stream));
    return each;
}

static double rounds(void)
{
    double took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        took[i] = one_round();
    return gpu_median(took, ROUNDS);
}

static double after_spans(void)
{
    double took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        for (int s = 0; s < LAUNCH_SPANS; s++) {
            pk_gpu_begin(&launch_region, launch_stream);
            driver_launch(launch_stream, the_kernels.empty);
            pk_gpu_end(&launch_region, launch_stream);
        }
        must(cu.cuda_stream_synchronize(launch_stream));
        pk_flush();
        took[i] = one_round();
    }
    return gpu_median(took, ROUNDS);
}

static double within_a_span(void)
{
    double took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        pk_gpu_begin(&launch_region, launch_stream);
        took[i] = one_round();
        pk_gpu_end(&launch_region, launch_stream);
    }
    return gpu_median(took, ROUNDS);
}

static void launch_show(const char *key, double ns, double before)
{
    gpu_figure(key, "%.0f ns, %.3f x", ns, ns / before);
    gpu_bar(ns <= LAUNCH_BAR * before, "%s: %.0f ns after %.0f", key, ns, before);
}

int test_launch(int argc, char **argv)
{
    (void)argc, (void)argv;
    pk_gpu_counts counts = {.size = sizeof counts};
    driver_open();
    driver_load_kernels();
    must(cu.cuda_stream_create(&launch_stream, CUDA_NON_BLOCKING));
    rounds(); /* a warm-up */
    double before = rounds();
    gpu_start("cuda");
    gpu_need("cuda");
    double session = rounds(), spans = after_spans(), within = within_a_span();
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    double over = rounds();
    gpu_figure("launch.before_ns", "%.0f", before);
    launch_show("launch.session", session, before);
    launch_show("launch.after_spans", spans, before);
    launch_show("launch.within_span", within, before);
    launch_show("launch.stopped", over, before);
    pk_get_gpu_counts(&counts);
    gpu_check(counts.recorded == (uint64_t)ROUNDS * (LAUNCH_SPANS + 1), "%llu spans recorded",
              (unsigned long long)counts.recorded);
    return gpu_result();
}

/* ---- anchors ---- */

/* Where spans are placed while the device is saturated, and with one hardware queue for all
 * streams (CUDA_DEVICE_MAX_CONNECTIONS=1), where the event that perfkit ties the device's clock to
 * the host's with waits behind everybody's kernels. On the measured stream lie kernel, span's
 * begin, kernel, span's end, kernel; each reads the device's own timer. So a span begins between
 * two known moments and ends between two, give or take the uncertainty that it states. What those
 * moments are on the host's clock is known from kernels that were waited for, before and after. */

#define STREAMS 12  /* that are busy */
#define BLOCKS 1056 /* of each of their kernels: several times what the device takes at once */
#define WIDE_NS 300000
#define MEASURED_NS 50000
#define SAMPLES 100
#define TIES 200
#define SLACK_NS 2000 /* between perfkit's clock and CLOCK_MONOTONIC, and the timer's steps */

typedef struct tie {
    double device, host, width;
} tie;

typedef struct sample {
    spun before, within, after;
} sample;

static pk_region anchors_region = PK_REGION("anchors.span");
static cuda_stream measured, busy[STREAMS];
static cuda_memory anchors_memory, scratch;
static sample truth[SAMPLES];

/* -- the device's clock on the host's, by this program's own means -- */

static tie one_tie(void)
{
    spun s;
    uint64_t from = gpu_now();
    driver_spin(measured, 0, scratch, 0);
    must(cu.cuda_stream_synchronize(measured));
    uint64_t to = gpu_now();
    must(cu.cuda_to_host(&s, scratch, sizeof s));
    return (tie){(double)s.began, ((double)from + (double)to) / 2, (double)(to - from)};
}

/* The narrowest of many. */
static tie find_tie(void)
{
    tie best = one_tie();
    for (int i = 0; i < TIES; i++) {
        tie t = one_tie();
        best = t.width < best.width ? t : best;
    }
    return best;
}

static double on_host(const tie *a, const tie *b, uint64_t device)
{
    double rate = (b->host - a->host) / (b->device - a->device);
    return a->host + ((double)device - a->device) * rate;
}

/* -- work -- */

static void saturate(void)
{
    for (int i = 0; i < STREAMS; i++)
        driver_spin_wide(busy[i], WIDE_NS, scratch, 1 + (size_t)i, BLOCKS);
}

static void measure(size_t i)
{
    size_t at = 3 * i;
    driver_spin(measured, MEASURED_NS, anchors_memory, at);
    pk_gpu_begin(&anchors_region, measured);
    driver_spin(measured, MEASURED_NS, anchors_memory, at + 1);
    pk_gpu_end(&anchors_region, measured);
    driver_spin(measured, MEASURED_NS, anchors_memory, at + 2);
}

static void work(void)
{
    for (size_t i = 0; i < SAMPLES; i++) {
        saturate();
        measure(i);
        gpu_sleep_ms((unsigned)(i % 5) * 4);
    }
    must(cu.cuda_synchronize());
    must(cu.cuda_to_host(truth, anchors_memory, sizeof truth));
}

/* -- what came of it -- */

static int by_start(const void *a, const void *b)
{
    const gpu_event *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static size_t pick(const gpu_trace *t, gpu_event *to)
{
    size_t count = 0;
    for (size_t i = 0; i < t->count && count < SAMPLES; i++)
        if (gpu_is(&t->events[i], "gpu_user_annotation", "anchors.span"))
            to[count++] = t->events[i];
    qsort(to, count, sizeof *to, by_start);
    return count;
}

/* How far outside of [least, most]; 0 within. */
static double outside(double value, double least, double most)
{
    return value < least ? least - value : value > most ? value - most : 0;
}

static void compare(const gpu_trace *t, const char *which, const tie *a, const tie *b)
{
    static gpu_event spans[SAMPLES];
    double off[SAMPLES], stated[SAMPLES], doubt = (a->width + b->width) / 2 + SLACK_NS;
    char key[64];
    size_t count = pick(t, spans), wrong = 0;
    if (!gpu_check(count == SAMPLES, "%zu of %d spans", count, SAMPLES))
        return;
    for (size_t i = 0; i < SAMPLES; i++) {
        const sample *s = &truth[i];
        double begun = t->base_monotonic + spans[i].start, ended = t->base_monotonic + spans[i].end;
        off[i] =
            fmax(outside(begun, on_host(a, b, s->before.ended), on_host(a, b, s->within.began)),
                 outside(ended, on_host(a, b, s->within.ended), on_host(a, b, s->after.began)));
        stated[i] = spans[i].uncertainty;
        wrong += off[i] > stated[i] + doubt;
    }
    snprintf(key, sizeof key, "anchors.%s_off_us", which);
    gpu_figure(key, "p50 %.2f, max %.2f outside; %zu of %d by more than is stated",
               gpu_median(off, SAMPLES) / 1e3, gpu_quantile(off, SAMPLES, 1) / 1e3, wrong, SAMPLES);
    snprintf(key, sizeof key, "anchors.%s_stated_us", which);
    gpu_figure(key, "p50 %.2f, max %.2f; known here to %.2f", gpu_median(stated, SAMPLES) / 1e3,
               gpu_quantile(stated, SAMPLES, 1) / 1e3, doubt / 1e3);
    gpu_check(wrong == 0, "%zu of %d spans", wrong, SAMPLES);
}

static void place(const char *which)
{
    driver_open();
    driver_load_kernels();
    must(cu.cuda_stream_create(&measured, CUDA_NON_BLOCKING));
    for (int i = 0; i < STREAMS; i++)
        must(cu.cuda_stream_create(&busy[i], CUDA_NON_BLOCKING));
    must(cu.cuda_memory(&anchors_memory, sizeof truth));
    must(cu.cuda_memory(&scratch, (1 + STREAMS) * sizeof(spun)));
    const char *path = gpu_start("cuda");
    gpu_need("cuda");
    tie first = find_tie();
    work();
    tie last = find_tie();
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    gpu_trace t = gpu_read_trace(path);
    compare(&t, which, &first, &last);
}

int test_anchors(int argc, char **argv)
{
    if (argc == 2) {
        place(argv[1]);
        return gpu_result();
    }
    int many = gpu_anew("anchors", "queues", 50);
    if (many == 77)
        return 77;
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
    int one = gpu_anew("anchors", "one_queue", 50);
    gpu_check(one == 0, "with one queue: ended with %d", one);
    gpu_check(many == 0, "with the usual queues: ended with %d", many);
    return gpu_result();
}

/* ---- three clocks ---- */

/* The device's globaltimer, read by the kernel itself; the same moment as perfkit's span and
 * CUPTI's record place it on the host's clock. What is left when one is laid over the other by a
 * line is what the placing adds. First without CUPTI, then with it, which may set the device's
 * timer to another rate.
 *
 * clocks [SECONDS] each of the two; 60 */

#define PAUSE_MS 50
#define MOST 24000

static pk_region clocks_region = PK_REGION("clocks.span");
static spun clocks_truth[MOST];

static size_t how_many(const char *text)
{
    size_t n = (size_t)(text ? atoi(text) : 60) * 1000 / PAUSE_MS;
    return n < 20 ? 20 : n > MOST ? MOST : n;
}

static void clocks_compare(const gpu_trace *t, const char *category, const char *name,
                           const char *what, size_t n)
{
    static double device[MOST], host[MOST], off[MOST];
    gpu_event *events = calloc(n, sizeof *events);
    char key[64];
    size_t count = 0;
    for (size_t i = 0; events && i < t->count && count < n; i++)
        if (gpu_is(&t->events[i], category, name))
            events[count++] = t->events[i];
    if (!gpu_check(count == n, "%zu of %zu are in the trace: %s", count, n, what)) {
        free(events);
        return;
    }
    qsort(events, n, sizeof *events, by_start);
    for (size_t i = 0; i < n; i++) {
        device[i] = (double)(clocks_truth[i].began - clocks_truth[0].began);
        host[i] = events[i].start;
    }
    gpu_line line = gpu_fit(device, host, n);
    for (size_t i = 0; i < n; i++)
        off[i] = fabs(host[i] - gpu_at(line, device[i]));
    snprintf(key, sizeof key, "clocks.%s_us", what);
    gpu_figure(key, "p50 %.2f, p99 %.2f, max %.2f", gpu_median(off, n) / 1e3,
               gpu_quantile(off, n, 0.99) / 1e3, gpu_quantile(off, n, 1) / 1e3);
    snprintf(key, sizeof key, "clocks.%s_ppm", what);
    gpu_figure(key, "%+.3f of the device's timer against the host's clock", (line.slope - 1) * 1e6);
    free(events);
}

static void one_by_one(cuda_stream stream, cuda_memory memory, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pk_region_begin(&clocks_region);
        pk_gpu_begin(&clocks_region, stream);
        driver_spin(stream, 20000, memory, i);
        pk_gpu_end(&clocks_region, stream);
        must(cu.cuda_stream_synchronize(stream));
        pk_region_end(&clocks_region);
        gpu_sleep_ms(PAUSE_MS);
    }
    must(cu.cuda_to_host(clocks_truth, memory, n * sizeof(spun)));
}

/* The shortest step of the device's timer, as far as kernels that follow each other show it. */
static void show_steps(const char *key, size_t n)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 1; i < n; i++) {
        uint64_t step = clocks_truth[i].ended - clocks_truth[i].began - 20000;
        least = step && step < least ? step : least;
    }
    if (least == UINT64_MAX)
        gpu_figure(key, "none: each kernel took 20 us to the ns");
    else
        gpu_figure(key, "least %llu ns beyond the 20 us that a kernel was to take",
                   (unsigned long long)least);
}

static void session(const char *backends, cuda_stream stream, cuda_memory memory, size_t n)
{
    const char *path = gpu_start(backends);
    pk_backend_info cupti = {.size = sizeof cupti};
    gpu_need("cuda");
    bool with =
        strstr(backends, "cupti") && pk_backend_status("cupti", &cupti) == PK_OK && cupti.live;
    one_by_one(stream, memory, n);
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    gpu_trace t = gpu_read_trace(path);
    if (!strstr(backends, "cupti")) {
        clocks_compare(&t, "gpu_user_annotation", "clocks.span", "span", n);
        show_steps("clocks.steps", n);
    } else if (with) {
        clocks_compare(&t, "gpu_user_annotation", "clocks.span", "span_with_cupti", n);
        clocks_compare(&t, "kernel", "spin", "kernel", n);
        show_steps("clocks.steps_with_cupti", n);
    } else {
        gpu_figure("clocks.kernel_us", "CUPTI is off: %s", cupti.reason);
    }
    free(t.events);
}

int test_clocks(int argc, char **argv)
{
    cuda_stream stream;
    cuda_memory memory;
    size_t n = how_many(argc > 1 ? argv[1] : NULL);
    driver_open();
    driver_load_kernels();
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    must(cu.cuda_memory(&memory, n * sizeof(spun)));
    session("cuda", stream, memory, n);
    session("cuda,cupti", stream, memory, n);
    return gpu_result();
}
