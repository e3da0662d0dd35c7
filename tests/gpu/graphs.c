/* Graphs on a GPU: stream capture, spans at replays, and graphs in which events may not stand. */
#include "gpu.h"

#include <pk/gpu.h>
#include <pk/pk.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- stream capture ---- */

/* What the driver allows in one, that spans in a graph are measured at each replay, and that
 * neither a begin nor the collector's questions ever invalidate a capture. */

#define SPIN_NS 200000
#define REPLAYS 3

static pk_region replayed = PK_REGION("capture.replayed"), polled = PK_REGION("capture.polled");
static cuda_stream capture_stream, other;
static cuda_memory memory;

static pk_gpu_counts counts_now(void)
{
    pk_gpu_counts counts = {.size = sizeof counts};
    pk_get_gpu_counts(&counts);
    return counts;
}

static cuda_graph capture_span(int mode, cuda_exec *exec)
{
    cuda_graph graph;
    must(cu.cuda_begin_capture(capture_stream, mode));
    pk_gpu_begin(&replayed, capture_stream);
    driver_spin(capture_stream, SPIN_NS, memory, 0);
    pk_gpu_end(&replayed, capture_stream);
    int code = cu.cuda_end_capture(capture_stream, &graph);
    gpu_check(code == CUDA_OK, "mode %d: end of the capture: %d %s", mode, code,
              driver_error(code));
    if (code != CUDA_OK)
        gpu_skip("a capture was invalidated: nothing more can be tried");
    must(cu.cuda_instantiate(exec, graph, 0));
    return graph;
}

static void announced_replays(int mode)
{
    cuda_exec exec;
    pk_stats stats;
    cuda_graph graph = capture_span(mode, &exec);
    uint64_t before = counts_now().replayed;
    for (int i = 0; i < REPLAYS; i++) {
        pk_gpu_graph_launching(exec, graph, capture_stream);
        must(cu.cuda_launch_graph(exec, capture_stream));
    }
    must(cu.cuda_stream_synchronize(capture_stream));
    pk_flush();
    pk_flush();
    uint64_t got = counts_now().replayed - before;
    gpu_check(got == REPLAYS, "mode %d: %llu spans of %d replays", mode, (unsigned long long)got,
              REPLAYS);
    gpu_check(pk_region_gpu_stats(&replayed, &stats) == PK_OK && (double)stats.min >= SPIN_NS * 0.9,
              "%llu ns for %d", (unsigned long long)stats.min, SPIN_NS);
    gpu_bar(stats.max < SPIN_NS * 3, "%llu ns for %d", (unsigned long long)stats.max, SPIN_NS);
    must(cu.cuda_exec_destroy(exec));
    must(cu.cuda_graph_destroy(graph));
}

static void silent_replays(void)
{
    cuda_exec exec;
    cuda_graph graph = capture_span(CUDA_CAPTURE_THREAD, &exec);
    uint64_t before = counts_now().sampled;
    for (int i = 0; i < REPLAYS; i++) {
        must(cu.cuda_launch_graph(exec, capture_stream));
        must(cu.cuda_stream_synchronize(capture_stream));
        gpu_sleep_ms(50);
        pk_flush();
    }
    uint64_t got = counts_now().sampled - before;
    gpu_figure("capture.sampled", "%llu of %d replays that nobody announced",
               (unsigned long long)got, REPLAYS);
    gpu_check(got >= 1, "none of %d replays was seen", REPLAYS);
    must(cu.cuda_exec_destroy(exec));
    must(cu.cuda_graph_destroy(graph));
}

/* A capture in GLOBAL mode forbids what the collector does to all threads, unless they have said
 * otherwise for themselves. Spans of another stream wait to be read meanwhile. */
