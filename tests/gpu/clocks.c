/* Three clocks: the device's globaltimer, read by the kernel itself; the same moment as perfkit's
 * span and CUPTI's record place it on the host's clock. What is left when one is laid over the
 * other by a line is what the placing adds. First without CUPTI, then with it, which may set the
 * device's timer to another rate.
 *
 *     clocks [SECONDS]      each of the two; 60
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pk/pk.h>

#include "driver.h"
#include "gpu.h"

#define PAUSE_MS 50
#define MOST 24000

static pk_region region = PK_REGION("clocks.span");
static spun truth[MOST];

static size_t how_many(const char *text)
{
    size_t n = (size_t)(text ? atoi(text) : 60) * 1000 / PAUSE_MS;
    return n < 20 ? 20 : n > MOST ? MOST : n;
}

static int by_start(const void *a, const void *b)
{
    const gpu_event *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static void compare(const gpu_trace *t, const char *category, const char *name, const char *what,
                    size_t n)
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
        device[i] = (double)(truth[i].began - truth[0].began);
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
        pk_region_begin(&region);
        pk_gpu_begin(&region, stream);
        driver_spin(stream, 20000, memory, i);
        pk_gpu_end(&region, stream);
        must(cu.cuda_stream_synchronize(stream));
        pk_region_end(&region);
        gpu_sleep_ms(PAUSE_MS);
    }
    must(cu.cuda_to_host(truth, memory, n * sizeof(spun)));
}

/* The shortest step of the device's timer, as far as kernels that follow each other show it. */
static void show_steps(const char *key, size_t n)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 1; i < n; i++) {
        uint64_t step = truth[i].ended - truth[i].began - 20000;
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
        compare(&t, "gpu_user_annotation", "clocks.span", "span", n);
        show_steps("clocks.steps", n);
    } else if (with) {
        compare(&t, "gpu_user_annotation", "clocks.span", "span_with_cupti", n);
        compare(&t, "kernel", "spin", "kernel", n);
        show_steps("clocks.steps_with_cupti", n);
    } else {
        gpu_figure("clocks.kernel_us", "CUPTI is off: %s", cupti.reason);
    }
    free(t.events);
}

int main(int argc, char **argv)
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
