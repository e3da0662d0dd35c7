/* NCCL on GPUs: messages between events, and all-reduces from small to large. */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pk/nccl.h>

/* ---- nccl ---- */

/* Messages of the real NCCL between events, by the explicit calls of pk/nccl.h, and what NCCL's
 * profiler interface tells beside them: one GPU sends to itself, against CUPTI's kernels. */

enum { MESSAGES = 50 };
#define MESSAGE_BYTES ((size_t)64 << 20)

static pk_region sweep = PK_REGION_OF(PK_COMM, "nccl.sweep");

static void message(void)
{
    one_gpu *g = &gpus[0];
    size_t n = MESSAGE_BYTES / 4;
    nccl_group_begins();
    pk_nccl_begin(g->comm, PK_COMM_OP_SEND, PK_COMM_TYPE_FLOAT32, n, 0, g->stream);
    int sent = nccl.send(nccl_pointer(g->from), n, FLOAT32, 0, g->nccl, g->stream);
    pk_nccl_end(g->comm, g->stream, sent);
    pk_nccl_begin(g->comm, PK_COMM_OP_RECV, PK_COMM_TYPE_FLOAT32, n, 0, g->stream);
    int received = nccl.receive(nccl_pointer(g->to), n, FLOAT32, 0, g->nccl, g->stream);
    pk_nccl_end(g->comm, g->stream, received);
    nccl_group_ends();
}

static size_t pick(const gpu_trace *t, const char *category, const char *beginning, gpu_event *to,
                   size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < t->count && n < room; i++)
        if (strcmp(t->events[i].category, category) == 0 &&
            strncmp(t->events[i].name, beginning, strlen(beginning)) == 0)
            to[n++] = t->events[i];
    return n;
}

static double length_of(const gpu_event *e)
{
    return e->end - e->start;
}

/* On the stream in their order, so the n-th span is the n-th kernel's. */
static void compare_with_kernels(const gpu_trace *t)
{
    static gpu_event spans[MESSAGES], works[MESSAGES];
    double over[MESSAGES];
    size_t n = pick(t, "collective", "NCCL send_recv", spans, MESSAGES);
    size_t k = pick(t, "kernel", "nccl", works, MESSAGES);
    gpu_figure("nccl.messages", "%zu of %d as one operation each, %zu kernels", n, MESSAGES, k);
    gpu_check(n == MESSAGES, "%zu of %d", n, MESSAGES);
    for (size_t i = 0; i < n && i < k; i++)
        over[i] = length_of(&spans[i]) - length_of(&works[i]);
    if (n == MESSAGES && k == MESSAGES) {
        double least = gpu_quantile(over, MESSAGES, 0), usual = gpu_median(over, MESSAGES);
        gpu_figure("nccl.span_over_kernel_us", "least %.2f, median %.2f", least / 1e3, usual / 1e3);
        gpu_bar(least > -5000 && usual < 50000, "spans are %.0f to %.0f ns longer than kernels",
                least, usual);
    }
}

static void on_one_gpu(void)
{
    const char *path = gpu_start("cuda,cupti,nccl");
    gpu_need("cuda");
    nccl_make(1, MESSAGE_BYTES);
    gpu_figure("nccl.init", "%s", gpu_reason("nccl"));
    gpu_check(strncmp(gpu_reason("nccl"), "1 communicators", 15) == 0, "%s", gpu_reason("nccl"));
    {
        PK_REGION_SCOPE(sweep);
        for (int i = 0; i < MESSAGES; i++)
            message();
    }
    nccl_synchronize();
    nccl_destroy();
    gpu_figure("nccl.finalize", "%s", gpu_reason("nccl"));
    gpu_check(strncmp(gpu_reason("nccl"), "1 communicators", 15) != 0, "%s", gpu_reason("nccl"));
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    gpu_trace t = gpu_read_trace(path);
    gpu_figure("nccl.plugin", "%zu sends, %zu receives told by the profiler interface",
               gpu_count(&t, "user_annotation", "NCCL send"),
               gpu_count(&t, "user_annotation", "NCCL recv"));
    compare_with_kernels(&t);
}

int test_nccl(int argc, char **argv)
{
    (void)argc, (void)argv;
    driver_open();
    nccl_open();
    on_one_gpu();
    return gpu_result();
}

/* ---- all-reduces over all GPUs of this machine, from small to large ---- */

/* What a pair of events around each costs, and bandwidths by spans against those of this program's
 * own loop and of nccl-tests.
 *
 * As nccl-tests measure: many in a row, the wall's time of all of them. With and without perfkit's
 * calls in turns; medians of the ratios. PK_NCCL_TESTS: the folder of all_reduce_perf, if that is
 * not in the PATH. */

enum { TURNS = 7, EACH = 20, SIZES = 6, FIRST = 8192, FACTOR = 8 };
#define LARGEST ((size_t)FIRST * FACTOR * FACTOR * FACTOR * FACTOR * FACTOR)
#define BAR 1.02
#define BANDWIDTH_BAR 0.02 /* of large messages */

typedef struct row {
    size_t bytes;
    double bare, with, ratio; /* ns of one; medians */
    double spans;             /* the spans' own median */
} row;

static row rows[SIZES];
static const char *const names[SIZES] = {"8k", "64k", "512k", "4m", "32m", "256m"};

