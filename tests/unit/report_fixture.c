#include "report_fixture.h"

#include "base/compiler.h"
#include "stats/series.h"
#include "measure/overhead.h"
#include "measure/steps/steps.h"
#include "measure/timeline.h"
#include "measure/verdict/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

/* ---- a training run ---- */

typedef struct part {
    const char *name;
    uint32_t kind;
    uint64_t usual; /* self time per step */
    uint32_t calls; /* per step */
} part;

static const part parts[] = {
    {"next batch", PK_DATA, 24 * MS, 1},
    {"attention[seq=512]", PK_COMPUTE, 5 * MS, 12},
    {"mlp", PK_COMPUTE, 3 * MS, 12},
    {"backward::operator()(unsigned long, unsigned long) const", PK_COMPUTE, 4 * MS, 1},
    {"adamw", PK_COMPUTE, 1 * MS, 1},
    {"all_reduce \xE6\xA2\xAF\xE5\xBA\xA6", PK_COMM, MS / 2, 2},
    {"log", PK_OTHER, MS / 100, 1},
    {"checkpoint", PK_IO, 0, 0},
    {"read \xFF file\n", PK_DATA, 0, 0}, /* the loader's */
};

#define PARTS PKI_COUNT_OF(parts)
#define CHECKPOINT 7
#define LOADER 8

static uint32_t random_state;

/* 0.9 .. 1.1 around 1, always the same */
static double jitter(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return 0.9 + 0.2 * (random_state >> 8) / 16777216.0;
}

static const char *name_of(void *user, uint32_t id)
{
    (void)user;
    return id < PARTS ? parts[id].name : NULL;
}

static uint64_t add_part(pki_steps *steps, pki_tally *calls, size_t i, uint64_t self)
{
    pki_steps_add_self(steps, (uint32_t)i, parts[i].kind, self);
    for (uint32_t n = 0; n < parts[i].calls; n++)
        pki_tally_add(&calls[i], floor((double)self / parts[i].calls * jitter()), 1);
    return self;
}

static void add_step(pki_steps *steps, pki_tally *calls, uint64_t index, uint64_t count,
                     uint64_t *now)
{
    uint64_t duration = MS + (uint64_t)(MS * jitter()); /* outside every region */
    if (index == 0)
        duration += 780 * MS;
    for (size_t i = 0; i < CHECKPOINT; i++)
        duration += add_part(steps, calls, i, (uint64_t)((double)parts[i].usual * jitter()));
    if (index % (count / 3) == count / 4) {
        uint64_t self = (uint64_t)(35 * MS * jitter());
        pki_steps_add_self(steps, CHECKPOINT, PK_IO, self);
        pki_tally_add(&calls[CHECKPOINT], (double)self, 1);
        duration += self;
    }
    pki_step step = {
        .index = index, .start = *now, .duration = duration, .items = 256, .broken_down = true};
    pki_steps_add(steps, &step);
    pki_tally_add(&calls[LOADER], (double)(uint64_t)(23 * MS * jitter()), 1);
    *now += duration;
}

static void fill_regions(pki_summary *s, pki_tally *calls)
{
    s->regions = calloc(PARTS, sizeof *s->regions);
    for (size_t i = 0; i < PARTS; i++) {
        pki_region_row *row = &s->regions[s->region_count++];
        row->name = strdup(parts[i].name);
        row->kind = parts[i].kind;
        row->time = pki_tally_dist(&calls[i]);
        row->self = (uint64_t)pki_moments_sum(&calls[i].moments);
        pki_histogram_of_tally(&calls[i], &row->histogram);
        pki_tally_finish(&calls[i]);
    }
    s->regions[1].flops = UINT64_C(5400) * 1000000000;
    s->regions[LOADER].bytes = UINT64_C(81) * 1000000000;
}

static void fill_loop(pki_summary *s, uint64_t count)
{
    pki_tally calls[PARTS] = {0};
    pki_steps *steps = pki_steps_create();
    uint64_t now = 0;
    random_state = 1;
    for (uint64_t i = 0; i < count; i++)
        add_step(steps, calls, i, count, &now);
    fill_regions(s, calls);
    pki_steps_fill(steps, 0, name_of, NULL, s);
    pki_steps_destroy(steps);
    pki_regions_sort(s->regions, s->region_count);
    s->run.wall = now + 12 * MS;
}

static void fill_roofline(pki_summary *s)
{
    static const pki_roofline_row rows[] = {
        {NULL, 0.41, 1, false, 31.5, 1.2e9, 3.8e10, 0.655, 0.325, false, false},
        {NULL, 0.22, 3.97, false, 0.083, 8.8e10, 7.3e9, 0.927, 0.927, true, true},
        {NULL, 0.02, 1, true, 0, 0, 1.41e12, 0.742, 0.371, false, false},
        {NULL, 0.01, 1, false, 3.5, 2.2e10, 7.7e10, 1.33, 0.92, false, true},
        {NULL, 0.01, 1, false, 0, 2.1e10, 0, 0.881, 0.881, true, true},
    };
    static const char *const names[] = {"matmul", "scale", "blas", "in between", "copy"};
    pki_roofline *r = &s->roofline;
    *r = (pki_roofline){1795173753,
                        strdup("node07"),
                        strdup("A processor"),
                        64,
                        2.39e10,
                        3.8e11,
                        5.8e10,
                        1.9e12,
                        1.17e11,
                        3.8e12,
                        0,
                        NULL};
    r->rows = calloc(PKI_COUNT_OF(rows), sizeof *r->rows);
    for (; r->row_count < PKI_COUNT_OF(rows); r->row_count++) {
        r->rows[r->row_count] = rows[r->row_count];
        r->rows[r->row_count].region = strdup(names[r->row_count]);
    }
}

