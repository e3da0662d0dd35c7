/* Summaries that are always the same: of ordinary runs, and of one whose every number and name is
 * at an end of its range. */
#include "report_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "comm/figures/figures.h"
#include "measure/device/device.h"
#include "measure/overhead.h"
#include "measure/steps/steps.h"
#include "measure/timeline.h"
#include "measure/verdict/verdict.h"
#include "stats/series.h"

/* ---- a training run and what it lost ---- */

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

/* ---- two GPUs ---- */

#define US UINT64_C(1000)
#define STEP (10 * MS)

enum { FORWARD = 1, BACKWARD, LOSS, LAST };

static const char *const names[LAST] = {"", "forward", "backward", "loss back"};

static const char *gpu_fixture_name_of(void *user, uint32_t id)
{
    (void)user;
    return id < LAST ? names[id] : NULL;
}

static void add(pki_device *d, pki_activity a, const char *name, uint64_t start, uint64_t length)
{
    a.name = name;
    a.name_length = strlen(name);
    a.start = start;
    a.end = start + length;
    pki_device_add(d, &a);
}

/* GPU 0 as CUPTI has measured it: a copy, many short kernels with gaps, a long one, a result read
 * back, and nothing until the next step. */
static void add_measured(pki_device *d, uint64_t start, uint64_t i)
{
    pki_activity load = {.kind = PKI_ACTIVITY_MEMCPY, .copy = PKI_COPY_HTOD, .bytes = 1 << 24};
    pki_activity back = {.kind = PKI_ACTIVITY_MEMCPY, .copy = PKI_COPY_DTOH, .bytes = 4};
    pki_activity work = {.kind = PKI_ACTIVITY_KERNEL, .track = 1, .region = FORWARD};
    pki_activity wait = {.kind = PKI_ACTIVITY_SYNC, .track = 1};
    load.track = back.track = 2;
    add(d, load, "Memcpy HtoD (Pinned -> Device)", start + 100 * US, 700 * US);
    for (uint64_t k = 0; k < 80; k++)
        add(d, work, "void elementwise_kernel<4, \xE6\xA2\xAF\xE5\xBA\xA6>(int, float*)",
            start + MS + k * 30 * US, (6 + (k + i) % 3) * US);
    work.region = BACKWARD;
    add(d, work, "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_execute_kernel",
        start + 4 * MS, 3 * MS + i % 7 * 10 * US);
    add(d, back, "Memcpy DtoH (Device -> Pageable)", start + 7200 * US, 2 * US);
    add(d, wait, "Stream Sync", start + 4 * MS, 3210 * US);
}

/* An all-reduce on a stream of its own: the first half beside "backward", which ends then. */
static void add_collective(pki_device *d, uint64_t start)
{
    pki_activity a = {.kind = PKI_ACTIVITY_OPERATION, .device = 1, .track = 4, .stream = 9};
    add(d, a, "NCCL all_reduce", start + 8500 * US, 1400 * US + start / STEP % 5 * 10 * US);
}

static void add_spans(pki_device *d, uint64_t start)
{
    pki_activity span = {
        .kind = PKI_ACTIVITY_SPAN, .device = 1, .track = 3, .stream = 3, .region = FORWARD};
    add(d, span, "forward", start + MS, 3 * MS);
    span.region = BACKWARD;
    add(d, span, "backward", start + 4 * MS, 5 * MS + 500 * US);
    span.region = LOSS;
    add(d, span, "loss back", start + 5 * MS, 100 * US);
}

static void gpu_fixture_fill_regions(pki_summary *s, pki_device *d)
{
    s->regions = calloc(LAST - 1, sizeof *s->regions);
    for (uint32_t id = FORWARD; id < LAST; id++)
        s->regions[s->region_count++] =
            (pki_region_row){.name = strdup(names[id]),
                             .kind = PK_COMPUTE,
                             .gpu = pki_device_region_spans(d, id),
                             .kernels = pki_device_region_kernels(d, id)};
}

