#include "report_fixture.h"

#include "measure/verdict/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    s->run = (pki_run){strdup(hostile),
                       strdup(hostile),
                       strdup(hostile),
                       UINT32_MAX,
                       INT32_MIN,
                       INT32_MAX,
                       UINT64_MAX,
                       UINT64_MAX,
                       UINT64_MAX,
                       strdup(hostile),
                       NAN,
                       NAN,
                       -INFINITY,
                       1e-300,
                       strdup(hostile),
                       strdup(hostile),
                       false,
                       INT32_MIN,
                       INT32_MAX,
                       strdup(hostile),
                       false};
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
