/* Steps under load: a device with work queued, launch-bound and saturated ones, streams side by
 * side, and what recording all of that costs. What the report, the trace and a capture say is held
 * against what was launched, and against the kernels' own timers. */
#include "gpu.h"

#include <pk/pk.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cuda_stream stream;
static cuda_memory memory;

static void open_device(size_t count)
{
    driver_open();
    driver_load_kernels();
    stream = driver_stream();
    must(cu.cuda_memory(&memory, count * sizeof(spun)));
}

/* With kernels recorded, and a report. Its path is the report's. */
static const char *start_recording(const char *trace, const char *capture, const char *captures)
{
    static char report[512];
    snprintf(report, sizeof report, "%s", gpu_path("report.json"));
    pk_status status =
        pk_start(pk_options(.backends = "cupti", .trace_path = trace, .report_path = report,
                            .capture = capture, .capture_path = captures));
    if (!gpu_check(status == PK_OK, "%s", pk_error_message()))
        exit(gpu_result());
    gpu_need("cupti");
    return report;
}

static char *stop_recording(const char *report)
{
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    char *text = gpu_read(report);
    if (!text)
        exit(gpu_result());
    return text;
}

/* ---- launches queued deep ---- */

/* For ten seconds the host is fifty launches ahead of the device, so CUPTI always has a buffer with
 * kernels that are not done. Each of them is in the report and in the trace, none too late for its
 * step, and the capture of some steps amid has all that began in them. */

#define DEPTH 50u /* launches in a step, too */
#define DEEP_NS 500000u
#define CAPTURED 4u

static void await_event(cuda_event event)
{
    while (cu.cuda_event_query(event) == CUDA_NOT_READY)
        usleep(100);
}

static uint64_t launch_deep(double seconds)
{
    cuda_event events[DEPTH];
    uint64_t launched = 0, until = gpu_now() + (uint64_t)(seconds * 1e9);
    for (unsigned i = 0; i < DEPTH; i++)
        must(cu.cuda_event_create(&events[i], 0));
    while (gpu_now() < until || launched < (uint64_t)DEPTH * 10) {
        cuda_event event = events[launched % DEPTH];
        await_event(event); /* one that was never recorded is past */
        driver_spin(stream, DEEP_NS, memory, launched % DEPTH);
        must(cu.cuda_event_record(event, stream));
        if (++launched % DEPTH == 0)
            pk_step(1);
    }
    must(cu.cuda_stream_synchronize(stream));
    return launched;
}

/* A step's end is not a kernel's: one of them more or less at either end. */
static void check_capture(const char *path)
{
    char *text = access(path, R_OK) == 0 ? gpu_read(path) : NULL;
    size_t seen = gpu_count_lines(path, "\"cat\":\"kernel\"");
    double late = gpu_number(text, "perfkitCapture", "kernels_late", NULL);
    gpu_figure("deep.capture", "%zu kernels in %u steps of %u, %.0f steps without theirs", seen,
               CAPTURED, DEPTH, late);
    gpu_check(text && late == 0, "%s: %.0f steps lack kernels", path, late);
    gpu_check(seen + 2 * DEPTH >= CAPTURED * DEPTH && seen <= (CAPTURED + 2) * DEPTH,
              "%zu kernels in %u steps of %u", seen, CAPTURED, DEPTH);
    free(text);
}

int test_deep(int argc, char **argv)
{
    (void)argc, (void)argv;
    char trace[512], captures[512], first[512];
    open_device(DEPTH);
    snprintf(trace, sizeof trace, "%s", gpu_path("trace.json"));
    snprintf(captures, sizeof captures, "%s", gpu_path("capture-%s.json"));
    snprintf(first, sizeof first, "%s", gpu_path("capture-4.json"));
    const char *report = start_recording(trace, "steps=4-7;kernels=always", captures);
    uint64_t launched = launch_deep(gpu_seconds(10, 0.5));
    char *text = stop_recording(report);
    gpu_trace t = gpu_read_trace(trace);
    size_t traced = gpu_count(&t, "kernel", "spin");
    double reported = gpu_number(text, "gpus", "kernels", NULL),
           late = gpu_number(text, "activities", "late", NULL);
    gpu_figure("deep.kernels", "%.0f in the report, %zu in the trace, of %llu; %.0f late", reported,
               traced, (unsigned long long)launched, late);
    gpu_check(reported == (double)launched, "%.0f of %llu", reported, (unsigned long long)launched);
    gpu_check(traced == launched, "%zu of %llu", traced, (unsigned long long)launched);
    gpu_check(late == 0, "%.0f late", late);
    check_capture(first);
    free(text);
    return gpu_result();
}