static void gpu_fixture_round_all(pki_summary *s)
{
    for (size_t i = 0; i < s->gpu_count; i++)
        for (int f = 0; f < PKI_GPU_FIGURES; f++)
            round_dist(&s->gpus[i].per_step[f]);
    for (size_t i = 0; i < s->kernel_count; i++) {
        round_dist(&s->kernels[i].time);
        s->kernels[i].region_share = rint(s->kernels[i].region_share * 1024) / 1024;
    }
    for (size_t i = 0; i < s->region_count; i++) {
        round_dist(&s->regions[i].gpu);
        round_dist(&s->regions[i].kernels);
    }
    round_dist(&s->steps.all);
    round_dist(&s->steps.steady);
}

static bool fill_steps(pki_summary *s, uint64_t count)
{
    pki_steps *steps = pki_steps_create();
    for (uint64_t i = 0; i < count; i++) {
        pki_steps_add_self(steps, FORWARD, PK_COMPUTE, 3 * MS);
        pki_steps_add_self(steps, LOSS, PK_WAIT, 4 * MS);
        pki_steps_add(
            steps,
            &(pki_step){
                .index = i, .start = i * STEP, .duration = STEP, .items = 32, .broken_down = true});
    }
    bool filled = pki_steps_fill(steps, 0, gpu_fixture_name_of, NULL, s);
    pki_steps_destroy(steps);
    return filled;
}

void fixture_gpu(pki_summary *s, uint64_t count)
{
    pki_device *d = pki_device_create(PKI_DEVICE_ITEMS);
    pki_summary_init(s);
    for (uint64_t i = 0; i < count; i++) {
        add_measured(d, i * STEP, i);
        add_spans(d, i * STEP);
        add_collective(d, i * STEP);
        pki_device_memory(d, 0, i * STEP, 6e9 + 1e6 * (double)i);
        const pki_step step = {.index = i, .start = i * STEP, .duration = STEP};
        pki_device_step(d, &step);
    }
    pki_device_finalised(d, UINT64_MAX);
    gpu_fixture_fill_regions(s, d);
    fill_steps(s, count);
    pki_device_fill(d, s->steps.warmup, gpu_fixture_name_of, NULL, s);
    pki_device_destroy(d);
    s->run = (pki_run){.program = strdup("train"), .complete = true, .wall = count * STEP};
    s->activities = (pki_activity_summary){
        .count = 88 * count, .unwritten = 3, .late = 2, .overhead_count = 7, .overhead = 12 * MS};
    gpu_fixture_round_all(s);
    pki_verdicts_fill(s);
}

/* ---- two communicators ---- */

enum { WORLD, ROW };
enum { COMM_FIXTURE_BACKWARD = 1, HALO, COMM_FIXTURE_LAST };

static const char *comm_fixture_name_of(void *user, uint32_t id)
{
    static const char *const comm_fixture_names[COMM_FIXTURE_LAST] = {"", "backward",
                                                                      "halo \"exchange\""};
    (void)user;
    return id < COMM_FIXTURE_LAST ? comm_fixture_names[id] : NULL;
}

/* One of the row's operations has not ended. */
static bool facts_of(void *user, uint32_t comm, pki_comm_facts *facts)
{
    static const pki_comm_facts known[] = {
        {"MPI", "MPI_COMM_WORLD", 0, 1, 4, 120, 120, 120, 0},
        {"NCCL", "rows of \xE6\xA2\xAF\xE5\xBA\xA6", 0xFEDCBA9876543210, 0, 2, 261, 261, 260, 1}};
    (void)user;
    if (comm >= PKI_COUNT_OF(known))
        return false;
    *facts = known[comm];
    return true;
}

