#include "bench/rounds.h"

#include <pk/bench.h>
#include <pk/private.h>

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/nvml/api.h"
#include "backend/nvml/reading.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/files.h"
#include "base/memory.h"
#include "bench/bench.h"
#include "bench/case.h"
#include "bench/counters.h"
#include "bench/device.h"
#include "bench/environment.h"
#include "bench/forms/document.h"
#include "bench/registry.h"
#include "bench/stats/samples.h"

/* ---- a device's own clock while it is measured ---- */

static bool read_now(pki_bench_case *c, pki_bench_health *health)
{
    c->clocks.read = pki_bench_now(c);
    c->clocks.looked = true;
    return c->device->health(c->timer, health);
}

static bool is_time(const pki_bench_case *c)
{
    return !c->clocks.looked || pki_bench_now(c) - c->clocks.read >= PKI_BENCH_CLOCKS_EVERY;
}

/* ---- warm-up ---- */

/* During the warm-up that began then: does the clock rise no more? */
static bool pki_bench_clocks_risen(pki_bench_case *c, uint64_t began)
{
    pki_bench_clocks *clocks = &c->clocks;
    pki_bench_health health;
    if (is_time(c) && read_now(c, &health) && health.mhz) {
        if (health.mhz > clocks->top * (1 + PKI_BENCH_CLOCKS_RISE)) {
            clocks->top = health.mhz;
            clocks->rose = clocks->read;
        }
    }
    uint64_t now = pki_bench_now(c);
    return clocks->top ? now - clocks->rose >= PKI_BENCH_CLOCKS_STILL
                       : now - began >= PKI_BENCH_CLOCKS_BLIND;
}

/* ---- measurement ---- */

static void mark(pki_bench_case *c)
{
    pki_bench_clocks *clocks = &c->clocks;
    if (clocks->first < c->count)
        memset(c->marks + clocks->first, PK_BENCH_MARK_THROTTLED, c->count - clocks->first);
    c->result.throttled += c->count - clocks->first;
}

static bool is_same(double a, double b)
{
    return fabs(a - b) <= PKI_BENCH_CLOCKS_SAME * PKI_MAX(a, b);
}

static double clock_between(unsigned before, unsigned after)
{
    if (!before || !after)
        return PKI_BENCH_CLOCK_UNKNOWN;
    return is_same(before, after) ? PKI_MIN(before, after) : PKI_BENCH_CLOCK_CHANGED;
}

/* Samples since the last reading lie between two; both judge them. */
static void check(pki_bench_case *c)
{
    pki_bench_clocks *clocks = &c->clocks;
    pki_bench_health health = {.mhz = 0};
    bool told = read_now(c, &health), held = told && *health.held_down != 0;
    if (held || (told && clocks->held))
        mark(c);
    if (held)
        memcpy(clocks->why, health.held_down, sizeof clocks->why);
    for (size_t i = clocks->first; i < c->count; i++)
        c->mhz[i] = clock_between(clocks->last, health.mhz);
    if (health.mhz) {
        clocks->low = clocks->low ? PKI_MIN(clocks->low, health.mhz) : health.mhz;
        clocks->high = PKI_MAX(clocks->high, health.mhz);
    }
    clocks->last = health.mhz;
    clocks->held = held;
    clocks->first = c->count;
}

static void pki_bench_clocks_start(pki_bench_case *c)
{
    c->clocks.low = c->clocks.high = c->clocks.last = 0;
    c->clocks.held = false;
    c->clocks.first = c->count;
    c->clocks.next = 0;
    c->clocks.why[0] = 0;
    c->result.throttled = 0;
    check(c);
}

/* Around the measurement, and after each of its samples. */
static void pki_bench_clocks_check(pki_bench_case *c)
{
    if (is_time(c))
        check(c);
}

/* ---- samples at other clocks are left out ---- */