/* ---- what bounds a step ---- */

/* Short kernels with as short gaps between, and long ones back to back: the report says which is
 * which, and neither the other. */

#define SHORT_NS 2000u
#define LONG_NS 1000000u
#define SHORT_STEP 500u
#define LONG_STEP 20u
#define PAUSE_NS 12000u

static void short_kernels(void)
{
    for (unsigned i = 0; i < SHORT_STEP; i++) {
        uint64_t next = gpu_now() + PAUSE_NS;
        driver_spin(stream, SHORT_NS, memory, 0);
        while (gpu_now() < next)
            ;
    }
}

/* The host is one step ahead. */
static void long_kernels(void)
{
    static cuda_event ends[2];
    static unsigned step;
    for (int i = 0; i < 2 && !ends[i]; i++)
        must(cu.cuda_event_create(&ends[i], 0));
    await_event(ends[step % 2]);
    for (unsigned i = 0; i < LONG_STEP; i++)
        driver_spin(stream, LONG_NS, memory, 0);
    must(cu.cuda_event_record(ends[step++ % 2], stream));
}

static char *report_of(void (*body)(void), unsigned steps)
{
    const char *report = start_recording(NULL, NULL, NULL);
    pk_step_begin();
    for (unsigned i = 0; i < steps; i++) {
        body();
        pk_step(1);
    }
    must(cu.cuda_stream_synchronize(stream));
    return stop_recording(report);
}

int test_verdicts(int argc, char **argv)
{
    (void)argc, (void)argv;
    open_device(1);
    char *text = report_of(short_kernels, (unsigned)gpu_seconds(100, 12));
    bool launches = gpu_has_verdict(text, "launch-bound"),
         busy = gpu_has_verdict(text, "gpu-bound");
    gpu_figure("verdicts.short", "launch-bound: %s; gpu-bound: %s", launches ? "said" : "not said",
               busy ? "said" : "not said");
    gpu_bar(launches, "kernels of %u ns, each %u ns", SHORT_NS, PAUSE_NS);
    gpu_check(!busy, "kernels of %u ns, each %u ns", SHORT_NS, PAUSE_NS);
    free(text);
    text = report_of(long_kernels, (unsigned)gpu_seconds(50, 20));
    launches = gpu_has_verdict(text, "launch-bound"), busy = gpu_has_verdict(text, "gpu-bound");
    double mean = gpu_number(text, "gpus", "per_step", "busy", "mean", NULL);
    gpu_figure("verdicts.long", "gpu-bound: %s; launch-bound: %s; busy %.3f ms a step of %.3f",
               busy ? "said" : "not said", launches ? "said" : "not said", mean / 1e6,
               LONG_STEP * LONG_NS / 1e6);
    gpu_bar(busy, "kernels of %u ns in a row", LONG_NS); /* other programs may be told of instead */
    gpu_check(!launches, "kernels of %u ns in a row", LONG_NS);
    /* Of 20 steps the last one's kernels run behind it; where a step ends is the host's affair. */
    gpu_check(fabs(mean - LONG_STEP * LONG_NS) < 0.1 * LONG_STEP * LONG_NS, "busy %.0f ns a step",
              mean);
    free(text);
    return gpu_result();
}

/* ---- what recording costs ---- */

/* A step of launches of an empty kernel and a wait for them: without perfkit, with all kernels
 * recorded, and armed, where CUPTI is nobody's as long as no capture wants it. In turns; each with
 * a session of its own. */