/* Gradients of four sizes, reduced; every tenth time one takes much longer. */
static void add_reductions(pki_comm_figures *c)
{
    for (uint64_t i = 0; i < 120; i++) {
        uint64_t bytes = (uint64_t)1 << (10 + 4 * (i % 4));
        uint64_t ns = 20 * US + bytes / 10 + (i % 10 == 9 ? 2 * MS : i % 7 * US);
        pki_comm_figures_add(c, &(pki_timed_operation){.comm = WORLD,
                                                       .ranks = 4,
                                                       .op = PK_COMM_OP_ALL_REDUCE,
                                                       .region = COMM_FIXTURE_BACKWARD,
                                                       .bytes = bytes,
                                                       .sequence = i + 1,
                                                       .start = i * 10 * MS,
                                                       .end = i * 10 * MS + ns,
                                                       .exposed = ns,
                                                       .in_flight = 1});
    }
}

/* Sent while the program computes: the last microseconds are waited for. */
static void add_messages(pki_comm_figures *c)
{
    for (uint64_t i = 0; i < 200; i++)
        pki_comm_figures_add(c,
                             &(pki_timed_operation){.comm = ROW,
                                                    .ranks = 2,
                                                    .op = i % 2 ? PK_COMM_OP_RECV : PK_COMM_OP_SEND,
                                                    .region = i < 190 ? HALO : 0,
                                                    .bytes = 5000,
                                                    .sequence = i + 1,
                                                    .comm_id = 0xFEDCBA98,
                                                    .self = 1,
                                                    .partner = 3 + (uint32_t)(i / 2 % 2),
                                                    .start = i * MS,
                                                    .end = i * MS + 400 * US + i * US,
                                                    .exposed = i * US / 2,
                                                    .in_flight = (uint32_t)(i % 3 + 1)});
}

/* As NCCL tells them: the larger ones by another algorithm, with exceptions. */
static void add_told(pki_comm_figures *c)
{
    for (uint64_t i = 0; i < 60; i++) {
        bool large = i % 3 == 0, tree = i % 10 == 9 ? large : !large;
        uint64_t ns = large ? 90 * US : 15 * US;
        pki_comm_figures_add(c, &(pki_timed_operation){.comm = ROW,
                                                       .ranks = 2,
                                                       .op = PK_COMM_OP_ALL_REDUCE,
                                                       .region = COMM_FIXTURE_BACKWARD,
                                                       .bytes = large ? 1 << 24 : 1 << 14,
                                                       .sequence = 200 + i,
                                                       .start = i * MS,
                                                       .end = i * MS + ns,
                                                       .in_flight = 1,
                                                       .algorithm = tree ? "TREE" : "RING",
                                                       .protocol = large ? "SIMPLE" : "LL128",
                                                       .channels = large ? 16 : 2});
    }
}

/* ---- what a job of many ranks needs of it ---- */

static void add_rank(pki_summary *s)
{
    s->run.local_rank = 3;
    s->run.local_size = 4;
    s->regions[0].exact =
        (pki_window_sum){.count = 3, .sum = 600, .min = 100, .max = 300, .squares_low = 140000};
    for (uint32_t key = 100; key < 220; key += 50)
        pki_tally_count(&s->regions[0].exact.buckets, key, 1);
}

static void fill_hostile_stages(pki_stage_summary *stages, const char *hostile)
{
    *stages = (pki_stage_summary){
        .width = UINT64_MAX, .warmup = UINT64_MAX, .stage_count = 1, .loop_count = 1};
    stages->stages = calloc(1, sizeof *stages->stages);
    *stages->stages = (pki_stage_row){strdup(hostile), 99};
    stages->loops = calloc(1, sizeof *stages->loops);
    *stages->loops = (pki_loop_row){
        .name = strdup(hostile), .number_count = 2, .numbers = calloc(2, sizeof(uint64_t))};
    stages->loops->numbers[1] = UINT64_MAX;
}

static void add_hostile_rank(pki_summary *s, const char *hostile)
{
    pki_window_sum *exact = &s->regions[0].exact;
    *exact = (pki_window_sum){
        .count = UINT64_MAX, .sum = UINT64_MAX, .max = UINT64_MAX, .squares_high = UINT64_MAX};
    pki_tally_count(&exact->buckets, UINT32_MAX, UINT64_MAX);
    fill_hostile_stages(&s->stages, hostile);
}