/* The median of those that are known; 0: none is, or there is no memory. */
static double usual_clock(const pki_bench_case *c)
{
    double *known = malloc(PKI_MAX(c->count, (size_t)1) * sizeof *known);
    size_t n = 0;
    for (size_t i = 0; known && i < c->count; i++)
        if (c->mhz[i] > 0)
            known[n++] = c->mhz[i];
    double usual = n ? pki_samples_select_median(known, n) : 0;
    free(known);
    return usual;
}

static bool is_at(const pki_bench_case *c, size_t i, double usual)
{
    bool other = c->mhz[i] > 0 && usual > 0 && !is_same(c->mhz[i], usual);
    return !(c->marks[i] & PK_BENCH_MARK_THROTTLED) && c->mhz[i] >= 0 && !other;
}

static void keep(pki_bench_case *c, size_t from, size_t to)
{
    c->time[to] = c->time[from];
    c->cpu[to] = c->cpu[from];
    c->at[to] = c->at[from];
    c->overhead[to] = c->overhead[from];
    c->launch[to] = c->launch[from];
    c->mhz[to] = c->mhz[from];
    c->marks[to] = c->marks[from];
    for (unsigned s = 0; s < c->series_count; s++)
        if (from < c->series[s].count)
            c->series[s].values[to] = c->series[s].values[from];
}

/* A figure that not every sample has had stays whole: nobody knows whose its values are. */
static bool series_are_whole(const pki_bench_case *c)
{
    for (unsigned s = 0; s < c->series_count; s++)
        if (c->series[s].count != c->count)
            return false;
    return true;
}

/* How many of the samples stay: those at the usual clock, or all, where that would leave few. */
static size_t count_kept(const pki_bench_case *c, double usual)
{
    size_t all = c->count, kept = 0;
    for (size_t i = 0; i < all; i++)
        kept += is_at(c, i, usual);
    return kept * 2 < all || kept < 2 || !series_are_whole(c) ? all : kept;
}

/* How many. */
static size_t leave_out(pki_bench_case *c, double usual)
{
    size_t all = c->count, kept = count_kept(c, usual);
    if (kept == all)
        return 0;
    kept = 0;
    for (size_t i = 0; i < all; i++)
        if (is_at(c, i, usual))
            keep(c, i, kept++);
    c->count = kept;
    for (unsigned s = 0; s < c->series_count; s++)
        c->series[s].count = kept;
    return all - kept;
}

/* Of what is kept. */
static void note_range(pki_bench_case *c, size_t out)
{
    pki_bench_clocks *clocks = &c->clocks;
    for (size_t i = 0; i < c->count && out; i++) {
        unsigned mhz = (unsigned)PKI_MAX(c->mhz[i], 0);
        clocks->low = i ? PKI_MIN(clocks->low, mhz) : mhz;
        clocks->high = i ? PKI_MAX(clocks->high, mhz) : mhz;
    }
    c->result.clock_low_mhz = clocks->low;
    c->result.clock_high_mhz = clocks->high;
}

static void pki_bench_clocks_finish(pki_bench_case *c)
{
    char text[192] = "";
    check(c);
    size_t all = c->count;
    double usual = usual_clock(c);
    size_t out = leave_out(c, usual);
    pk_bench_result *r = &c->result;
    note_range(c, out);
    const char *few = out && c->count < c->options.min_samples ? ", fewer stay than asked for" : "";
    if (out && r->throttled)
        snprintf(text, sizeof text,
                 "%zu of %zu samples are left out%s: the GPU's clock was held down (%.70s)", out,
                 all, few, c->clocks.why);
    else if (out)
        snprintf(text, sizeof text,
                 "%zu of %zu samples are left out%s: the GPU's clock was not at %.0f MHz", out, all,
                 few, usual);
    else if (r->throttled)
        snprintf(text, sizeof text,
                 "throttled: in %zu of %zu samples the GPU's clock was held "
                 "down (%.70s)",
                 (size_t)r->throttled, all, c->clocks.why);
    else if (!is_same(r->clock_low_mhz, r->clock_high_mhz))
        snprintf(text, sizeof text, "the GPU's clock went between %u and %u MHz meanwhile",
                 r->clock_low_mhz, r->clock_high_mhz);
    pki_bench_case_note(c, text);
}

