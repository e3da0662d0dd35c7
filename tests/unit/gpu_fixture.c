#include "report_fixture.h"

#include "base/compiler.h"
#include "measure/device/device.h"
#include "measure/verdict/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define STEP (10 * MS)

enum { FORWARD = 1, BACKWARD, LOSS, LAST };

static const char *const names[LAST] = {"", "forward", "backward", "loss back"};

static const char *name_of(void *user, uint32_t id)
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

static void fill_regions(pki_summary *s, pki_device *d)
{
    s->regions = calloc(LAST - 1, sizeof *s->regions);
    for (uint32_t id = FORWARD; id < LAST; id++)
        s->regions[s->region_count++] =
            (pki_region_row){.name = strdup(names[id]),
                             .kind = PK_COMPUTE,
                             .gpu = pki_device_region_spans(d, id),
                             .kernels = pki_device_region_kernels(d, id)};
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
    bool filled = pki_steps_fill(steps, 0, name_of, NULL, s);
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
    fill_regions(s, d);
    fill_steps(s, count);
    pki_device_fill(d, s->steps.warmup, name_of, NULL, s);
    pki_device_destroy(d);
    s->run = (pki_run){.program = strdup("train"), .complete = true, .wall = count * STEP};
    s->activities = (pki_activity_summary){
        .count = 88 * count, .unwritten = 3, .late = 2, .overhead_count = 7, .overhead = 12 * MS};
    round_all(s);
    pki_verdicts_fill(s);
}