void fixture_comm(pki_summary *s)
{
    pki_comm_figures *c = pki_comm_figures_create();
    for (uint64_t i = 0; i < 40; i++)
        pki_comm_figures_step(c, i, i * 42 * MS, (i + 1) * 42 * MS);
    fixture_train(s, 40);
    add_rank(s);
    add_reductions(c);
    add_messages(c);
    add_told(c);
    pki_comm_figures_build_rows(c, facts_of, comm_fixture_name_of, NULL, s);
    pki_comm_figures_destroy(c);
    pki_sequences *q = &s->comm.sequences;
    q->row_count = pki_sequences_narrow(q->rows, q->row_count, &q->one_in, 16);
    q->origin = 77 * MS;
    free(q->clock);
    q->clock = strdup("clock");
}

void fixture_hostile_comm(pki_summary *s, const char *hostile, pki_dist wild)
{
    pki_comm_summary *c = &s->comm;
    add_hostile_rank(s, hostile);
    c->unmeasured = UINT64_MAX;
    c->partner_count = 1;
    c->partners = calloc(1, sizeof *c->partners);
    memset(c->partners, 0xFF, sizeof *c->partners);
    c->sequences = (pki_sequences){.operations = UINT64_MAX,
                                   .one_in = UINT64_MAX,
                                   .origin = UINT64_MAX,
                                   .clock = strdup(hostile),
                                   .row_count = 1,
                                   .rows = calloc(1, sizeof *c->sequences.rows),
                                   .region_count = 1,
                                   .regions = calloc(1, sizeof *c->sequences.regions)};
    c->sequences.regions->name = strdup(hostile);
    memset(c->sequences.rows, 0xFF, sizeof *c->sequences.rows);
    c->comm_count = c->collective_count = c->region_count = c->slowest_count = 1;
    c->comms = calloc(1, sizeof *c->comms);
    c->collectives = calloc(1, sizeof *c->collectives);
    c->regions = calloc(1, sizeof *c->regions);
    c->slowest = calloc(1, sizeof *c->slowest);
    memset(c->comms, 0xFF, sizeof *c->comms);
    c->comms->library = strdup(hostile);
    c->comms->name = strdup(hostile);
    c->comms->completed = 0;
    *c->collectives =
        (pki_operation_row){.op = UINT32_MAX,
                            .size = UINT64_MAX,
                            .bytes = UINT64_MAX,
                            .exposed = UINT64_MAX,
                            .time = wild,
                            .algbw = wild,
                            .busbw = wild,
                            .way_count = PKI_COMM_ALGORITHMS,
                            .ways = calloc(PKI_COMM_ALGORITHMS, sizeof(pki_comm_way))};
    for (size_t i = 0; i < PKI_COMM_ALGORITHMS; i++)
        c->collectives->ways[i] =
            (pki_comm_way){strdup(hostile), strdup(hostile), UINT64_MAX, wild.max};
    *c->regions = (pki_comm_region_row){strdup(hostile), 0, 99, UINT64_MAX, UINT64_MAX, wild};
    *c->slowest =
        (pki_comm_call_row){strdup(hostile), 0,          99,         UINT64_MAX, UINT64_MAX,
                            UINT64_MAX,      UINT64_MAX, UINT64_MAX, true,       UINT64_MAX};
}

/* ---- what the runs cost beside time ---- */

static char *text(const char *hostile, const char *usual)
{
    return strdup(hostile ? hostile : usual);
}

static pki_dist in_steps(double mean, double p50, double p99, double max)
{
    return (pki_dist){100, 100 * mean, 0, max, mean, max / 10, p50, p50, p50, p99};
}

static pki_io_steps io_steps(void)
{
    return (pki_io_steps){.steps = 100,
                          .readings = 90,
                          .alone = 84,
                          .device = 12,
                          .read = {in_steps(6e6, 6e6, 6.2e6, 6.3e6), 17, 1},
                          .written = {in_steps(2e5, 0, 1e7, 1.1e7), 49, 1},
                          .device_read = {in_steps(5e6, 5e6, 6e6, 6e6), 17, 1},
                          .device_written = {in_steps(1.6e5, 0, 8e6, 9e6), 99, 3},
                          .operations = {in_steps(48.9, 48, 60, 61), 49, 1}};
}