/* ---- one sample ---- */

static void run_all(pki_bench_case *c, uint64_t iterations)
{
    for (unsigned i = 0; i < c->options.threads; i++) {
        memset(&c->runs[i], 0, sizeof c->runs[i]);
        c->runs[i].owner = c;
        c->runs[i].thread = i;
        c->runs[i].iterations = iterations;
    }
    if (c->options.before)
        c->options.before(c->options.user);
    if (c->team)
        pki_bench_team_run(c->team);
    else
        pki_bench_run_thread(c, 0);
    pki_bench_queue_release(c, iterations); /* a body that left its loop has not */
    if (c->options.after)
        c->options.after(c->options.user);
}

/* A body that has not said that it is skipped has to have gone through its loop. */
static bool complete(pki_bench_case *c)
{
    for (unsigned i = 0; i < c->options.threads && pki_bench_case_is_fine(c); i++) {
        if (!c->runs[i].begun)
            pki_bench_case_abandon(c, PK_BENCH_OUTCOME_FAILED,
                                   "its body has no loop (PK_BENCH_LOOP)");
        else if (!c->runs[i].ended)
            pki_bench_case_abandon(c, PK_BENCH_OUTCOME_FAILED, "its loop was left before its end");
    }
    return pki_bench_case_is_fine(c);
}

/* What reading the clocks added to a thread's time. */
static double clock_part(const pk_bench_run *run, double reading)
{
    return reading * (double)(1 + run->pauses);
}

/* From the first thread's start to the last one's end, pauses apart; in *part what was subtracted.
 */
static double wall_of(const pki_bench_case *c, double *part)
{
    double longest = *part = 0, reading = c->engine->overhead.clock;
    uint64_t start = UINT64_MAX;
    for (unsigned i = 0; i < c->options.threads; i++)
        start = PKI_MIN(start, c->runs[i].start);
    for (unsigned i = 0; i < c->options.threads; i++) {
        const pk_bench_run *run = &c->runs[i];
        double taken = (double)(run->end - start - run->paused), clock = clock_part(run, reading);
        if (taken - clock > longest) {
            longest = taken - clock;
            *part = clock;
        }
    }
    return longest;
}

static double cpu_of(const pki_bench_case *c, double *part)
{
    double sum = *part = 0, reading = c->engine->overhead.cpu_clock;
    for (unsigned i = 0; i < c->options.threads; i++) {
        const pk_bench_run *run = &c->runs[i];
        double used = (double)(run->cpu_end - run->cpu_start - run->cpu_paused);
        double clock = PKI_MIN(clock_part(run, reading), used);
        sum += used - clock;
        *part += clock;
    }
    return sum;
}

static double manual_of(const pki_bench_case *c)
{
    double longest = c->runs[0].manual;
    for (unsigned i = 1; i < c->options.threads; i++)
        longest = PKI_MAX(longest, c->runs[i].manual);
    return longest;
}

static double time_of(pki_bench_case *c, const pki_bench_sample *s)
{
    double ns = 0;
    switch (c->options.clock) {
    case PK_BENCH_CLOCK_CPU:
        return s->cpu / c->options.threads;
    case PK_BENCH_CLOCK_MANUAL:
        ns = manual_of(c);
        break;
    case PK_BENCH_CLOCK_GPU:
        if (!c->device->elapsed(c->timer, &ns))
            pki_bench_case_abandon(c, PK_BENCH_OUTCOME_FAILED, c->device->why(c->timer));
        break;
    default:
        return s->wall;
    }
    if (!(ns >= 0) || !isfinite(ns))
        pki_bench_case_abandon(c, PK_BENCH_OUTCOME_FAILED, "its time is negative or not a number");
    return ns;
}

