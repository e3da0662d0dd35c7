#include "bench/case.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "bench/bench.h"
#include "bench/counters.h"
#include "bench/environment.h"
#include "bench/rounds.h"
#include "bench/stats/samples.h"

#define PKI_BENCH_COUNTED_SAMPLES 5

static void pki_bench_figures_record(pki_bench_case *c, const pki_bench_sample *sample);

/* ---- one benchmark with its parameters, while it is measured ---- */

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
    free(c->mhz);
    free(c->marks);
    for (unsigned i = 0; i < c->series_count; i++)
        free(c->series[i].values);
    c->time = c->cpu = c->at = c->overhead = c->launch = c->mhz = NULL;
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

/* ---- what is counted, not timed ---- */

/* Per iteration of one thread, all threads together; negative: not counted. */
static double counted_in(const pki_bench_case *c, int counter)
{
    double sum = 0;
    for (unsigned i = 0; i < c->options.threads; i++) {
        double value = c->runs[i].counting ? c->runs[i].counted.value[counter] : -1;
        if (value < 0)
            return -1;
        sum += value;
    }
    return sum / (double)c->iterations;
}

static void count_hardware(pki_bench_case *c)
{
    pk_bench_result *r = &c->result;
    double values[PKI_BENCH_COUNTERS][PKI_BENCH_COUNTED_SAMPLES];
    double *const into[PKI_BENCH_COUNTERS] = {&r->instructions, &r->cycles, &r->cache_misses,
                                              &r->branch_misses};
    char why[192];
    pki_bench_sample sample;
    pki_bench_counters_explain(why, sizeof why);
    pki_bench_case_note(c, why);
    c->counting_hardware = true;
    for (int i = 0; i < PKI_BENCH_COUNTED_SAMPLES; i++) {
        if (!pki_bench_case_run_sample(c, c->iterations, &sample))
            break;
        for (int j = 0; j < PKI_BENCH_COUNTERS; j++)
            values[j][i] = counted_in(c, j);
    }
    c->counting_hardware = false;
    for (int j = 0; j < PKI_BENCH_COUNTERS && pki_bench_case_is_fine(c); j++)
        *into[j] = pki_samples_select_median(values[j], PKI_BENCH_COUNTED_SAMPLES);
}

static void count_allocations(pki_bench_case *c)
{
    double counts[PKI_BENCH_COUNTED_SAMPLES], bytes[PKI_BENCH_COUNTED_SAMPLES];
    pki_bench_sample sample;
    if (!pki_bench_allocations_seen()) {
        pki_bench_case_note(c, "allocations are not counted: the program has no "
                               "PK_BENCH_COUNT_ALLOCATIONS, or its malloc is not glibc's");
        return;
    }
    c->counting_allocations = true;
    for (int i = 0; i < PKI_BENCH_COUNTED_SAMPLES; i++) {
        uint64_t count, size;
        if (!pki_bench_case_run_sample(c, c->iterations, &sample))
            break;
        pki_bench_allocations_read(&count, &size);
        counts[i] = (double)count / (double)c->iterations;
        bytes[i] = (double)size / (double)c->iterations;
    }
    c->counting_allocations = false;
    if (!pki_bench_case_is_fine(c))
        return;
    c->result.allocations = pki_samples_select_median(counts, PKI_BENCH_COUNTED_SAMPLES);
    c->result.allocated_bytes = pki_samples_select_median(bytes, PKI_BENCH_COUNTED_SAMPLES);
}

