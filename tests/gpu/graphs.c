/* Graphs in which events may not stand: the body of a conditional node, and graphs that the device
 * itself launches. Each is made without spans, with a span inside, and with PK_GPU_CAPTURE=off,
 * which has to be as good as without. A span around the launch of one is recorded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pk/pk.h>

#include "driver.h"
#include "gpu.h"

#define SPIN_NS 100000
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
static cuda_memory memory;

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
    driver_spin(stream, SPIN_NS, memory, 0);
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
               SPIN_NS);
    gpu_check(seen && stats.count == 1 && stats.min >= SPIN_NS * 9 / 10, "a span around a launch");
}

static void switched_off(bool has)
{
    int plain = has ? conditional(false, false) : ABSENT, device_plain = device_launched(false);
    int off = has ? conditional(true, false) : ABSENT, device_off = device_launched(true);
    show("graphs.conditional_off", off);
    show("graphs.device_off", device_off);
    gpu_check(off == plain, "%d with PK_GPU_CAPTURE=off, %d without spans", off, plain);
    gpu_check(device_off == device_plain, "%d with PK_GPU_CAPTURE=off, %d without spans",
              device_off, device_plain);
}

static void play(bool off)
{
    driver_open();
    driver_load_kernels();
    must(cu.cuda_get_current(&context));
    must(cu.cuda_memory(&memory, sizeof(spun)));
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
        setenv("PK_GPU_CAPTURE", which, 1);
        execl("/proc/self/exe", "graphs", which, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        play(strcmp(argv[1], "off") == 0);
        return gpu_result();
    }
    int on = run_anew("on"), off = run_anew("off");
    if (on == 77)
        return 77;
    gpu_check(on == 0, "with spans: ended with %d", on);
    gpu_check(off == 0, "with PK_GPU_CAPTURE=off: ended with %d", off);
    return gpu_result();
}