#define COST_ROUNDS 7
#define COST_STEPS 100
#define COST_LAUNCHES 200
#define ARMED_BAR 1.02

typedef struct cost {
    double launch, step; /* ns */
} cost;

static cost one_cost(void)
{
    double launches[COST_STEPS], whole[COST_STEPS];
    for (int s = 0; s < COST_STEPS; s++) {
        uint64_t begun = gpu_now();
        for (int i = 0; i < COST_LAUNCHES; i++)
            driver_launch(stream, the_kernels.empty);
        launches[s] = (double)(gpu_now() - begun) / COST_LAUNCHES;
        must(cu.cuda_stream_synchronize(stream));
        pk_step(1);
        whole[s] = (double)(gpu_now() - begun);
    }
    return (cost){gpu_median(launches, COST_STEPS), gpu_median(whole, COST_STEPS)};
}

/* All of them are recorded. */
static cost recorded(void)
{
    const char *report = start_recording(NULL, NULL, NULL);
    cost c = one_cost();
    char *text = stop_recording(report);
    double seen = gpu_number(text, "gpus", "kernels", NULL);
    gpu_check(seen == COST_STEPS * COST_LAUNCHES, "%.0f kernels", seen);
    free(text);
    return c;
}

static cost armed(void)
{
    char captures[512];
    snprintf(captures, sizeof captures, "%s", gpu_path("armed-%s.json"));
    pk_status status =
        pk_start(pk_options(.backends = "cupti", .capture = "request", .capture_path = captures));
    gpu_check(status == PK_OK, "%s", pk_error_message());
    gpu_need("cupti");
    cost c = one_cost();
    gpu_check(strstr(gpu_reason("cupti"), "waiting"), "armed: %s", gpu_reason("cupti"));
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    return c;
}

static void show_cost(const char *key, cost *of, const cost *off)
{
    double launches[COST_ROUNDS], steps[COST_ROUNDS];
    for (int i = 0; i < COST_ROUNDS; i++) {
        launches[i] = of[i].launch / off[i].launch;
        steps[i] = of[i].step / off[i].step;
    }
    double launch = gpu_median(launches, COST_ROUNDS), step = gpu_median(steps, COST_ROUNDS);
    gpu_figure(key, "%.3f x a launch, %.3f x a step", launch, step);
    gpu_bar(strcmp(key, "cost.armed") != 0 || step <= ARMED_BAR, "%s: %.3f x", key, step);
}

/* A graph, of which CUPTI tells as a whole or node by node. */
#define NODES 100
#define GRAPH_LAUNCHES 20

static cuda_exec make_graph(void)
{
    cuda_graph graph;
    cuda_exec exec;
    must(cu.cuda_begin_capture(stream, CUDA_CAPTURE_RELAXED));
    for (int i = 0; i < NODES; i++)
        driver_launch(stream, the_kernels.empty);
    must(cu.cuda_end_capture(stream, &graph));
    must(cu.cuda_instantiate(&exec, graph, 0));
    return exec;
}

/* A launch and its share of the wait, in a session with those settings; NULL: in none. */
static double graph_ns(cuda_exec exec, const char *tuning)
{
    double took[COST_STEPS];
    if (tuning && pk_start(pk_options(.backends = "cupti", .tuning = tuning)) != PK_OK)
        return NAN;
    for (int s = 0; s < COST_STEPS; s++) {
        uint64_t begun = gpu_now();
        for (int i = 0; i < GRAPH_LAUNCHES; i++)
            must(cu.cuda_launch_graph(exec, stream));
        must(cu.cuda_stream_synchronize(stream));
        pk_step(1);
        took[s] = (double)(gpu_now() - begun) / GRAPH_LAUNCHES;
    }
    if (tuning)
        gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    return gpu_median(took, COST_STEPS);
}

static void show_graphs(void)
{
    cuda_exec exec = make_graph();
    graph_ns(exec, NULL); /* a warm-up */
    double off = graph_ns(exec, NULL), whole = graph_ns(exec, ""),
           nodes = graph_ns(exec, "cupti_graph_nodes=1");
    gpu_figure("cost.graph", "%.1f us a launch of %d kernels; %.3f x as a whole, %.3f x by nodes",
               off / 1e3, NODES, whole / off, nodes / off);
    gpu_check(whole > 0 && nodes > 0, "%.0f and %.0f ns", whole, nodes);
}