static void the_poller_and_a_global_capture(void)
{
    cuda_graph graph;
    uint64_t before = counts_now().recorded;
    for (int i = 0; i < 20; i++) {
        pk_gpu_begin(&polled, other);
        driver_spin(other, 10000000, memory, 1);
        pk_gpu_end(&polled, other);
    }
    must(cu.cuda_begin_capture(capture_stream, CUDA_CAPTURE_GLOBAL));
    driver_launch(capture_stream, the_kernels.empty);
    for (int i = 0; i < 20; i++) {
        gpu_sleep_ms(15);
        pk_flush(); /* on this thread, too */
    }
    uint64_t read = counts_now().recorded - before;
    int code = cu.cuda_end_capture(capture_stream, &graph);
    gpu_check(code == CUDA_OK, "%d %s", code, driver_error(code));
    gpu_check(read > 0, "no span was read during the capture: it proves nothing");
    gpu_figure("capture.global", "%llu spans read during it, the capture ended with %d",
               (unsigned long long)read, code);
    must(cu.cuda_stream_synchronize(other));
}

static void *query(void *event)
{
    static int code;
    code = cu.cuda_event_query(event);
    return &code;
}

/* The control: the same question by somebody who does not take care. */
static void a_careless_thread(void)
{
    cuda_event event;
    cuda_graph graph;
    pthread_t thread;
    void *code = NULL;
    must(cu.cuda_event_create(&event, 0));
    must(cu.cuda_event_record(event, other));
    must(cu.cuda_stream_synchronize(other));
    must(cu.cuda_begin_capture(capture_stream, CUDA_CAPTURE_GLOBAL));
    driver_launch(capture_stream, the_kernels.empty);
    if (pthread_create(&thread, NULL, query, event) == 0)
        pthread_join(thread, &code);
    int end = cu.cuda_end_capture(capture_stream, &graph);
    gpu_figure("capture.careless", "cuEventQuery %d, end of the capture %d",
               code ? *(int *)code : -1, end);
    gpu_check(end != CUDA_OK, "a bare cuEventQuery did not invalidate the capture: no control");
}

/* Codes, for docs/internals/backends.md: what the driver of this machine says to each. */
static void matrix(void)
{
    cuda_event event;
    cuda_stream blocking;
    cuda_graph graph;
    int status = -1;
    must(cu.cuda_event_create(&event, 0));
    must(cu.cuda_stream_create(&blocking, 0));
    int outside = cu.cuda_event_record_flags(event, capture_stream, CUDA_EXTERNAL);
    must(cu.cuda_begin_capture(blocking, CUDA_CAPTURE_RELAXED));
    int inside = cu.cuda_event_record_flags(event, blocking, CUDA_EXTERNAL);
    int plain = cu.cuda_event_record(event, blocking);
    int asked = cu.cuda_event_query(event);
    int legacy = cu.cuda_stream_is_capturing(CUDA_LEGACY_STREAM, &status);
    int end = cu.cuda_end_capture(blocking, &graph);
    gpu_figure("capture.external_outside", "%d %s", outside, driver_error(outside));
    gpu_figure("capture.external_inside", "%d %s", inside, driver_error(inside));
    gpu_figure("capture.record_inside", "%d %s", plain, driver_error(plain));
    gpu_figure("capture.query_captured", "%d %s", asked, driver_error(asked));
    gpu_figure("capture.legacy_asked", "%d %s", legacy, driver_error(legacy));
    gpu_figure("capture.end", "%d %s", end, driver_error(end));
}

int test_capture(int argc, char **argv)
{
    (void)argc, (void)argv;
    driver_open();
    driver_load_kernels();
    must(cu.cuda_stream_create(&capture_stream, CUDA_NON_BLOCKING));
    must(cu.cuda_stream_create(&other, CUDA_NON_BLOCKING));
    must(cu.cuda_memory(&memory, 16 * sizeof(spun)));
    const char *path = gpu_start("cuda");
    gpu_need("cuda");
    announced_replays(CUDA_CAPTURE_RELAXED);
    announced_replays(CUDA_CAPTURE_THREAD);
    announced_replays(CUDA_CAPTURE_GLOBAL);
    silent_replays();
    the_poller_and_a_global_capture();
    a_careless_thread();
    matrix();
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    pk_gpu_counts counts = counts_now();
    gpu_figure("capture.counts", "%llu captured, %llu replayed, %llu skipped, %llu lost",
               (unsigned long long)counts.captured, (unsigned long long)counts.replayed,
               (unsigned long long)counts.skipped, (unsigned long long)counts.lost);
    gpu_read_trace(path);
    return gpu_result();
}

