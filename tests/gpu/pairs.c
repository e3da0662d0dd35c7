/* What a begin and an end on a stream cost, beside the two cuEventRecord calls that they cannot do
 * without: in turns, on the same stream, medians of the ratios. */
#include <stdio.h>
#include <stdlib.h>

#include <pk/pk.h>

#include "driver.h"
#include "gpu.h"

#define PAIRS 500
#define ROUNDS 60
#define WARM_UP 10
#define BAR 1.10

static pk_region region = PK_REGION("pairs.span");
static cuda_event begins[PAIRS], ends[PAIRS];
static cuda_stream stream;

static double bare(void)
{
    uint64_t t = gpu_now();
    for (int i = 0; i < PAIRS; i++) {
        cu.cuda_event_record(begins[i], stream);
        cu.cuda_event_record(ends[i], stream);
    }
    return (double)(gpu_now() - t) / PAIRS;
}

static double bare_and_asked(void)
{
    int status;
    uint64_t t = gpu_now();
    for (int i = 0; i < PAIRS; i++) {
        cu.cuda_stream_is_capturing(stream, &status);
        cu.cuda_event_record(begins[i], stream);
        cu.cuda_stream_is_capturing(stream, &status);
        cu.cuda_event_record(ends[i], stream);
    }
    return (double)(gpu_now() - t) / PAIRS;
}

static double ours(void)
{
    uint64_t t = gpu_now();
    for (int i = 0; i < PAIRS; i++) {
        pk_gpu_begin(&region, stream);
        pk_gpu_end(&region, stream);
    }
    return (double)(gpu_now() - t) / PAIRS;
}

/* The device has passed them all, and the pool has its events back. */
static void settle(void)
{
    must(cu.cuda_stream_synchronize(stream));
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

int main(void)
{
    static double plain[ROUNDS], asked[ROUNDS], spans[ROUNDS], ratio[ROUNDS];
    driver_open();
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    for (int i = 0; i < PAIRS; i++) {
        must(cu.cuda_event_create(&begins[i], 0));
        must(cu.cuda_event_create(&ends[i], 0));
    }
    const char *path = gpu_start("cuda");
    gpu_need("cuda");
    for (int i = -WARM_UP; i < ROUNDS; i++) {
        int at = i < 0 ? 0 : i;
        plain[at] = bare();
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
