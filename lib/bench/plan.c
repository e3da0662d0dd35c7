#include "bench/plan.h"

#include "base/compiler.h"
#include "bench/stats/sample_stats.h"

#include <stdlib.h>
#include <string.h>

/* ---- how many iterations ---- */

double pki_bench_sample_time(const pki_bench_case *c)
{
    const pki_bench_overhead *o = &c->engine->overhead;
    double least = PKI_BENCH_FINENESS * PKI_MAX(o->step, o->clock);
    double most = (double)c->options.max_time / c->options.min_samples;
    if (c->options.sample_time)
        return (double)c->options.sample_time;
    if (c->options.clock == PK_BENCH_CLOCK_CPU)
        least = PKI_MAX(least, PKI_BENCH_FINENESS * o->cpu_clock);
    return PKI_MAX(PKI_MIN(PKI_MAX(PKI_BENCH_SAMPLE_TIME, least), most), least);
}

/* So many of them take `wanted`, if n took `taken`. */
static uint64_t iterations_for(uint64_t n, double taken, double wanted)
{
    if (!(taken > 0))
        return PKI_BENCH_ITERATIONS_MOST;
    double enough = (double)n * wanted / taken;
    if (enough >= (double)PKI_BENCH_ITERATIONS_MOST)
        return PKI_BENCH_ITERATIONS_MOST;
    return enough < 1 ? 1 : (uint64_t)(enough + 0.5);
}

/* One sample while the number is still sought; the wall's time decides, whichever counts, but for a
 * device's: launching is soon done. Done when it took half of what it should: then the number can
 * be computed. */
static bool seek(pki_bench_case *c, double wanted, bool *found)
{
    pki_bench_sample sample;
    if (!pki_bench_case_run_sample(c, c->iterations, &sample))
        return false;
    double taken = c->timer ? sample.time : sample.wall;
    *found = taken >= wanted / 2 || c->iterations >= PKI_BENCH_ITERATIONS_MOST;
    uint64_t next = iterations_for(c->iterations, taken, wanted);
    c->result.warmup_iterations += c->iterations;
    c->iterations = *found ? next : PKI_MIN(next, 10 * c->iterations);
    return true;
}

bool pki_bench_calibrate(pki_bench_case *c)
{
    bool found = c->options.iterations > 0;
    c->iterations = found ? c->options.iterations : 1;
    while (!found)
        if (!seek(c, pki_bench_sample_time(c), &found))
            return false;
    return true;
}

/* ---- warm-up ---- */

/* One window's median, per iteration. */
static bool window(pki_bench_case *c, double *median)
{
    double times[PKI_BENCH_WINDOW];
    for (int i = 0; i < PKI_BENCH_WINDOW; i++) {
        pki_bench_sample sample;
        if (!pki_bench_case_run_sample(c, c->iterations, &sample))
            return false;
        times[i] = sample.time / (double)sample.iterations;
        c->result.warmup_iterations += c->iterations;
    }
    *median = pki_samples_select_median(times, PKI_BENCH_WINDOW);
    return true;
}

static bool warm_by_windows(pki_bench_case *c, uint64_t start)
{
    double before = 0, after = 0;
    if (!window(c, &before))
        return false;
    while (!c->result.warmup_steady && pki_bench_now(c) - start < c->options.max_warmup) {
        if (!window(c, &after))
            return false;
        bool faster = after < before * (1 - PKI_BENCH_FASTER);
        c->result.warmup_steady = !faster && pki_bench_now(c) - start >= PKI_BENCH_WARM_LEAST;
        if (!c->options.iterations && c->options.clock != PK_BENCH_CLOCK_MANUAL)
            c->iterations = iterations_for(1, after, pki_bench_sample_time(c));
        before = after;
    }
    return true;
}

/* What is to be cold only has to be there: its code and its data have been touched once. */
static bool touch(pki_bench_case *c)
{
    pki_bench_sample sample;
    c->result.warmup_iterations += c->iterations;
    c->result.warmup_steady = true;
    return pki_bench_case_run_sample(c, c->iterations, &sample);
}

bool pki_bench_warm(pki_bench_case *c)
{
    uint64_t start = pki_bench_now(c);
    bool fine = pki_bench_calibrate(c);
    double longest = pki_bench_sample_time(c) * PKI_BENCH_WINDOW;
    if (fine && c->options.cold)
        fine = touch(c);
    else if (fine && (double)(pki_bench_now(c) - start) + longest < (double)c->options.max_warmup)
        fine = warm_by_windows(c, start);
    if (fine && c->timer)
        c->device->warmed_up(c->timer);
    c->result.warmup_time = pki_bench_now(c) - start;
    return fine;
}

/* ---- enough ---- */

static bool precise(pki_bench_case *c)
{
    double *sorted = malloc(c->count * sizeof *sorted);
    if (!sorted)
        return false; /* the bounds of time and number hold */
    memcpy(sorted, c->time, c->count * sizeof *sorted);
    pki_samples_sort(sorted, c->count);
    double median = pki_samples_median(sorted, c->count), level = c->options.confidence;
    double dependence = pki_samples_dependence(c->time, c->count, median);
    pki_interval is = pki_samples_sign_interval(sorted, c->count, dependence, level);
    free(sorted);
    return pki_samples_sign_supported(c->count, dependence, level) &&
           (is.high - is.low) / 2 <= c->options.precision * median;
}

bool pki_bench_enough(pki_bench_case *c)
{
    const struct pk_bench_options *o = &c->options;
    if (c->result.stopped == PK_BENCH_STOP_NONE && c->count >= o->max_samples)
        c->result.stopped = PK_BENCH_STOP_SAMPLES;
    if (c->result.stopped == PK_BENCH_STOP_NONE && c->spent >= o->max_time)
        c->result.stopped = PK_BENCH_STOP_TIME;
    if (c->result.stopped != PK_BENCH_STOP_NONE)
        return true;
    if (c->count < c->next_check || c->count < o->min_samples || c->spent < o->min_time)
        return false;
    c->next_check = c->count + c->count / 10 + 1;
    if (precise(c))
        c->result.stopped = PK_BENCH_STOP_PRECISE;
    return c->result.stopped != PK_BENCH_STOP_NONE;
}
