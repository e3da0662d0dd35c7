/* Collectives of the real NCCL between events, by the explicit calls of pk/nccl.h and a table of
 * this program's own, and what NCCL's profiler interface tells beside them. One GPU: messages to
 * itself, against CUPTI's kernels. Two and more: an all-reduce, against this program's own clock.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pk/pk.h>

#include "driver.h"
#include "gpu.h"

enum { GPUS_MOST = 16, MESSAGES = 50, ROUNDS = 40, FLOAT32 = 7, SUM = 0 };
#define MESSAGE_BYTES ((size_t)64 << 20)
#define REDUCED_BYTES ((size_t)256 << 20)

typedef void *communicator;

static struct {
    int (*init_all)(communicator *comms, int devices, const int *list);
    int (*destroy)(communicator comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*send)(const void *, size_t, int, int, communicator, cuda_stream);
    int (*receive)(void *, size_t, int, int, communicator, cuda_stream);
    int (*all_reduce)(const void *, void *, size_t, int, int, communicator, cuda_stream);
} nccl;

typedef struct gpu {
    cuda_context context;
    cuda_stream stream;
    cuda_memory from, to;
    communicator nccl;
    pk_comm *comm;
} one_gpu;

static one_gpu gpus[GPUS_MOST];
static int count;
static pk_region sweep = PK_REGION_OF(PK_COMM, "nccl.sweep");

/* ---- NCCL, and what it works on ---- */

static void *open_nccl(void)
{
    static const char *const names[] = {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2",
                                        "/usr/local/cuda/lib/libnccl.so.2"};
    void *library = NULL;
    const char *named = getenv("PK_NCCL_LIBRARY");
    if (named)
        library = dlopen(named, RTLD_NOW | RTLD_GLOBAL);
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        gpu_skip("there is no libnccl.so.2 (PK_NCCL_LIBRARY names one)");
    return library;
}

static void bind(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    if (!address)
        gpu_skip("NCCL has no %s", name);
    memcpy(function, &address, sizeof address);
}

static void bind_all(void *library)
{
    bind(library, "ncclCommInitAll", &nccl.init_all);
    bind(library, "ncclCommDestroy", &nccl.destroy);
    bind(library, "ncclGroupStart", &nccl.group_start);
    bind(library, "ncclGroupEnd", &nccl.group_end);
    bind(library, "ncclSend", &nccl.send);
    bind(library, "ncclRecv", &nccl.receive);
    bind(library, "ncclAllReduce", &nccl.all_reduce);
}

static void check_nccl(int result, const char *what)
{
    if (!gpu_check(result == 0, "%s: NCCL's error %d", what, result))
        exit(gpu_result());
}

static void make(int devices, size_t bytes)
{
    communicator comms[GPUS_MOST];
    int list[GPUS_MOST];
    count = devices;
    for (int i = 0; i < count; i++) {
        list[i] = i;
        must(cu.cuda_retain(&gpus[i].context, i));
        must(cu.cuda_set_current(gpus[i].context));
        must(cu.cuda_stream_create(&gpus[i].stream, CUDA_NON_BLOCKING));
        must(cu.cuda_memory(&gpus[i].from, bytes));
        must(cu.cuda_memory(&gpus[i].to, bytes));
    }
    check_nccl(nccl.init_all(comms, count, list), "ncclCommInitAll");
    for (int i = 0; i < count; i++) {
        gpus[i].nccl = comms[i];
        gpus[i].comm = pk_comm_create("NCCL", "all GPUs", 0, i, count);
    }
}

static void destroy(void)
{
    for (int i = 0; i < count; i++) {
        check_nccl(nccl.destroy(gpus[i].nccl), "ncclCommDestroy");
        pk_comm_destroy(gpus[i].comm);
    }
}

static void synchronize(void)
{
    for (int i = 0; i < count; i++) {
        must(cu.cuda_set_current(gpus[i].context));
        must(cu.cuda_stream_synchronize(gpus[i].stream));
    }
}

static void *pointer(cuda_memory memory)
{
    return (void *)(uintptr_t)memory;
}

static void group_begins(void)
{
    pk_nccl_group_start();
    check_nccl(nccl.group_start(), "ncclGroupStart");
}

static void group_ends(void)
{
    pk_nccl_group_launch();
    int result = nccl.group_end();
    pk_nccl_group_end(result);
    check_nccl(result, "ncclGroupEnd");
}

/* ---- one GPU: messages to itself ---- */

static void message(void)
{
    one_gpu *g = &gpus[0];
    size_t n = MESSAGE_BYTES / 4;
    group_begins();
    pk_nccl_begin(g->comm, PK_OP_SEND, PK_TYPE_FLOAT32, n, 0, g->stream);
    int sent = nccl.send(pointer(g->from), n, FLOAT32, 0, g->nccl, g->stream);
    pk_nccl_end(g->comm, g->stream, sent);
    pk_nccl_begin(g->comm, PK_OP_RECV, PK_TYPE_FLOAT32, n, 0, g->stream);
    int received = nccl.receive(pointer(g->to), n, FLOAT32, 0, g->nccl, g->stream);
    pk_nccl_end(g->comm, g->stream, received);
    group_ends();
}