/* ---- graphs in which events may not stand ---- */

/* The body of a conditional node, and graphs that the device itself launches. Each is made without
 * spans, with a span inside, and with PK_GPU_GRAPHS=0, which has to be as good as without. A
 * span around the launch of one is recorded. */

#define GRAPHS_SPIN_NS 100000
#define FOR_THE_DEVICE 4 /* CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH */
#define NODE_CONDITIONAL 13
#define ASSIGN_DEFAULT 1
#define ABSENT (-1)

/* CUgraphNodeParams with its CUDA_CONDITIONAL_NODE_PARAMS, since 12.3. */
typedef struct node_params {
    int type, reserved[3];
    uint64_t handle;
    int condition; /* 0: if */
    unsigned bodies;
    cuda_graph *body;
    cuda_context context;
    long long rest[26];
} node_params;

_Static_assert(sizeof(node_params) == 256, "as the driver has it");

static struct {
    int (*create)(cuda_graph *graph, unsigned flags);
    int (*handle)(uint64_t *handle, cuda_graph graph, cuda_context context, unsigned first,
                  unsigned flags);
    int (*add)(void **node, cuda_graph graph, void *const *from, const void *edges, size_t count,
               node_params *params);
    int (*capture_to)(cuda_stream stream, cuda_graph graph, void *const *from, const void *edges,
                      size_t count, int mode);
} graphs;

static pk_region inside = PK_REGION("graphs.inside"), around = PK_REGION("graphs.around");
static cuda_context context;
static cuda_memory graphs_memory;