bool pki_bench_case_run_sample(pki_bench_case *c, uint64_t iterations, pki_bench_sample *sample)
{
    memset(sample, 0, sizeof *sample);
    if (!pki_bench_case_is_fine(c))
        return false;
    run_all(c, iterations);
    if (!complete(c))
        return false;
    sample->iterations = iterations;
    double wall_part, cpu_part;
    sample->wall = wall_of(c, &wall_part);
    sample->cpu = cpu_of(c, &cpu_part);
    sample->time = time_of(c, sample);
    c->clock_part = c->options.clock == PK_BENCH_CLOCK_WALL  ? wall_part
                    : c->options.clock == PK_BENCH_CLOCK_CPU ? cpu_part / c->options.threads
                                                             : 0;
    return pki_bench_case_is_fine(c);
}

/* ---- keeping it ---- */

static void pki_bench_figures_record(pki_bench_case *c, const pki_bench_sample *sample);

/* ns per iteration of a sample's time, without the loop; what was subtracted goes to *overhead. */
static double pki_bench_case_per_iteration(const pki_bench_case *c, double time,
                                           uint64_t iterations, double *overhead)
{
    const pki_bench_overhead *o = &c->engine->overhead;
    double taken = time / (double)iterations, left = taken;
    if (c->options.clock == PK_BENCH_CLOCK_WALL || c->options.clock == PK_BENCH_CLOCK_CPU)
        left = pki_bench_subtract_loop(taken, o->loop_beside);
    *overhead = taken - left;
    return left;
}

static bool grow(double **values, size_t room)
{
    double *grown = realloc(*values, room * sizeof **values);
    if (grown)
        *values = grown;
    return grown != NULL;
}

/* What is known of a device's samples only. */
static bool make_room_for_device(pki_bench_case *c, size_t room)
{
    uint8_t *marks = realloc(c->marks, room);
    c->marks = marks ? marks : c->marks;
    return marks && grow(&c->launch, room) && grow(&c->mhz, room);
}

static bool make_room_for_one(pki_bench_case *c)
{
    if (c->count < c->room)
        return true;
    size_t room = c->room ? 2 * c->room : 64;
    if (!grow(&c->time, room) || !grow(&c->cpu, room) || !grow(&c->at, room) ||
        !grow(&c->overhead, room) || (c->timer && !make_room_for_device(c, room)))
        return false;
    c->room = room;
    return true;
}

static void store(pki_bench_case *c, const pki_bench_sample *sample, uint64_t began)
{
    double overhead, rest, n = (double)sample->iterations;
    if (c->count == 0)
        c->first_at = began;
    c->time[c->count] =
        pki_bench_case_per_iteration(c, sample->time, sample->iterations, &overhead);
    c->cpu[c->count] = pki_bench_case_per_iteration(c, sample->cpu / c->options.threads,
                                                    sample->iterations, &rest) *
                       c->options.threads;
    c->at[c->count] = (double)(began - c->first_at);
    c->overhead[c->count] = overhead + c->clock_part / n;
    if (c->timer) {
        c->launch[c->count] = sample->wall / n;
        c->marks[c->count] = 0;
        c->mhz[c->count] = PKI_BENCH_CLOCK_UNKNOWN;
    }
    pki_bench_figures_record(c, sample);
    c->count++;
}

/* Takes one and keeps it, unless the watchdog ended it: that is counted in c->queue.lost. False as
 * above, or without memory (c->result.stopped says so then). */
static bool pki_bench_case_record_sample(pki_bench_case *c)
{
    uint64_t before = pki_bench_now(c);
    pki_bench_sample sample;
    if (!make_room_for_one(c)) {
        c->result.stopped = PK_BENCH_STOP_MEMORY;
        return false;
    }
    if (!pki_bench_case_run_sample(c, c->iterations, &sample))
        return false;
    if (c->queue.forced)
        c->queue.lost++;
    else
        store(c, &sample, before);
    if (c->timer)
        pki_bench_clocks_check(c);
    c->spent += pki_bench_now(c) - before;
    return true;
}

/* ---- what a benchmark counts itself (pk_bench_add_counter), over its samples ---- */