static size_t pick(const gpu_trace *t, const char *category, const char *beginning, gpu_event *to,
                   size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < t->count && n < room; i++)
        if (strcmp(t->events[i].category, category) == 0 &&
            strncmp(t->events[i].name, beginning, strlen(beginning)) == 0)
            to[n++] = t->events[i];
    return n;
}

static double length_of(const gpu_event *e)
{
    return e->end - e->start;
}

/* On the stream in their order, so the n-th span is the n-th kernel's. */
static void compare_with_kernels(const gpu_trace *t)
{
    static gpu_event spans[MESSAGES], works[MESSAGES];
    double over[MESSAGES];
    size_t n = pick(t, "collective", "NCCL send_recv", spans, MESSAGES);
    size_t k = pick(t, "kernel", "nccl", works, MESSAGES);
    gpu_figure("nccl.messages", "%zu of %d as one operation each, %zu kernels", n, MESSAGES, k);
    gpu_check(n == MESSAGES, "%zu of %d", n, MESSAGES);
    for (size_t i = 0; i < n && i < k; i++)
        over[i] = length_of(&spans[i]) - length_of(&works[i]);
    if (n == MESSAGES && k == MESSAGES) {
        double least = gpu_quantile(over, MESSAGES, 0), usual = gpu_median(over, MESSAGES);
        gpu_figure("nccl.span_over_kernel_us", "least %.2f, median %.2f", least / 1e3, usual / 1e3);
        gpu_check(least > -5000 && usual < 50000, "spans are %.0f to %.0f ns longer than kernels",
                  least, usual);
    }
}

static void on_one_gpu(void)
{
    const char *path = gpu_start("cuda,cupti,nccl");
    gpu_need("cuda");
    make(1, MESSAGE_BYTES);
    gpu_figure("nccl.init", "%s", gpu_reason("nccl"));
    gpu_check(strncmp(gpu_reason("nccl"), "1 communicators", 15) == 0, "%s", gpu_reason("nccl"));
    PK_SCOPE(sweep) {
        for (int i = 0; i < MESSAGES; i++)
            message();
    }
    synchronize();
    destroy();
    gpu_figure("nccl.finalize", "%s", gpu_reason("nccl"));
    gpu_check(strncmp(gpu_reason("nccl"), "1 communicators", 15) != 0, "%s", gpu_reason("nccl"));
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    gpu_trace t = gpu_read_trace(path);
    gpu_figure("nccl.plugin", "%zu sends, %zu receives told by the profiler interface",
               gpu_count(&t, "user_annotation", "NCCL send"),
               gpu_count(&t, "user_annotation", "NCCL recv"));
    compare_with_kernels(&t);
}

/* ---- two GPUs and more ---- */

static void all_reduce(void)
{
    size_t n = REDUCED_BYTES / 4;
    group_begins();
    for (int i = 0; i < count; i++) {
        one_gpu *g = &gpus[i];
        pk_nccl_begin(g->comm, PK_OP_ALL_REDUCE, PK_TYPE_FLOAT32, n, -1, g->stream);
        int result =
            nccl.all_reduce(pointer(g->from), pointer(g->to), n, FLOAT32, SUM, g->nccl, g->stream);
        pk_nccl_end(g->comm, g->stream, result);
    }
    group_ends();
}

static double bus_bandwidth(double ns)
{
    return (double)REDUCED_BYTES / ns * 2 * (count - 1) / count;
}

/* As nccl-tests measure: many in a row, the wall's time of all of them. */
static double loop(void)
{
    for (int i = 0; i < 5; i++)
        all_reduce();
    synchronize();
    uint64_t begun = gpu_now();
    for (int i = 0; i < ROUNDS; i++)
        all_reduce();
    synchronize();
    return (double)(gpu_now() - begun) / ROUNDS;
}

static void on_all_gpus(int devices)
{
    static gpu_event spans[(ROUNDS + 5) * GPUS_MOST];
    double lengths[(ROUNDS + 5) * GPUS_MOST];
    const char *path = gpu_start("cuda");
    make(devices < GPUS_MOST ? devices : GPUS_MOST, REDUCED_BYTES);
    double ns = loop();
    destroy();
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    gpu_trace t = gpu_read_trace(path);
    size_t n = pick(&t, "collective", "NCCL all_reduce", spans, sizeof spans / sizeof *spans);
    gpu_check(n == (size_t)((ROUNDS + 5) * count), "%zu of %d", n, (ROUNDS + 5) * count);
    for (size_t i = 0; i < n; i++)
        lengths[i] = length_of(&spans[i]);
    double own = bus_bandwidth(ns), seen = n ? bus_bandwidth(gpu_median(lengths, n)) : 0;
    gpu_figure("nccl.busbw", "%d GPUs: %.1f GB/s by the loop, %.1f by spans, %+.2f %%", count, own,
               seen, (seen / own - 1) * 100);
    gpu_check(seen > 0.98 * own && seen < 1.02 * own, "%.1f and %.1f GB/s", own, seen);
}

int main(void)
{
    int devices = 0;
    driver_open();
    bind_all(open_nccl());
    must(cu.cuda_device_count(&devices));
    on_one_gpu();
    if (devices > 1)
        on_all_gpus(devices);
    else
        gpu_figure("nccl.busbw", "one GPU: nothing to measure");
    return gpu_result();
}
