/* Kernels as CUPTI shows them: each tied to its region, none before its launch or behind the end of
 * waiting for it, and as long as the device's own timers say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pk/pk.h>

#include "driver.h"
#include "gpu.h"

#define TIED 200u
#define EACH 20u
#define BOUND_NS 20000 /* twice the 8 to 9 us that others have seen between the clocks */

static pk_region even = PK_REGION("kernels.even"), odd = PK_REGION("kernels.odd");
static pk_region waiting = PK_REGION_OF(PK_WAIT, "kernels.wait"),
                 length = PK_REGION("kernels.length");
static const uint64_t lengths[] = {10000, 100000, 1000000, 10000000};
#define LENGTHS (sizeof lengths / sizeof *lengths)

static cuda_stream stream;
static cuda_memory memory;
static spun truth[LENGTHS * EACH];

static void launch_in_regions(void)
{
    for (unsigned i = 0; i < TIED; i++) {
        pk_region *region = i % 2 ? &odd : &even;
        pk_region_begin(region);
        driver_spin(stream, 20000, memory, 0);
        pk_region_end(region);
        PK_SCOPE(waiting) {
            must(cu.cuda_stream_synchronize(stream));
        }
    }
}

static void launch_lengths(void)
{
    for (unsigned i = 0; i < LENGTHS * EACH; i++) {
        pk_region_begin(&length);
        pk_gpu_begin(&length, stream);
        driver_spin(stream, lengths[i / EACH], memory, i);
        pk_gpu_end(&length, stream);
        pk_region_end(&length);
        must(cu.cuda_stream_synchronize(stream));
    }
    must(cu.cuda_to_host(truth, memory, sizeof truth));
}

static int by_start(const void *a, const void *b)
{
    const gpu_event *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Those events alone, in the order of time. */
static size_t pick(const gpu_trace *t, const char *category, const char *name, gpu_event *to,
                   size_t room)
{
    size_t count = 0;
    for (size_t i = 0; i < t->count && count < room; i++)
        if (gpu_is(&t->events[i], category, name))
            to[count++] = t->events[i];
    qsort(to, count, sizeof *to, by_start);
    return count;
}

/* The call that has a kernel's correlation. */
static const gpu_event *launch_of(const gpu_trace *t, const gpu_event *kernel)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->events[i].correlation == kernel->correlation &&
            strncmp(t->events[i].category, "cuda_", 5) == 0)
            return &t->events[i];
    return NULL;
}

static void check_ties(const gpu_trace *t, const gpu_event *spins, size_t count)
{
    size_t right = 0, calls = 0;
    for (size_t i = 0; i < count && i < TIED; i++) {
        right += strcmp(spins[i].region, i % 2 ? "kernels.odd" : "kernels.even") == 0;
        calls += launch_of(t, &spins[i]) != NULL;
    }
    gpu_figure("kernels.tied", "%zu of %u to their region, %zu to a call", right, TIED, calls);
    gpu_check(right == TIED, "%zu of %u", right, TIED);
    gpu_check(calls == TIED, "%zu of %u", calls, TIED);
}

/* Launch, kernel, end of the wait: the smallest distance is negative if effect comes before cause.
 */
static void check_causality(const gpu_trace *t, const gpu_event *spins, size_t count)
{
    static gpu_event waits[TIED];
    double before[TIED], behind[TIED];
    size_t n = pick(t, "cpu_op", "kernels.wait", waits, TIED), used = 0;
    for (size_t i = 0; i < count && i < n; i++) {
        const gpu_event *launch = launch_of(t, &spins[i]);
        if (!launch)
            continue;
        before[used] = spins[i].start - launch->start;
        behind[used++] = waits[i].end - spins[i].end;
    }
    gpu_check(used == TIED, "only %zu of %u could be compared", used, TIED);
    if (!used)
        return;
    double least_before = gpu_quantile(before, used, 0),
           least_behind = gpu_quantile(behind, used, 0);
    gpu_figure("kernels.launch_to_start_us", "least %.2f, median %.2f", least_before / 1e3,
               gpu_median(before, used) / 1e3);
    gpu_figure("kernels.end_to_wait_us", "least %.2f, median %.2f", least_behind / 1e3,
               gpu_median(behind, used) / 1e3);
    gpu_bar(least_before >= -BOUND_NS, "a kernel began %.0f ns before its launch", -least_before);
    gpu_bar(least_behind >= -BOUND_NS, "a kernel ended %.0f ns after the wait", -least_behind);
}

static void show_lengths(const char *what, const gpu_event *events)
{
    for (unsigned l = 0; l < LENGTHS; l++) {
        double over[EACH], most = 0;
        char key[64];
        for (unsigned i = 0; i < EACH; i++) {
            const spun *s = &truth[l * EACH + i];
            const gpu_event *e = &events[l * EACH + i];
            over[i] = (e->end - e->start) - (double)(s->ended - s->began);
        }
        most = gpu_quantile(over, EACH, 0.9);
        snprintf(key, sizeof key, "lengths.%s.%llu_us", what,
                 (unsigned long long)lengths[l] / 1000);
        gpu_figure(key, "%+.2f us, p90 %+.2f us", gpu_median(over, EACH) / 1e3, most / 1e3);
        gpu_bar(most < 100000 && gpu_quantile(over, EACH, 0.1) > -5000, "%s of %llu ns: %+.0f ns",
                what, (unsigned long long)lengths[l], most);
    }
}

static void show_clock(void)
{
    const spun *s = &truth[LENGTHS * EACH - 1];
    gpu_figure("lengths.sm_mhz", "%.0f by clock64 over globaltimer",
               (double)(s->clock_ended - s->clock_began) * 1e3 / (double)(s->ended - s->began));
}

int main(void)
{
    static gpu_event spins[TIED + LENGTHS * EACH], spans[LENGTHS * EACH];
    driver_open();
    driver_load_kernels();
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    must(cu.cuda_memory(&memory, sizeof truth));
    const char *path = gpu_start("cuda,cupti");
    gpu_need("cuda");
    gpu_need("cupti");
    launch_in_regions();
    launch_lengths();
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    gpu_trace t = gpu_read_trace(path);
    size_t count = pick(&t, "kernel", "spin", spins, TIED + LENGTHS * EACH);
    gpu_check(count == TIED + LENGTHS * EACH, "%zu kernels of %zu", count,
              (size_t)TIED + LENGTHS * EACH);
    check_ties(&t, spins, count);
    check_causality(&t, spins, count);
    if (count == TIED + LENGTHS * EACH)
        show_lengths("kernel", spins + TIED);
    size_t got = pick(&t, "gpu_user_annotation", "kernels.length", spans, LENGTHS * EACH);
    if (gpu_check(got == LENGTHS * EACH, "%zu spans of %zu", got, (size_t)LENGTHS * EACH))
        show_lengths("span", spans);
    show_clock();
    return gpu_result();
}