static void fill_run(pki_run *run)
{
    run->program = strdup("train");
    run->host = strdup("node07");
    run->version = strdup("0.1.0");
    run->pid = 4242;
    run->rank = 3;
    run->world_size = 8;
    run->start_unix = UINT64_C(1795173753123456789);
    run->cpu = UINT64_C(41) * 1000 * MS;
    run->clock = strdup("tsc");
    run->clock_hz = 2.6e9;
    run->clock_step_ns = 10;
    run->clock_uncertainty_ns = 35.5;
    run->clock_ppm = 0.21;
    run->trace_path = strdup("train-3.pt.trace.json.gz");
    run->source = strdup("session");
    run->complete = true;
}

static void fill_threads(pki_summary *s)
{
    s->threads = calloc(2, sizeof *s->threads);
    s->thread_count = 2;
    s->threads[0] = (pki_thread_row){.name = strdup("main"), .tid = 4242, .recorded = 18603};
    s->threads[1] = (pki_thread_row){
        .name = strdup("loader 0"), .tid = 4250, .ended = true, .recorded = 600, .dropped = 12};
    for (size_t i = 0; i < s->region_count; i++) {
        bool loader = s->regions[i].bytes != 0;
        s->threads[loader].kinds[s->regions[i].kind] += s->regions[i].self;
        if (!loader)
            continue;
        s->threads[1].regions = calloc(1, sizeof *s->threads[1].regions);
        s->threads[1].region_count = 1;
        s->threads[1].regions[0] = s->regions[i];
        s->threads[1].regions[0].name = strdup(s->regions[i].name);
        s->threads[1].regions[0].histogram = (pki_histogram){0};
    }
}

static void fill_counters(pki_summary *s, uint64_t count)
{
    pki_tally memory = {0}, loss = {0};
    pki_timeline memory_line = {0};
    for (uint64_t i = 0; i < count; i++) {
        pki_tally_add(&memory, 1.5e9 + 1e6 * (double)i, 1);
        pki_timeline_add(&memory_line, i * 100 * MS, 1.5e9 + 1e6 * (double)i);
        pki_tally_add(&loss, 5.5 / (1 + 0.01 * (double)i), 1);
    }
    s->counters = calloc(2, sizeof *s->counters);
    s->counter_count = 2;
    s->counters[0] = (pki_counter_row){.name = strdup("gpu.memory"),
                                       .unit = strdup("bytes"),
                                       .value = pki_tally_dist(&memory),
                                       .last = memory.moments.max};
    s->counters[1] = (pki_counter_row){.name = strdup("loss"),
                                       .unit = strdup(""),
                                       .value = pki_tally_dist(&loss),
                                       .last = loss.moments.min};
    pki_timeline_fill(&memory_line, &s->counters[0]);
    pki_series_finish(&memory_line.parts);
    pki_tally_finish(&memory);
    pki_tally_finish(&loss);
}

static void fill_backends(pki_summary *s)
{
    s->backends = calloc(2, sizeof *s->backends);
    s->backend_count = 2;
    s->backends[0] = (pki_backend_row){strdup("cuda"), false, strdup(""),
                                       strdup("libcuda.so.1 is not installed")};
    s->backends[1] = (pki_backend_row){strdup("nvtx"), true, strdup("3.1"), strdup("")};
}

/* The last bits of sums are not the same on every processor. */
static void round_dist(pki_dist *dist)
{
    double *figures[] = {&dist->mean, &dist->stddev, &dist->p50,
                         &dist->p90,  &dist->p95,    &dist->p99};
    for (size_t i = 0; i < PKI_COUNT_OF(figures); i++)
        *figures[i] = rint(*figures[i] * 16) / 16;
}

static void round_all(pki_summary *s)
{
    round_dist(&s->steps.all);
    round_dist(&s->steps.steady);
    round_dist(&s->steps.warm);
    for (size_t i = 0; i < s->region_count; i++) {
        round_dist(&s->regions[i].time);
        round_dist(&s->regions[i].step_self);
    }
    for (size_t i = 0; i < s->counter_count; i++)
        round_dist(&s->counters[i].value);
}

void fixture_train(pki_summary *s, uint64_t steps)
{
    pki_summary_init(s);
    fill_run(&s->run);
    fill_loop(s, steps);
    fill_counters(s, steps);
    round_all(s);
    fill_roofline(s);
    fill_threads(s);
    fill_backends(s);
    fixture_machine(s, NULL);
    s->counts = (pk_counts){.size = sizeof s->counts,
                            .threads = 2,
                            .begun = 19215,
                            .recorded = 19203,
                            .written = 21015,
                            .dropped = 12,
                            .points = 1800,
                            .regions = 9,
                            .steps = steps,
                            .memory_bytes = 3 << 20,
                            .trace_bytes = 2345678};
    const pki_toll toll = {.region_ns = 20.5,
                           .process = s->run.cpu,
                           .collector = 12000000,
                           .callers = 350000,
                           .stepper = {40900000000, 38000000000, 2000000000}};
    pki_overhead_fill(&toll, s);
    pki_verdicts_fill(s);
}

void fixture_empty(pki_summary *s)
{
    pki_summary_init(s);
}