static pki_io_summary io(const char *hostile)
{
    return (pki_io_summary){.asked = 1,
                            .why_not = text(hostile, ""),
                            .observed = 1900000000,
                            .read_chars = 600 << 20,
                            .write_chars = 20 << 20,
                            .read_calls = 4800,
                            .write_calls = 90,
                            .read_device = 512 << 20,
                            .write_device = 16 << 20,
                            .best_read = 4.2e8,
                            .best_write = 9e7,
                            .exposed = 30000000,
                            .hidden = 400000000,
                            .saves = 2,
                            .save_time = 250000000,
                            .save_bytes = 16 << 20,
                            .steps = io_steps()};
}

static void fill_energy(pki_energy_summary *e, const char *hostile)
{
    const pki_energy_row rows[] = {{.joules = 380,
                                    .watts = 200,
                                    .per_step = 3.8,
                                    .per_item = 0.11875,
                                    .error = 5,
                                    .time = 1900000000,
                                    .steps = 100,
                                    .items = 3200,
                                    .period = 100000000},
                                   {.refused = true,
                                    .time = 300000000,
                                    .steps = 2,
                                    .items = 64,
                                    .period = 100000000,
                                    .resets = 1}};
    *e = (pki_energy_summary){.asked = 1,
                              .why_not = text(hostile, ""),
                              .held_by = text(hostile, ""),
                              .free_steps = 98,
                              .free_time = 1640000000,
                              .row_count = 2,
                              .rows = calloc(2, sizeof *e->rows)};
    memcpy(e->rows, rows, sizeof rows);
    e->rows[0].counter = text(hostile, "package-0");
    e->rows[0].step_kind = text(hostile, "(run)");
    e->rows[1].counter = text(hostile, "package-0");
    e->rows[1].step_kind = text(hostile, "evaluation");
}

static pki_goodput_summary goodput(void)
{
    return (pki_goodput_summary){.up = 2300000000,
                                 .parts = {[PKI_PART_PRODUCTIVE] = 1400000000,
                                           [PKI_PART_RECOMPUTED] = 100000000,
                                           [PKI_PART_DATA] = 150000000,
                                           [PKI_PART_STARTUP] = 400000000,
                                           [PKI_PART_CHECKPOINT] = 240000000,
                                           [PKI_PART_OTHER] = 10000000},
                                 .steps = 98,
                                 .recomputed = 7};
}

void fixture_costs(pki_summary *s, const char *hostile)
{
    s->io = io(hostile);
    fill_energy(&s->energy, hostile);
    s->goodput = goodput();
}

/* ---- on which machine the runs were, and what they reached of it ---- */

static void fill_usual(pki_environment *e)
{
    *e = (pki_environment){.memory = (uint64_t)64 << 30,
                           .processors = 16,
                           .cpu = strdup("A processor, of some kind"),
                           .architecture = strdup("x86_64"),
                           .kernel = strdup("Linux 6.1.0"),
                           .gpu = strdup(""),
                           .driver = strdup(""),
                           .command = strdup("train --steps 300 --token ***"),
                           .compiler = strdup("gcc 12.2.0"),
                           .program_compiler = strdup("GCC: (Debian 12.2.0-14) 12.2.0"),
                           .build_id = strdup("0123456789abcdef0123456789abcdef01234567"),
                           .commit = strdup("89abcdef0123456789abcdef0123456789abcdef"),
                           .branch = strdup("main")};
}

static void fill_hostile(pki_environment *e, const char *hostile)
{
    char **const texts[] = {&e->cpu,    &e->architecture, &e->kernel,   &e->gpu,
                            &e->driver, &e->command,      &e->compiler, &e->program_compiler,
                            &e->commit, &e->branch,       &e->build_id};
    e->memory = e->processors = UINT64_MAX;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = strdup(hostile);
}