static pki_bench_series *series_of(pki_bench_case *c, const char *name)
{
    for (unsigned i = 0; i < c->series_count; i++)
        if (strcmp(c->series[i].name, name) == 0)
            return &c->series[i];
    if (c->series_count == PKI_BENCH_FIGURES)
        return NULL;
    pki_bench_series *made = &c->series[c->series_count++];
    memset(made, 0, sizeof *made);
    memcpy(made->name, name, sizeof made->name);
    return made;
}

static bool push(pki_bench_series *series, double value)
{
    if (!pki_array_fit(&series->values, &series->room, series->count + 1, sizeof(double)))
        return false;
    series->values[series->count++] = value;
    return true;
}

static double in_unit(const pki_bench_figure *figure, double sum, const pki_bench_sample *sample)
{
    switch (figure->unit) {
    case PK_BENCH_UNIT_PER_ITERATION:
        return sum / (double)sample->iterations;
    case PK_BENCH_UNIT_PER_SECOND:
        return sample->time > 0 ? sum / (sample->time * 1e-9) : 0;
    default:
        return sum;
    }
}

/* The sum over all threads, each thread's figure being looked up once, where it first occurs. */
static bool occurs_before(const pki_bench_case *c, unsigned thread, const char *name)
{
    for (unsigned i = 0; i < thread; i++)
        for (unsigned j = 0; j < c->runs[i].figure_count; j++)
            if (strcmp(c->runs[i].figures[j].name, name) == 0)
                return true;
    return false;
}

static double sum_of(const pki_bench_case *c, const char *name)
{
    double sum = 0;
    for (unsigned i = 0; i < c->options.threads; i++)
        for (unsigned j = 0; j < c->runs[i].figure_count; j++)
            if (strcmp(c->runs[i].figures[j].name, name) == 0)
                sum += c->runs[i].figures[j].value;
    return sum;
}

/* Takes the figures of the sample that c->runs hold. What finds no room is counted. */
static void pki_bench_figures_record(pki_bench_case *c, const pki_bench_sample *sample)
{
    for (unsigned i = 0; i < c->options.threads; i++) {
        const pk_bench_run *run = &c->runs[i];
        c->figures_lost += run->figures_lost;
        for (unsigned j = 0; j < run->figure_count; j++) {
            const pki_bench_figure *figure = &run->figures[j];
            if (occurs_before(c, i, figure->name))
                continue;
            pki_bench_series *series = series_of(c, figure->name);
            double value = in_unit(figure, sum_of(c, figure->name), sample);
            if (!series || !push(series, value))
                c->figures_lost++;
        }
    }
}

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

/* What a sample of this benchmark should take, ns. */
static double pki_bench_sample_time(const pki_bench_case *c)
{
    double least = least_time(c), most = (double)c->options.max_time / c->options.min_samples;
    if (c->options.sample_time)
        return (double)c->options.sample_time;
    return PKI_MAX(PKI_MIN(PKI_MAX(PKI_BENCH_SAMPLE_TIME, least), most), least);
}

