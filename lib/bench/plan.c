#include "bench/plan.h"

#include "base/compiler.h"
#include "bench/stats/sample_stats.h"

#include <stdlib.h>
#include <string.h>

/* ---- how many iterations ---- */

/* Below this its clock is too coarse for it. */
static double least_time(const pki_bench_case *c)
{
    const pki_bench_overhead *o = &c->engine->overhead;
    if (c->timer)
        return PKI_BENCH_MARKS * c->device->resolution / c->options.precision;
    double step = PKI_MAX(o->step, o->clock);
    if (c->options.clock == PK_BENCH_CLOCK_CPU)
        step = PKI_MAX(step, o->cpu_clock);
    return PKI_BENCH_FINENESS * step;
}

double pki_bench_sample_time(const pki_bench_case *c)
{
    double least = least_time(c), most = (double)c->options.max_time / c->options.min_samples;
    if (c->options.sample_time)
        return (double)c->options.sample_time;
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

static uint64_t iterations_most(const pki_bench_case *c)
{
    return c->queue.on ? c->queue.most : PKI_BENCH_ITERATIONS_MOST;
}

/* One sample while the number is still sought; the wall's time decides, whichever counts, but for a
 * device's: launching is soon done. Done when it took half of what it should: then the number can
 * be computed. */
static bool seek(pki_bench_case *c, double wanted, bool *found)
{
    pki_bench_sample sample;
    if (!pki_bench_case_run_sample(c, c->iterations, &sample))
        return false;
    c->result.warmup_iterations += c->iterations;
    if (c->queue.forced) {
        *found = c->iterations > 1;
        pki_bench_queue_shorten(c, c->iterations);
        return true;
    }
    double taken = c->timer ? sample.time : sample.wall;
    uint64_t most = iterations_most(c), next = iterations_for(c->iterations, taken, wanted);
    *found = taken >= wanted / 2 || c->iterations >= most;
    c->iterations = PKI_MIN(*found ? next : PKI_MIN(next, 10 * c->iterations), most);
    return true;
}

bool pki_bench_touch(pki_bench_case *c)
{
    pki_bench_sample sample;
    c->result.warmup_iterations++;
    return pki_bench_case_run_sample(c, 1, &sample);
}

bool pki_bench_calibrate(pki_bench_case *c)
{
    bool found = c->options.iterations > 0;
    c->iterations = found ? c->options.iterations : 1;
    if (c->timer && !c->queue.loaded && !pki_bench_touch(c))
        return false;
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
        if (c->queue.forced)
            pki_bench_queue_shorten(c, c->options.iterations ? 1 : c->iterations);
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
        c->result.warmup_steady = !faster && pki_bench_now(c) - start >= PKI_BENCH_WARM_LEAST &&
                                  (!c->timer || pki_bench_clocks_risen(c, start));
        if (!c->options.iterations && c->options.clock != PK_BENCH_CLOCK_MANUAL)
            c->iterations =
                PKI_MIN(iterations_for(1, after, pki_bench_sample_time(c)), iterations_most(c));
        before = after;
    }
    return true;
}

/* What is to be cold only has to be there: its code and its data have been touched once. */
static bool warm_cold(pki_bench_case *c)
{
    c->result.warmup_steady = true;
    return pki_bench_touch(c);
}

bool pki_bench_warm(pki_bench_case *c)
{
    uint64_t start = pki_bench_now(c);
    bool fine = pki_bench_calibrate(c);
    double longest = pki_bench_sample_time(c) * PKI_BENCH_WINDOW;
    if (fine && c->options.cold && !c->timer)
        fine = warm_cold(c);
    else if (fine && (double)(pki_bench_now(c) - start) + longest < (double)c->options.max_warmup)
        fine = warm_by_windows(c, start);
    if (fine && c->timer)
        pki_bench_clocks_start(c);
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

static bool enough(pki_bench_case *c)
{
    const struct pk_bench_options *o = &c->options;
    if (c->count == 0)
        return false; /* the watchdog ended them all, so far */
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

/* The watchdog ended too many: what there is was queued, and what follows is not. */
static bool start_anew(pki_bench_case *c)
{
    pki_bench_queue_disable(c);
    c->queue.lost = 0;
    c->count = c->next_check = 0;
    c->spent = 0;
    for (unsigned i = 0; i < c->series_count; i++)
        c->series[i].count = 0;
    if (!pki_bench_calibrate(c))
        return false;
    pki_bench_clocks_start(c);
    return true;
}

bool pki_bench_sample_case(pki_bench_case *c)
{
    bool more = pki_bench_case_record_sample(c);
    if (more && c->queue.lost > PKI_BENCH_LOST)
        more = start_anew(c);
    else if (more)
        more = !enough(c);
    if (!more && c->timer)
        pki_bench_clocks_finish(c);
    return more;
}