static void fill_utilisation(pki_utilisation *u, const char *hostile)
{
    *u = (pki_utilisation){.steps = 98,
                           .time = 1641089480,
                           .model = 8.2e11,
                           .hardware = 9.85e11,
                           .peak = 1e12,
                           .mfu = 0.5,
                           .hfu = 0.6,
                           .precision = strdup(hostile ? hostile : "fp32"),
                           .source = strdup(hostile ? hostile : "16 processors of node, by hand")};
}

static pki_cpu_side cpu_side(void)
{
    return (pki_cpu_side){.looks = 25,
                          .forced = 31,
                          .own = 4000,
                          .busy = 7.5,
                          .busy_most = 9,
                          .threads = 21,
                          .allowed = 16,
                          .allowed_busy = 16,
                          .quota = 12.5,
                          .quota_periods = 250,
                          .quota_throttled = 3,
                          .quota_throttled_time = 12000000,
                          .clock_mean = 2.9e9,
                          .clock_most = 3.5e9,
                          .nodes = 2,
                          .near_bytes = (uint64_t)3 << 30,
                          .far_bytes = (uint64_t)1 << 20,
                          .largest_node = 0.6,
                          .own_nodes = 2};
}

void fixture_machine(pki_summary *s, const char *hostile)
{
    if (hostile)
        fill_hostile(&s->environment, hostile);
    else
        fill_usual(&s->environment);
    fill_utilisation(&s->steps.utilisation, hostile);
    s->cpu_side = cpu_side();
    fixture_costs(s, hostile);
}

/* ---- every number at an end of its range ---- */

static const char hostile[] =
    "\x1b[2J\"\\\n\xC2\x9B"
    "1m\xE2\x80\xAE\xFF\xC0\x80\xED\xA0\x80 </script> %s%n "
    "\xF0\x9F\x9A\x80 \x7F and so long that it cannot fit anywhere at all";

static pki_dist wild(double x)
{
    return (pki_dist){UINT64_MAX, x, -x, x, x, x, x, x, x, x};
}

static pki_histogram hostile_histogram(void)
{
    pki_histogram h = {1, calloc(1, sizeof *h.buckets)};
    *h.buckets = (pki_histogram_bucket){-INFINITY, NAN, UINT64_MAX};
    return h;
}

static void fill_hostile_steps(pki_step_summary *steps)
{
    *steps = (pki_step_summary){.count = UINT64_MAX,
                                .warmup = 3,
                                .all = wild(INFINITY),
                                .steady = wild(1e300),
                                .warm = wild(NAN),
                                .items = UINT64_MAX,
                                .items_per_second = INFINITY,
                                .broken_down = 1,
                                .drift = NAN};
    for (int k = 0; k < PKI_SHARES; k++)
        steps->kinds[k] = UINT64_MAX;
    steps->histogram = hostile_histogram();
    steps->slowest = calloc(1, sizeof *steps->slowest);
    steps->slowest_count = 1;
    *steps->slowest = (pki_step_row){.index = UINT64_MAX, .duration = UINT64_MAX, .part_count = 1};
    steps->slowest->parts = calloc(1, sizeof *steps->slowest->parts);
    *steps->slowest->parts = (pki_step_part){strdup(hostile), 77, UINT64_MAX, -INFINITY};
    steps->series_count = 40;
    steps->series = calloc(40, sizeof *steps->series);
    for (int i = 0; i < 40; i++)
        steps->series[i] = (pki_series_row){
            .steps = i % 2 ? UINT64_MAX : 0, .duration = UINT64_MAX, .longest = UINT64_MAX};
}