/* After a sample that the watchdog ended: fewer iterations from here on, or none are queued. */
static void pki_bench_queue_shorten(pki_bench_case *c, uint64_t iterations)
{
    if (iterations <= 1) {
        pki_bench_queue_disable(c);
        return;
    }
    c->queue.most = PKI_MAX(PKI_MIN(c->queue.fits, iterations - 1), 1);
    c->iterations = PKI_MIN(c->iterations, c->queue.most);
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

/* One iteration, before any that counts: what is loaded at first use is there. */
static bool pki_bench_touch(pki_bench_case *c)
{
    pki_bench_sample sample;
    c->result.warmup_iterations++;
    return pki_bench_case_run_sample(c, 1, &sample);
}

/* Only the iterations, one sample after the other until it is long enough. */
static bool pki_bench_calibrate(pki_bench_case *c)
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

/* Finds c->iterations, unless they are given, and warms up. False if it was skipped or failed. */
static bool pki_bench_warm(pki_bench_case *c)
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

/* Will so many samples stay? Those at other clocks are left out in the end, so others are taken in
 * their place: as many as were asked for at most, then half is all that a clock may take. */
static bool are_kept(pki_bench_case *c, size_t wanted)
{
    if (!c->timer || c->count / 2 >= wanted)
        return true;
    if (c->count < c->clocks.next)
        return false;
    check(c);
    size_t kept = count_kept(c, usual_clock(c));
    if (kept >= wanted)
        return true;
    c->clocks.next = c->count + (wanted - kept);
    return false;
}

static bool enough(pki_bench_case *c)
{
    const struct pk_bench_options *o = &c->options;
    if (c->count == 0)
        return false; /* the watchdog ended them all, so far */
    if (c->result.stopped == PK_BENCH_STOP_NONE && c->count >= o->max_samples &&
        are_kept(c, o->max_samples))
        c->result.stopped = PK_BENCH_STOP_SAMPLES;
    if (c->result.stopped == PK_BENCH_STOP_NONE && c->spent >= o->max_time)
        c->result.stopped = PK_BENCH_STOP_TIME;
    if (c->result.stopped != PK_BENCH_STOP_NONE)
        return true;
    if (c->count < c->next_check || c->count < o->min_samples || c->spent < o->min_time ||
        c->count >= o->max_samples || !are_kept(c, o->min_samples))
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

/* One more sample, kept. False when there are enough, and c->result.stopped says why, or when it
 * was skipped or failed. */
static bool pki_bench_sample_case(pki_bench_case *c)
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

/* ---- driven from outside ---- */

struct pki_bench_handle {
    pki_bench_case c;
};

static pk_status open_case(pki_bench_case *c, size_t index)
{
    size_t count;
    pk_status status = pki_bench_instances(&count);
    const pki_bench_instance *instance = pki_bench_instance_at(index);
    if (status == PK_OK && !instance)
        return pki_bench_fail(PK_ENOENT, "there is no benchmark of number %zu", index);
    if (status == PK_OK)
        status = pki_bench_instance_case(instance, pki_bench_engine_get(), NULL, c);
    if (status != PK_OK)
        return status;
    status = pki_bench_case_open(c);
    if (status == PK_OK && !pki_bench_case_is_fine(c))
        status = pki_bench_fail(PK_ENOTSUP, "%s: %s", c->name, c->result.reason);
    return status;
}

pk_status pk_bench_open_(size_t index, pki_bench_handle **handle)
{
    int saved = errno;
    if (!handle)
        return pki_bench_fail(PK_EINVAL, "there is nowhere to put the benchmark");
    *handle = calloc(1, sizeof **handle);
    if (!*handle)
        return pki_bench_fail(PK_ENOMEM, "no memory for a benchmark");
    pk_status status = open_case(&(*handle)->c, index);
    if (status != PK_OK) {
        pk_bench_close_(*handle);
        *handle = NULL;
    }
    errno = saved;
    return status;
}

/* Once more if the watchdog ended it, without queueing. */
static bool sample_once(pki_bench_case *c, uint64_t iterations, pki_bench_sample *sample)
{
    bool loaded = !c->timer || c->queue.loaded || pki_bench_touch(c);
    if (!loaded || !pki_bench_case_run_sample(c, iterations, sample))
        return false;
    if (!c->queue.forced)
        return true;
    pki_bench_queue_disable(c);
    return pki_bench_case_run_sample(c, iterations, sample);
}

pk_status pk_bench_take_(pki_bench_handle *handle, uint64_t iterations, pki_bench_sample *sample)
{
    int saved = errno;
    if (!handle || !sample)
        return pki_bench_fail(PK_EINVAL,
                              "no benchmark is open, or there is nowhere to put the sample");
    pki_bench_case *c = &handle->c;
    double overhead;
    bool fine = iterations || c->iterations || pki_bench_calibrate(c);
    fine = fine && sample_once(c, iterations ? iterations : c->iterations, sample);
    errno = saved;
    if (!fine)
        return pki_bench_fail(PK_ENOTSUP, "%s: %s", c->name, c->result.reason);
    double n = (double)sample->iterations;
    sample->time = n * pki_bench_case_per_iteration(c, sample->time, sample->iterations, &overhead);
    return PK_OK;
}

void pk_bench_close_(pki_bench_handle *handle)
{
    if (!handle)
        return;
    pki_bench_case_close(&handle->c);
    pki_bench_case_finish(&handle->c);
    free(handle);
}

/* ---- several benchmarks measured in alternation ---- */

#define PKI_BENCH_TURN 5000000u /* ns of a benchmark's turn, one sample at least */
#define PKI_BENCH_SETTLE                                                                           \
    1000000u /* ns: samples below that are preceded by one that does not count,                    \
                                     since whoever had the processor before left it his caches */

typedef struct set {
    pki_bench_case **order; /* those that are not done come first */
    size_t left, done, count;
    pki_random random;
    pki_bench_progress *progress;
    void *user;
} set;

static void show(const set *s, const pki_bench_case *c)
{
    if (s->progress)
        s->progress(s->user, c, s->done, s->count);
}

/* True when it needs no more. */
static bool turn(const set *s, pki_bench_case *c)
{
    uint64_t start = pki_bench_now(c);
    pki_bench_sample dropped;
    double each = pki_bench_sample_time(c);
    if (s->count > 1 && each < PKI_BENCH_SETTLE && c->iterations > 1 &&
        !pki_bench_case_run_sample(c, c->iterations, &dropped))
        return true;
    do {
        if (!pki_bench_sample_case(c))
            return true;
    } while (pki_bench_now(c) - start < PKI_BENCH_TURN);
    return false;
}

static void shuffle(set *s)
{
    for (size_t i = s->left; i > 1; i--) {
        size_t j = pki_random_below(&s->random, i);
        pki_bench_case *kept = s->order[i - 1];
        s->order[i - 1] = s->order[j];
        s->order[j] = kept;
    }
}

/* Takes it out; its place is the last one's. */
static void retire(set *s, size_t i)
{
    s->order[i] = s->order[--s->left];
    s->done++;
}

static void measure_in_rounds(set *s)
{
    while (s->left) {
        shuffle(s);
        for (size_t i = 0; i < s->left;) {
            show(s, s->order[i]);
            if (turn(s, s->order[i]))
                retire(s, i);
            else
                i++;
        }
    }
}

static pk_status prepare(set *s, pki_bench_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pk_status status = pki_bench_case_open(&cases[i]);
        if (status != PK_OK)
            return status;
        show(s, &cases[i]);
        if (pki_bench_case_is_fine(&cases[i]) && pki_bench_warm(&cases[i]))
            s->order[s->left++] = &cases[i];
        else
            s->done++;
    }
    return PK_OK;
}

static pk_status run_group(set *s, pki_bench_case *cases, size_t count)
{
    pk_status status = prepare(s, cases, count);
    if (status == PK_OK) {
        measure_in_rounds(s);
        for (size_t i = 0; i < count; i++)
            pki_bench_count_events(&cases[i]);
    }
    for (size_t i = 0; i < count; i++)
        pki_bench_case_close(&cases[i]);
    s->left = 0;
    return status;
}

pk_status pki_bench_run_rounds(pki_bench_case *cases, size_t count, bool together, uint64_t seed,
                               pki_bench_progress *progress, void *user)
{
    pki_bench_case **order = calloc(count + 1, sizeof *order);
    set s = {order, 0, 0, together ? count : 1, {seed}, progress, user};
    pk_status status = PK_OK;
    if (!order)
        return pki_bench_fail(PK_ENOMEM, "no memory to list %zu benchmarks", count);
    if (together)
        status = run_group(&s, cases, count);
    for (size_t i = 0; !together && i < count && status == PK_OK; i++)
        status = run_group(&s, &cases[i], 1);
    show(&s, NULL);
    free(order);
    return status;
}