void pki_bench_count_events(pki_bench_case *c)
{
    if (pki_bench_case_is_fine(c) && c->count && c->options.hardware)
        count_hardware(c);
    if (pki_bench_case_is_fine(c) && c->count && c->options.allocations)
        count_allocations(c);
    if (c->figures_lost)
        pki_bench_case_note(c, "figures beyond 16 names, or without memory, are missing");
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

double pki_bench_series_median(pki_bench_series *series)
{
    return pki_samples_select_median(series->values, series->count);
}

/* ---- from a case's samples to figures ---- */

static void move_samples(pk_bench_result *r, pki_bench_case *c)
{
    r->samples = c->time;
    r->cpu_samples = c->cpu;
    r->at = c->at;
    r->marks = c->marks;
    c->time = c->cpu = c->at = NULL;
    c->marks = NULL;
    c->count = c->room = 0;
}

/* What was measured, less what is reported: of the median, not of any one sample. */
static double overhead_of(const pki_bench_case *c, double median, double *scratch)
{
    for (size_t i = 0; i < c->count; i++)
        scratch[i] = c->time[i] + c->overhead[i];
    return pki_samples_select_median(scratch, c->count) - median;
}

static double rate(const pk_bench_result *r, uint64_t work)
{
    return r->median > 0 ? (double)work * r->threads / (r->median * 1e-9) : 0;
}

/* ---- a device's ---- */

/* Not queued, launches and device go on side by side, so an iteration takes what the slower of them
 * does; the two readings differ by the marks. */
#define SAME 0.9

static uint32_t bound_of(const pk_bench_result *r, const pki_bench_case *c)
{
    if (c->queue.waits)
        return PK_BENCH_BOUND_UNKNOWN;
    return r->launch > (r->queued ? 1 : SAME) * r->median ? PK_BENCH_BOUND_LAUNCH
                                                          : PK_BENCH_BOUND_DEVICE;
}

/* A sample that is only some steps of the marks' clock long is not known better than that. */
static void note_resolution(pk_bench_result *r, pki_bench_case *c)
{
    double sample = r->median * (double)r->iterations, step = c->device->resolution;
    char text[96];
    if (!(sample * c->options.precision < step))
        return;
    snprintf(text, sizeof text, "a sample is %.1f us, and known to %.1f us (the events' steps)",
             sample / 1e3, step / 1e3);
    pki_bench_case_note(c, text);
    memcpy(r->note, c->result.note, sizeof r->note);
}

static void describe_device(pk_bench_result *r, pki_bench_case *c, double *scratch)
{
    memcpy(scratch, c->launch, c->count * sizeof *scratch);
    r->launch = pki_samples_select_median(scratch, c->count);
    r->queued = c->queue.on;
    r->bound = bound_of(r, c);
    note_resolution(r, c);
}

/* ---- all of it ---- */

bool pki_bench_result_fill(pk_bench_result *r, pki_bench_case *c)
{
    *r = c->result;
    r->size = sizeof *r;
    r->threads = c->options.threads;
    r->iterations = c->iterations;
    if (!pki_bench_case_is_fine(c))
        return true;
    if (c->count == 0)
        return false; /* there was not even room for the first one */
    double *scratch = malloc(c->count * sizeof *scratch);
    if (!scratch ||
        !pki_samples_describe(r, c->time, c->count, c->options.confidence, c->options.seed)) {
        free(scratch);
        return false;
    }
    memcpy(scratch, c->cpu, c->count * sizeof *scratch);
    r->cpu = pki_samples_select_median(scratch, c->count);
    r->overhead = overhead_of(c, r->median, scratch);
    if (c->launch)
        describe_device(r, c, scratch);
    free(scratch);
    r->bytes_per_second = rate(r, c->bytes);
    r->flops_per_second = rate(r, c->flops);
    r->items_per_second = rate(r, c->items);
    move_samples(r, c);
    return true;
}

void pki_bench_result_copy_out(pk_bench_result *given, pk_bench_result *whole)
{
    uint32_t size = given->size;
    memset((char *)given + sizeof size, 0, size - sizeof size);
    if (size < sizeof *whole) {
        free(whole->marks);
        whole->marks = NULL;
    }
    whole->size = size;
    memcpy(given, whole, PKI_MIN((size_t)size, sizeof *whole));
}

void pk_bench_result_release(pk_bench_result *result)
{
    if (!result)
        return;
    free(result->samples);
    free(result->cpu_samples);
    free(result->at);
    result->samples = result->cpu_samples = result->at = NULL;
    result->count = 0;
    if (result->size < sizeof *result)
        return;
    free(result->marks);
    result->marks = NULL;
}

/* ---- Why a benchmark has no figures, and what else is to be known: bench/case.h ---- */

void pki_bench_case_abandon(pki_bench_case *c, pk_bench_outcome outcome, const char *reason)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (pki_bench_case_is_fine(c)) {
        c->result.outcome = outcome;
        snprintf(c->result.reason, sizeof c->result.reason, "%s",
                 reason && *reason ? reason : "no reason given");
    }
    pthread_mutex_unlock(&lock);
}

void pki_bench_case_note(pki_bench_case *c, const char *text)
{
    size_t used = strlen(c->result.note);
    if (*text && !strstr(c->result.note, text))
        snprintf(c->result.note + used, sizeof c->result.note - used, "%s%s", used ? "; " : "",
                 text);
}