int test_cost(int argc, char **argv)
{
    (void)argc, (void)argv;
    cost off[COST_ROUNDS], on[COST_ROUNDS], waits[COST_ROUNDS];
    double launches[COST_ROUNDS], steps[COST_ROUNDS];
    open_device(1);
    one_cost(); /* a warm-up */
    int rounds = (int)gpu_seconds(COST_ROUNDS, 1);
    for (int i = 0; i < COST_ROUNDS; i++) {
        off[i] = i < rounds ? one_cost() : off[0];
        on[i] = i < rounds ? recorded() : on[0];
        waits[i] = i < rounds ? armed() : waits[0];
        launches[i] = off[i].launch, steps[i] = off[i].step;
    }
    gpu_figure("cost.off", "%.0f ns a launch, %.1f us a step of %d",
               gpu_median(launches, COST_ROUNDS), gpu_median(steps, COST_ROUNDS) / 1e3,
               COST_LAUNCHES);
    show_cost("cost.on", on, off);
    show_cost("cost.armed", waits, off);
    show_graphs();
    return gpu_result();
}

/* ---- streams side by side ---- */

/* Kernels of one thread on two streams, first all of the one, then all of the other: they run side
 * by side, unless all streams share one queue. Both as the kernels' own timers say and as the
 * report does: the time of all kernels over the time in which any runs. */

#define BESIDE 20u
#define BESIDE_NS 2000000u

static int by_begin(const void *a, const void *b)
{
    const spun *x = a, *y = b;
    return (x->began > y->began) - (x->began < y->began);
}

static double truth_of(void)
{
    static spun s[2 * BESIDE];
    uint64_t sum = 0, any = 0, until = 0;
    must(cu.cuda_to_host(s, memory, sizeof s));
    qsort(s, 2 * (size_t)BESIDE, sizeof *s, by_begin);
    for (unsigned i = 0; i < 2 * BESIDE; i++) {
        sum += s[i].ended - s[i].began;
        if (s[i].ended > until)
            any += s[i].ended - (s[i].began > until ? s[i].began : until);
        until = s[i].ended > until ? s[i].ended : until;
    }
    return (double)sum / (double)any;
}

static void side_by_side(const char *which)
{
    char key[32];
    open_device(2 * BESIDE);
    cuda_stream second = driver_stream();
    const char *report = start_recording(NULL, NULL, NULL);
    pk_step_begin();
    for (unsigned i = 0; i < 2 * BESIDE; i++)
        driver_spin(i < BESIDE ? stream : second, BESIDE_NS, memory, i);
    must(cu.cuda_synchronize());
    pk_step(1);
    char *text = stop_recording(report);
    double time = gpu_number(text, "gpus", "kernel_time", NULL),
           busy = gpu_number(text, "gpus", "series", "busy", NULL), truth = truth_of();
    snprintf(key, sizeof key, "overlap.%s", which);
    gpu_figure(key, "%.3f by the report, %.3f by the kernels' timers", time / busy, truth);
    bool lost = strcmp(which, "one") == 0;
    gpu_bar(lost ? truth < 1.2 : truth > 1.5, "%.3f: the device does not do so", truth);
    gpu_check(fabs(time / busy - truth) < 0.15 * truth, "%.3f of %.3f", time / busy, truth);
    gpu_bar(fabs(time / busy - truth) < 0.03 * truth, "%.3f of %.3f", time / busy, truth);
    free(text);
}

int test_overlap(int argc, char **argv)
{
    if (argc == 2) {
        side_by_side(argv[1]);
        return gpu_result();
    }
    int many = gpu_anew("overlap", "many", 20);
    if (many == 77)
        return 77;
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
    int one = gpu_anew("overlap", "one", 20);
    gpu_check(many == 0, "the usual queues: ended with %d", many);
    gpu_check(one == 0, "one queue: ended with %d", one);
    return gpu_result();
}