static void fill_hostile_gpus(pki_summary *s)
{
    s->gpus = calloc(1, sizeof *s->gpus);
    s->gpu_count = 1;
    *s->gpus = (pki_gpu_row){.device = UINT32_MAX, .measured = true, .streams = UINT64_MAX};
    for (int i = 0; i < PKI_GPU_FIGURES; i++)
        s->gpus->per_step[i] = wild(i % 2 ? 1e300 : NAN);
    for (int i = 0; i < PKI_DIRECTIONS; i++)
        s->gpus->copies[i] = (pki_gpu_copies){UINT64_MAX, 1, UINT64_MAX};
    s->gpus->kernels = s->gpus->kernel_time = UINT64_MAX;
    s->gpus->series_count = 1;
    s->gpus->series = malloc(sizeof *s->gpus->series);
    memset(s->gpus->series, 0xFF, sizeof *s->gpus->series);
    s->kernels = calloc(2, sizeof *s->kernels);
    s->kernel_count = 2;
    s->kernels[0] = (pki_kernel_row){strdup(hostile), strdup(hostile), NAN, wild(INFINITY)};
    s->kernels[1] = (pki_kernel_row){strdup(hostile), strdup(""), -1, wild(-1e300)};
    memset(&s->activities, 0xFF, sizeof s->activities);
}

void fixture_hostile(pki_summary *s)
{
    pki_summary_init(s);
    s->run = (pki_run){
        strdup(hostile), strdup(hostile), strdup(hostile), UINT32_MAX,      INT32_MIN, INT32_MAX,
        UINT64_MAX,      UINT64_MAX,      UINT64_MAX,      strdup(hostile), NAN,       NAN,
        -INFINITY,       1e-300,          strdup(hostile), strdup(hostile), false,     INT32_MIN,
        INT32_MAX,       strdup(hostile), false,           INT64_MIN};
    s->regions = calloc(1, sizeof *s->regions);
    s->region_count = 1;
    *s->regions = (pki_region_row){.name = strdup(hostile),
                                   .kind = 99,
                                   .time = wild(NAN),
                                   .self = UINT64_MAX,
                                   .bytes = UINT64_MAX,
                                   .flops = UINT64_MAX,
                                   .step_share = NAN,
                                   .step_self = wild(-1),
                                   .gpu = wild(NAN),
                                   .kernels = wild(-1),
                                   .histogram = hostile_histogram()};
    s->roofline = (pki_roofline){UINT64_MAX,
                                 strdup(hostile),
                                 strdup(hostile),
                                 UINT64_MAX,
                                 NAN,
                                 INFINITY,
                                 -1,
                                 0,
                                 1e300,
                                 NAN,
                                 1,
                                 calloc(1, sizeof *s->roofline.rows)};
    *s->roofline.rows = (pki_roofline_row){strdup(hostile), NAN,    INFINITY, true, 1e300, -1, NAN,
                                           INFINITY,        -1e300, true,     false};
    s->threads = calloc(1, sizeof *s->threads);
    s->thread_count = 1;
    *s->threads = (pki_thread_row){.name = strdup(hostile),
                                   .tid = UINT32_MAX,
                                   .recorded = UINT64_MAX,
                                   .kinds = {UINT64_MAX, UINT64_MAX}};
    s->counters = calloc(1, sizeof *s->counters);
    s->counter_count = 1;
    *s->counters = (pki_counter_row){.name = strdup(hostile),
                                     .unit = strdup(hostile),
                                     .value = wild(INFINITY),
                                     .last = -1e308,
                                     .point_count = 1,
                                     .points = calloc(1, sizeof *s->counters->points)};
    *s->counters->points = (pki_counter_point){UINT64_MAX, UINT64_MAX, NAN, INFINITY, -1e308};
    s->backends = calloc(1, sizeof *s->backends);
    s->backend_count = 1;
    *s->backends = (pki_backend_row){strdup(hostile), false, strdup(hostile), strdup(hostile)};
    fill_hostile_gpus(s);
    fixture_hostile_comm(s, hostile, wild(NAN));
    memset(&s->counts, 0xFF, sizeof s->counts);
    s->overhead =
        (pki_overhead){NAN, INFINITY, -INFINITY, 1e300, -1e300, NAN, NAN, -INFINITY, 1e300, 0};
    fill_hostile_steps(&s->steps);
    fixture_machine(s, hostile); /* some of it lies in the steps */
    pki_verdict_add(s, hostile, PKI_WARN, NAN, INFINITY, hostile);
}
