/* What the program's own kernel launch costs it: before there is a session, within one, on a stream
 * that has had spans, within a span, and when the session is over. Only the launch is timed; the
 * stream is emptied in between, so that no launch waits for room in its queue.
 */
#include <stdio.h>

#include <pk/pk.h>

#include "driver.h"
#include "gpu.h"

#define LAUNCHES 200
#define SPANS 50
#define ROUNDS 60
#define BAR 1.05

static pk_region region = PK_REGION("launch.span");
static cuda_stream stream;

static double one_round(void)
{
    uint64_t begun = gpu_now();
    for (int i = 0; i < LAUNCHES; i++)
        driver_launch(stream, the_kernels.empty);
    double each = (double)(gpu_now() - begun) / LAUNCHES;
    must(cu.cuda_stream_synchronize(stream));
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
        for (int s = 0; s < SPANS; s++) {
            pk_gpu_begin(&region, stream);
            driver_launch(stream, the_kernels.empty);
            pk_gpu_end(&region, stream);
        }
        must(cu.cuda_stream_synchronize(stream));
        pk_flush();
        took[i] = one_round();
    }
    return gpu_median(took, ROUNDS);
}

static double within_a_span(void)
{
    double took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        pk_gpu_begin(&region, stream);
        took[i] = one_round();
        pk_gpu_end(&region, stream);
    }
    return gpu_median(took, ROUNDS);
}

static void show(const char *key, double ns, double before)
{
    gpu_figure(key, "%.0f ns, %.3f x", ns, ns / before);
    gpu_bar(ns <= BAR * before, "%s: %.0f ns after %.0f", key, ns, before);
}

int main(void)
{
    pk_gpu_counts counts = {.size = sizeof counts};
    driver_open();
    driver_load_kernels();
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    rounds(); /* a warm-up */
    double before = rounds();
    gpu_start("cuda");
    gpu_need("cuda");
    double session = rounds(), spans = after_spans(), within = within_a_span();
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    double over = rounds();
    gpu_figure("launch.before_ns", "%.0f", before);
    show("launch.session", session, before);
    show("launch.after_spans", spans, before);
    show("launch.within_span", within, before);
    show("launch.stopped", over, before);
    pk_get_gpu_counts(&counts);
    gpu_check(counts.recorded == (uint64_t)ROUNDS * (SPANS + 1), "%llu spans recorded",
              (unsigned long long)counts.recorded);
    return gpu_result();
}