static void all_reduce(size_t bytes, bool told)
{
    size_t n = bytes / 4;
    if (told)
        nccl_group_begins();
    else
        nccl_must(nccl.group_start(), "ncclGroupStart");
    for (int i = 0; i < ranks; i++) {
        one_gpu *g = &gpus[i];
        if (told)
            pk_nccl_begin(g->comm, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, n, -1, g->stream);
        int result = nccl.all_reduce(nccl_pointer(g->from), nccl_pointer(g->to), n, FLOAT32, SUM,
                                     g->nccl, g->stream);
        if (told)
            pk_nccl_end(g->comm, g->stream, result);
        else
            nccl_must(result, "ncclAllReduce");
    }
    if (told)
        nccl_group_ends();
    else
        nccl_must(nccl.group_end(), "ncclGroupEnd");
}

static double loop(size_t bytes, bool told)
{
    nccl_synchronize();
    uint64_t begun = gpu_now();
    for (int i = 0; i < EACH; i++)
        all_reduce(bytes, told);
    nccl_synchronize();
    return (double)(gpu_now() - begun) / EACH;
}

static void measure(row *r)
{
    double bare[TURNS], with[TURNS], ratio[TURNS];
    loop(r->bytes, false); /* a warm-up */
    for (int i = 0; i < TURNS; i++) {
        bare[i] = loop(r->bytes, false);
        with[i] = loop(r->bytes, true);
        ratio[i] = with[i] / bare[i];
        pk_flush(); /* the pool has its events back */
    }
    r->bare = gpu_median(bare, TURNS);
    r->with = gpu_median(with, TURNS);
    r->ratio = gpu_median(ratio, TURNS);
}

static double bandwidth(const row *r, double ns)
{
    return (double)r->bytes / ns * 2 * (ranks - 1) / ranks;
}

static int by_start(const void *a, const void *b)
{
    const gpu_event *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Sizes came one after the other, each as often. */
static void find_spans(const gpu_trace *t)
{
    size_t each = (size_t)TURNS * EACH * (size_t)ranks, count = 0;
    gpu_event *spans = calloc(t->count + 1, sizeof *spans);
    double *lengths = calloc(each + 1, sizeof *lengths);
    for (size_t i = 0; spans && i < t->count; i++)
        if (gpu_is(&t->events[i], "collective", "NCCL all_reduce"))
            spans[count++] = t->events[i];
    if (lengths && gpu_check(count == each * SIZES, "%zu of %zu spans", count, each * SIZES)) {
        qsort(spans, count, sizeof *spans, by_start);
        for (size_t r = 0; r < SIZES; r++) {
            for (size_t i = 0; i < each; i++)
                lengths[i] = spans[r * each + i].end - spans[r * each + i].start;
            rows[r].spans = gpu_median(lengths, each);
        }
    }
    free(lengths);
    free(spans);
}

static void show(const row *r, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "sweep.%s", name);
    gpu_figure(key, "%.1f us, %.2f GB/s; spans %.1f us, %.2f GB/s; with perfkit %.3f x",
               r->bare / 1e3, bandwidth(r, r->bare), r->spans / 1e3, bandwidth(r, r->spans),
               r->ratio);
    gpu_bar(r->ratio <= BAR, "%s: %.3f x with perfkit", name, r->ratio);
    if (r->bytes >= (size_t)32 << 20) {
        double off = bandwidth(r, r->spans) / bandwidth(r, r->bare) - 1;
        gpu_bar(off < BANDWIDTH_BAR && off > -BANDWIDTH_BAR, "%s: %+.2f %%", name, off * 100);
    }
}

/* -- against nccl-tests -- */

/* size count type redop root time algbw busbw ... of what is not in place */
static void compare_line(const char *line)
{
    unsigned long long bytes;
    double us, busbw;
    if (sscanf(line, "%llu %*u %*s %*s %*s %lf %*f %lf", &bytes, &us, &busbw) != 3)
        return;
    for (size_t i = 0; i < SIZES; i++)
        if (rows[i].bytes == bytes) {
            char key[64];
            snprintf(key, sizeof key, "sweep.nccl_tests.%s", names[i]);
            gpu_figure(key, "%.1f us, %.2f GB/s; spans %+.1f %%", us, busbw,
                       (bandwidth(&rows[i], rows[i].spans) / busbw - 1) * 100);
        }
}

static void compare_with_nccl_tests(void)
{
    const char *folder = getenv("PK_NCCL_TESTS");
    char command[1024], line[512];
    int lines = 0;
    snprintf(command, sizeof command,
             "%s%sall_reduce_perf -b %d -e %zu -f %d -g %d -n 20 -w 5 2>&1", folder ? folder : "",
             folder ? "/" : "", FIRST, LARGEST, FACTOR, ranks);
    FILE *output = popen(command, "r");
    while (output && fgets(line, sizeof line, output)) {
        const char *at = line + strspn(line, " ");
        lines += *at >= '0' && *at <= '9';
        compare_line(at);
    }
    int status = output ? pclose(output) : -1;
    if (status != 0 || lines == 0)
        gpu_figure("sweep.nccl_tests", "not there: %s ended with %d", "all_reduce_perf", status);
    else
        gpu_figure("sweep.nccl_tests", "%d sizes", lines);
}

int test_sweep(int argc, char **argv)
{
    (void)argc, (void)argv;
    int devices = 0;
    driver_open();
    nccl_open();
    must(cu.cuda_device_count(&devices));
    if (devices < 2)
        gpu_skip("one GPU: nothing is reduced");
    const char *path = gpu_start("cuda");
    gpu_need("cuda");
    nccl_make(devices, LARGEST);
    size_t bytes = FIRST;
    for (size_t i = 0; i < SIZES; i++, bytes *= FACTOR) {
        rows[i].bytes = bytes;
        measure(&rows[i]);
    }
    nccl_destroy();
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    gpu_trace t = gpu_read_trace(path);
    find_spans(&t);
    for (size_t i = 0; i < SIZES; i++)
        show(&rows[i], names[i]);
    compare_with_nccl_tests();
    return gpu_result();
}
