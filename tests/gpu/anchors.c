/* Where spans are placed while the device is saturated, and with one hardware queue for all streams
 * (CUDA_DEVICE_MAX_CONNECTIONS=1), where the event that perfkit ties the device's clock to the
 * host's with waits behind everybody's kernels. On the measured stream lie kernel, span's begin,
 * kernel, span's end, kernel; each reads the device's own timer. So a span begins between two known
 * moments and ends between two, give or take the uncertainty that it states. What those moments are
 * on the host's clock is known from kernels that were waited for, before and after.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pk/pk.h>

#include "driver.h"
#include "gpu.h"

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

static pk_region region = PK_REGION("anchors.span");
static cuda_stream measured, busy[STREAMS];
static cuda_memory memory, scratch;
static sample truth[SAMPLES];

/* ---- the device's clock on the host's, by this program's own means ---- */

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

/* ---- work ---- */

static void saturate(void)
{
    for (int i = 0; i < STREAMS; i++)
        driver_spin_wide(busy[i], WIDE_NS, scratch, 1 + (size_t)i, BLOCKS);
}

static void measure(size_t i)
{
    size_t at = 3 * i;
    driver_spin(measured, MEASURED_NS, memory, at);
    pk_gpu_begin(&region, measured);
    driver_spin(measured, MEASURED_NS, memory, at + 1);
    pk_gpu_end(&region, measured);
    driver_spin(measured, MEASURED_NS, memory, at + 2);
}

static void work(void)
{
    for (size_t i = 0; i < SAMPLES; i++) {
        saturate();
        measure(i);
        gpu_sleep_ms((unsigned)(i % 5) * 4);
    }
    must(cu.cuda_synchronize());
    must(cu.cuda_to_host(truth, memory, sizeof truth));
}

/* ---- what came of it ---- */

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
    must(cu.cuda_memory(&memory, sizeof truth));
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

static int run_anew(const char *which, const char *connections)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(50);
        if (connections)
            setenv("CUDA_DEVICE_MAX_CONNECTIONS", connections, 1);
        execl("/proc/self/exe", "anchors", which, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        place(argv[1]);
        return gpu_result();
    }
    int one = run_anew("one_queue", "1");
    if (one == 77)
        return 77;
    int many = run_anew("queues", NULL);
    gpu_check(one == 0, "with one queue: ended with %d", one);
    gpu_check(many == 0, "with the usual queues: ended with %d", many);
    return gpu_result();
}
