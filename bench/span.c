/* bench/span.c [--rounds N] [--spans N] - what a pk_span costs: begin and end beside a region's and
 * beside the floor of two clock reads and a record; a mark; a span that another thread ends; and so
 * many spans, handed over between 64 threads, none of them lost.
 *
 * Beside the times it prints how exact quantiles are for spans of 10 us to 1 h, made by hand.
 */
#include <pk/pk.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "harness.h"
#include "measure/fold/fold.h"

enum { THREADS = 64, BATCH = 1000, N = 4000 };

static pk_region request = PK_REGION("request"), token = PK_REGION("token"),
                 made = PK_REGION("made");
static pk_span ready[N];

/* The rings are emptied between batches: who finds them full takes another way. */
static void drain(void)
{
    if (pk_flush() != PK_OK)
        bench_fail("pk_flush");
}

static void region_pairs(uint64_t n)
{
    while (n--) {
        pk_region_begin(&request);
        pk_region_end(&request);
    }
}

static void span_pairs(uint64_t n)
{
    while (n--) {
        pk_span s = pk_span_begin(&request, n);
        pk_span_end(&s);
    }
}

static void marks(uint64_t n)
{
    pk_span s = pk_span_begin(&request, n);
    while (n--)
        pk_span_mark(&s, &token);
    pk_span_end(&s);
}

static void begin_all(void)
{
    drain();
    for (unsigned i = 0; i < N; i++)
        ready[i] = pk_span_begin(&request, i);
    drain();
}

static void end_them(uint64_t n)
{
    while (n--)
        pk_span_end(&ready[n]);
}

/* ---- many ---- */

static pk_span handed[THREADS][BATCH];
static pthread_barrier_t together;
static uint64_t rounds;

static void *hand_over(void *argument)
{
    unsigned me = (unsigned)(uintptr_t)argument;
    for (uint64_t round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < BATCH; i++)
            handed[me][i] = pk_span_begin(&request, me);
        pthread_barrier_wait(&together);
        for (unsigned i = 0; i < BATCH; i++)
            pk_span_end(&handed[(me + 1) % THREADS][i]);
        pthread_barrier_wait(&together);
    }
    return NULL;
}

static void many(uint64_t spans)
{
    pthread_t threads[THREADS];
    pk_span_counts before = {.size = sizeof before}, after = {.size = sizeof after};
    static pk_stats stats, at_first;
    rounds = spans / THREADS / BATCH;
    pk_get_span_counts(&before);
    pk_region_stats(&request, &at_first);
    uint64_t start = bench_wall_ns();
    pthread_barrier_init(&together, NULL, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, hand_over, (void *)i))
            bench_fail("pthread_create");
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    double seconds = (double)(bench_wall_ns() - start) / 1e9;
    pk_get_span_counts(&after);
    pk_region_stats(&request, &stats);
    printf("%u threads: %llu spans begun, %llu ended, %llu in the distribution, %llu open, %llu "
           "records dropped and counted; %.1f s\n",
           THREADS, (unsigned long long)(after.begun - before.begun),
           (unsigned long long)(after.ended - before.ended),
           (unsigned long long)(stats.count - at_first.count), (unsigned long long)after.open,
           (unsigned long long)(after.dropped - before.dropped), seconds);
}

/* ---- quantiles ---- */

/* As the collector enters a span of that length: the session is not an hour old. */
static void enter(double ns)
{
    pki_fold_lock();
    pki_fold_range(pki_fold_now(), pki_region_id(&made), (uint64_t)ns, 0, 0);
    pki_fold_unlock();
}

static void quantiles(void)
{
    static pk_stats stats;
    double worst = 0;
    enum { SPANS = 10000 };
    const double low = 1e4, high = 3.6e12;
    for (unsigned i = 0; i < SPANS; i++)
        enter(low * pow(high / low, (i + 0.5) / SPANS));
    pk_region_stats(&made, &stats);
    for (double q = 0.001; q < 1; q += 0.001) {
        double exact = low * pow(high / low, (ceil(q * SPANS) - 0.5) / SPANS);
        worst = fmax(worst, fabs((double)pk_stats_quantile(&stats, q) / exact - 1));
    }
    printf("quantiles of %u spans from 10 us to 1 h: off by %.2f %% at most\n", SPANS, 100 * worst);
}

int main(int argc, char **argv)
{
    bench_case cases[] = {
        {.name = "two clock reads and a record", .run = bench_floor_run, .n = N},
        {.name = "region: begin + end", .run = region_pairs, .n = N, .before = drain},
        {.name = "span: begin + end", .run = span_pairs, .n = N, .before = drain},
        {.name = "mark", .run = marks, .n = N, .before = drain},
        {.name = "end of one begun before", .run = end_them, .n = N, .before = begin_all},
    };
    bench_pin(0);
    bench_floor_prepare();
    if (pk_start(pk_options(.backends = "none", .tuning = "flush_ms=3600000")) != PK_OK)
        bench_fail("pk_start");
    bench_rounds(cases, sizeof cases / sizeof *cases, bench_number(argc, argv, "--rounds", 100));
    bench_print("span", cases, sizeof cases / sizeof *cases);
    quantiles();
    if (pk_stop() || pk_start(pk_options(.backends = "none")) != PK_OK)
        bench_fail("pk_start");
    many(bench_number(argc, argv, "--spans", 10000000));
    return pk_stop() != PK_OK;
}