static bool bind(const char *name, void *function)
{
    void *address = driver_function(name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* Before CUDA 12.3 there are none. */
static bool has_conditionals(void)
{
    return bind("cuGraphCreate", &graphs.create) &&
           bind("cuGraphConditionalHandleCreate", &graphs.handle) &&
           bind("cuGraphAddNode_v2", &graphs.add) &&
           bind("cuStreamBeginCaptureToGraph", &graphs.capture_to);
}

static void work(cuda_stream stream, bool spans)
{
    if (spans)
        pk_gpu_begin(&inside, stream);
    driver_spin(stream, GRAPHS_SPIN_NS, graphs_memory, 0);
    if (spans)
        pk_gpu_end(&inside, stream);
}

static cuda_stream new_stream(void)
{
    cuda_stream stream;
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    return stream;
}

/* The first code that is not 0 of all that it takes to have the graph run. */
static int device_launched(bool spans)
{
    cuda_graph graph;
    cuda_exec exec;
    cuda_stream stream = new_stream();
    must(cu.cuda_begin_capture(stream, CUDA_CAPTURE_THREAD));
    work(stream, spans);
    int code = cu.cuda_end_capture(stream, &graph);
    if (code == CUDA_OK)
        code = cu.cuda_instantiate(&exec, graph, FOR_THE_DEVICE);
    if (code == CUDA_OK)
        code = cu.cuda_launch_graph(exec, stream); /* the host may, too */
    return code == CUDA_OK ? cu.cuda_stream_synchronize(stream) : code;
}

static int fill_body(cuda_graph body, bool spans)
{
    cuda_graph same;
    cuda_stream stream = new_stream();
    int code = graphs.capture_to(stream, body, NULL, NULL, 0, CUDA_CAPTURE_THREAD);
    if (code != CUDA_OK)
        return code;
    work(stream, spans);
    return cu.cuda_end_capture(stream, &same);
}

/* The condition holds at each launch. */
static int conditional(bool spans, bool span_around)
{
    cuda_graph graph, body = NULL;
    cuda_exec exec;
    cuda_stream stream = new_stream();
    void *node;
    node_params params = {.type = NODE_CONDITIONAL, .bodies = 1, .context = context};
    must(graphs.create(&graph, 0));
    int code = graphs.handle(&params.handle, graph, context, 1, ASSIGN_DEFAULT);
    if (code == CUDA_OK)
        code = graphs.add(&node, graph, NULL, NULL, 0, &params);
    if (code == CUDA_OK)
        code = fill_body(body = params.body[0], spans);
    if (code == CUDA_OK)
        code = cu.cuda_instantiate(&exec, graph, 0);
    if (code != CUDA_OK)
        return code;
    if (span_around)
        pk_gpu_begin(&around, stream);
    code = cu.cuda_launch_graph(exec, stream);
    if (span_around)
        pk_gpu_end(&around, stream);
    return code == CUDA_OK ? cu.cuda_stream_synchronize(stream) : code;
}

static void show(const char *key, int code)
{
    if (code == ABSENT)
        gpu_figure(key, "not there: the driver is older than CUDA 12.3");
    else
        gpu_figure(key, "%d %s", code, driver_error(code));
}

static void with_spans(bool has)
{
    pk_stats stats;
    int plain = has ? conditional(false, false) : ABSENT, device_plain = device_launched(false);
    int spans = has ? conditional(true, false) : ABSENT, device_spans = device_launched(true);
    show("graphs.conditional", plain);
    show("graphs.conditional_spans", spans);
    gpu_check(spans == plain, "%d with a span in the body, %d without", spans, plain);
    show("graphs.device", device_plain);
    /* That a graph is for the device is said when it is too late for us. */
    show("graphs.device_spans", device_spans);
    if (plain != CUDA_OK)
        return;
    conditional(false, true);
    pk_flush();
    bool seen = pk_region_gpu_stats(&around, &stats) == PK_OK;
    gpu_figure("graphs.around",
               "%llu spans around a launch, of %llu ns; the kernel inside takes %d",
               seen ? (unsigned long long)stats.count : 0, seen ? (unsigned long long)stats.min : 0,
               GRAPHS_SPIN_NS);
    gpu_check(seen && stats.count == 1 && stats.min >= GRAPHS_SPIN_NS * 9 / 10,
              "a span around a launch");
}

static void switched_off(bool has)
{
    int plain = has ? conditional(false, false) : ABSENT, device_plain = device_launched(false);
    int off = has ? conditional(true, false) : ABSENT, device_off = device_launched(true);
    show("graphs.conditional_off", off);
    show("graphs.device_off", device_off);
    gpu_check(off == plain, "%d with PK_GPU_GRAPHS=0, %d without spans", off, plain);
    gpu_check(device_off == device_plain, "%d with PK_GPU_GRAPHS=0, %d without spans", device_off,
              device_plain);
}

static void play(bool off)
{
    driver_open();
    driver_load_kernels();
    must(cu.cuda_get_current(&context));
    must(cu.cuda_memory(&graphs_memory, sizeof(spun)));
    bool has = has_conditionals();
    gpu_start("cuda");
    gpu_need("cuda");
    if (off)
        switched_off(has);
    else
        with_spans(has);
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
}

static int run_anew(const char *which)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(40);
        setenv("PK_GPU_GRAPHS", strcmp(which, "off") == 0 ? "0" : "1", 1);
        execl("/proc/self/exe", "gpu-tests", "graphs", which, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int test_graphs(int argc, char **argv)
{
    if (argc == 2) {
        play(strcmp(argv[1], "off") == 0);
        return gpu_result();
    }
    int on = run_anew("on"), off = run_anew("off");
    if (on == 77)
        return 77;
    gpu_check(on == 0, "with spans: ended with %d", on);
    gpu_check(off == 0, "with PK_GPU_GRAPHS=0: ended with %d", off);
    return gpu_result();
}
