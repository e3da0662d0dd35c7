#include "bench/case.h"

#include "base/compiler.h"
#include "bench/fail.h"
#include "bench/allocations.h"
#include "bench/caches.h"
#include "bench/figures.h"
#include "bench/team.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- life ---- */

void pki_bench_case_init(pki_bench_case *c, const pki_bench_engine *engine, const char *name,
                         const struct pk_bench_options *whole)
{
    memset(c, 0, sizeof *c);
    c->engine = engine;
    c->name = name;
    c->options = *whole;
    c->iterations = whole->iterations;
    c->bytes = whole->bytes;
    c->flops = whole->flops;
    c->items = whole->items;
    c->result.instructions = c->result.cycles = -1;
    c->result.cache_misses = c->result.branch_misses = -1;
    c->result.allocations = c->result.allocated_bytes = -1;
}

static void run_thread(void *arg, unsigned thread)
{
    pki_bench_case *c = arg;
    pk_bench_run *run = &c->runs[thread];
    c->body(run);
    if (!run->begun && c->team)
        pki_bench_team_meet(c->team);
}

#define COLD_MOST ((size_t)256 << 20)
#define COLD_UNKNOWN ((size_t)64 << 20)

/* Twice the largest cache, so that whatever was there has been replaced. */
static size_t cold_bytes(pki_bench_case *c)
{
    if (c->engine->cold_bytes)
        return c->engine->cold_bytes;
    size_t largest = pki_bench_largest_cache();
    if (2 * largest > COLD_MOST)
        pki_bench_case_note(c, "the largest cache is not emptied whole: 256 MiB are read");
    return largest ? PKI_MIN(2 * largest, COLD_MOST) : COLD_UNKNOWN;
}

static bool prepare_cold(pki_bench_case *c)
{
    size_t bytes = cold_bytes(c);
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return false;
    memset(block, 1, bytes); /* else all of it is one page of zeros */
    c->cold = block;
    c->cold_words = bytes / sizeof *c->cold;
    return true;
}

static void find_device(pki_bench_case *c)
{
    const char *why_not = "";
    c->device = c->engine->device ? c->engine->device : pki_bench_device_find(&why_not);
    if (!c->device)
        pki_bench_case_abandon(c, PK_BENCH_OUTCOME_SKIPPED, why_not);
}

/* After the set-up, which may have made the stream's context current. */
static void open_timer(pki_bench_case *c)
{
    char reason[192] = "";
    c->timer = c->device->open(c->options.stream, c->options.cold, reason, sizeof reason);
    if (c->timer)
        pki_bench_queue_open(c);
    else
        pki_bench_case_abandon(c, PK_BENCH_OUTCOME_SKIPPED, reason);
}

static pk_status make_room(pki_bench_case *c)
{
    unsigned threads = c->options.threads;
    c->runs = calloc(threads, sizeof *c->runs);
    if (!c->runs)
        return pki_bench_fail(PK_ENOMEM, "%s: no memory for its threads", c->name);
    if (c->options.cold && c->options.clock != PK_BENCH_CLOCK_GPU && !prepare_cold(c))
        return pki_bench_fail(PK_ENOMEM, "%s: no memory to empty the caches with", c->name);
    if (threads > 1)
        c->team = pki_bench_team_create(threads, run_thread, c);
    if (threads > 1 && !c->team)
        return pki_bench_fail(errno == ENOMEM ? PK_ENOMEM : PK_ETHREAD,
                              "%s: %u threads could not be made", c->name, threads);
    return PK_OK;
}

pk_status pki_bench_case_open(pki_bench_case *c)
{
    c->opened = true;
    if (c->options.clock == PK_BENCH_CLOCK_GPU)
        find_device(c);
    if (!pki_bench_case_is_fine(c))
        return PK_OK;
    pk_status status = make_room(c);
    if (status != PK_OK)
        return status;
    if (c->options.setup && c->options.setup(c->options.user) != 0)
        pki_bench_case_abandon(c, PK_BENCH_OUTCOME_FAILED, "its set-up failed");
    else
        c->set_up = true;
    if (c->set_up && c->device)
        open_timer(c);
    return PK_OK;
}

void pki_bench_case_close(pki_bench_case *c)
{
    if (!c->opened)
        return;
    c->opened = false;
    if (c->set_up && c->options.teardown)
        c->options.teardown(c->options.user);
    c->set_up = false;
    pki_bench_team_destroy(c->team);
    c->team = NULL;
    pki_bench_queue_close(c);
    if (c->timer)
        c->device->close(c->timer);
    c->timer = NULL;
    if (c->cold)
        munmap(c->cold, c->cold_words * sizeof *c->cold);
    c->cold = NULL;
    free(c->runs);
    c->runs = NULL;
}

void pki_bench_case_finish(pki_bench_case *c)
{
    free(c->time);
    free(c->cpu);
    free(c->at);
    free(c->overhead);
    free(c->launch);
    free(c->marks);
    for (unsigned i = 0; i < c->series_count; i++)
        free(c->series[i].values);
    c->time = c->cpu = c->at = c->overhead = c->launch = NULL;
    c->marks = NULL;
    c->count = c->room = 0;
    c->series_count = 0;
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
        run_thread(c, 0);
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

double pki_bench_case_per_iteration(const pki_bench_case *c, double time, uint64_t iterations,
                                    double *overhead)
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
    return marks && grow(&c->launch, room);
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
    }
    pki_bench_figures_record(c, sample);
    c->count++;
}

bool pki_bench_case_record_sample(pki_bench_case *c)
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
