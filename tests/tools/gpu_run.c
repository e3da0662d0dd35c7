/* gpu_run.c - a session with devices that nobody has: what they did is handed over as a backend
 * would, late and in no order. Where its files go, the environment says. With an argument it kills
 * itself at the end. */
#include <pk/pk.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "comm/model/communicator.h"
#include "core/names.h"
#include "session/activity.h"
#include "session/session.h"

#define STEPS 60
#define KERNELS 9
#define US 1000u

static pk_region forward = PK_REGION_OF(PK_COMPUTE, "forward");
static pk_region backward = PK_REGION_OF(PK_COMPUTE, "backward \"quoted\"");
static pk_region never = PK_REGION("on the stream only");
static pk_region sync_point = PK_REGION_OF(PK_WAIT, "synchronise");
static pk_counter memory = PK_COUNTER("gpu0.memory", "bytes");

static uint32_t seed = 7;

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static uint64_t now(void)
{
    return pki_activity_ns_of_ticks(pki_activity_ticks());
}

static uint32_t stream(uint32_t device, uint32_t number)
{
    char process[16], thread[16];
    snprintf(process, sizeof process, "GPU %u", device);
    snprintf(thread, sizeof thread, "stream %u", number);
    return pki_track_add(&(pki_track){
        .pid = pki_track_device_pid(device), .tid = number, .process = process, .thread = thread});
}

static uint32_t beside(uint32_t tid, const char *name)
{
    return pki_track_add(
        &(pki_track){.pid = (uint32_t)getpid(), .tid = pki_track_beside(tid), .thread = name});
}

/* ---- one step's activities ---- */

static void add(pki_activity a, const char *name, uint64_t start, uint64_t end)
{
    a.name = name;
    a.name_length = strlen(name);
    a.start = start;
    a.end = end;
    pki_activity_add(&a);
}

static void add_kernels(uint64_t start, uint64_t length)
{
    static const char *const names[] = {"void gemm<128, 64>(float*)", "softmax \"x\"", "tiny"};
    pk_region *const regions[] = {&forward, &backward, &sync_point};
    for (uint32_t k = 0; k < KERNELS; k++) {
        uint64_t at = start + below((uint32_t)length);
        pki_activity a = {.kind = PKI_ACTIVITY_KERNEL,
                          .track = stream(0, 7 + k % 2),
                          .region = k % 5 ? pki_region_id(regions[k % 3]) : 0,
                          .context = 1,
                          .stream = 7,
                          .correlation = k + 1,
                          .flow = 1};
        add(a, names[k % 3], at, at + below(40 * US));
    }
}

static void add_copies(uint64_t start, uint64_t length)
{
    static const char *const names[] = {"Memcpy HtoD (Pinned -> Device)",
                                        "Memcpy DtoH (Device -> Pageable)",
                                        "Memcpy DtoD (Device -> Device)", "Memcpy PtoP"};
    static const pki_copy ways[] = {PKI_COPY_HTOD, PKI_COPY_DTOH, PKI_COPY_DTOD, PKI_COPY_PTOP};
    for (uint32_t i = 0; i < PKI_COUNT_OF(ways); i++) {
        uint64_t at = start + below((uint32_t)length);
        pki_activity a = {.kind = PKI_ACTIVITY_MEMCPY,
                          .copy = ways[i],
                          .bytes = 4096u * below(1000),
                          .context = 1,
                          .track = stream(0, 13)};
        add(a, names[i], at, at + below(30 * US));
    }
    add((pki_activity){.kind = PKI_ACTIVITY_MEMSET, .context = 1, .track = stream(0, 13)},
        "Memset (Device)", start, start + 5 * US);
}

/* What is on no stream: waits, calls, ranges, and what measuring took. */
static void add_others(uint64_t start, uint64_t length)
{
    uint32_t thread = beside((uint32_t)getpid(), "CUDA calls"), other = beside(1, "ranges");
    pki_activity host = {.device = PKI_NO_DEVICE, .track = thread, .context = 1};
    host.kind = PKI_ACTIVITY_SYNC;
    add(host, "Stream Sync", start + length / 2, start + length / 2 + 60 * US);
    add(host, "Stream Wait Event", start, start + length);
    host.kind = PKI_ACTIVITY_RUNTIME;
    add(host, "cudaLaunchKernel", start, start + 3 * US);
    host.kind = PKI_ACTIVITY_DRIVER;
    add(host, "cuLaunchKernel", start + US, start + 2 * US);
    host.track = other;
    host.kind = PKI_ACTIVITY_RANGE;
    add(host, "nccl:all_reduce", start, start + length);
    host.kind = PKI_ACTIVITY_OVERHEAD;
    add(host, "Buffer Flush", start, start + below(9 * US));
}

static void add_spans(uint64_t start, uint64_t length)
{
    for (uint32_t device = 0; device < 2; device++) {
        pki_activity span = {.kind = PKI_ACTIVITY_SPAN,
                             .device = device,
                             .track = stream(device, 100),
                             .stream = 100 + device / 2,
                             .stream_hidden = 1,
                             .region = pki_region_id(&forward)};
        add(span, "forward", start + 10 * US, start + length / 2);
        span.region = pki_region_id(&never);
        add(span, "on the stream only", start + length / 4, start + length / 3 + 50 * US);
    }
}

/* An all-reduce on a stream of its own, as CUPTI tells it and as event pairs do. */
static void add_kernel_of_nccl(uint64_t start, uint64_t length)
{
    uint64_t at = start + below((uint32_t)length);
    add(
        (pki_activity){
            .kind = PKI_ACTIVITY_KERNEL, .track = stream(0, 20), .context = 1, .stream = 20},
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at, at + below(90 * US));
}

/* Another device runs its step as a graph, recorded as a whole, beside such a kernel. */
static void add_graph(uint64_t start, uint64_t length)
{
    pki_activity a = {.kind = PKI_ACTIVITY_KERNEL,
                      .device = 2,
                      .track = stream(2, 20),
                      .context = 2,
                      .stream = 20,
                      .graph = 3,
                      .graph_node = 4};
    add(a, "ncclDevKernel_AllGather", start, start + length / 2);
    a.kind = PKI_ACTIVITY_GRAPH;
    a.track = stream(2, 7);
    a.stream = 7;
    a.graph_node = 0;
    add(a, "graph 3", start + length / 4, start + length);
}

static void add_collectives(pk_comm *comm, uint64_t step, uint64_t start, uint64_t length)
{
    for (uint32_t device = 0; device < 2; device++) {
        uint64_t sequence = 2 * step + device + 1, at = start + below((uint32_t)length);
        uint64_t end = at + below(90 * US);
        const pki_activity_arg args[] = {{"exposed_ns", NULL, 77},
                                         {"Collective name", "all_reduce", 0},
                                         {"Group size", NULL, 2},
                                         {"Process Group Name", "dp", 0},
                                         {"Process Group Description", "NCCL", 0},
                                         {"Rank", NULL, 1},
                                         {"Seq", NULL, (int64_t)sequence},
                                         {"algorithm", sequence % 3 ? "RING" : "TREE", 0},
                                         {"protocol", "LL", 0},
                                         {"channels", NULL, 4}};
        add((pki_activity){.kind = PKI_ACTIVITY_OPERATION,
                           .device = device,
                           .track = beside(2 + device, device ? "dp, stream 21" : "dp, stream 20"),
                           .stream = device ? 21 : 20,
                           .stream_hidden = 1,
                           .bytes = 4096,
                           .args = args,
                           .arg_count = PKI_COUNT_OF(args)},
            "NCCL all_reduce", at, end);
        pki_activity_count_operation(
            &(pki_timed_operation){.comm = comm->index,
                                   .ranks = 2,
                                   .op = PK_COMM_OP_ALL_REDUCE,
                                   .bytes = 4096,
                                   .sequence = sequence,
                                   .start = at,
                                   .end = end,
                                   .exposed = 77,
                                   .in_flight = 1,
                                   .algorithm = sequence % 3 ? "RING" : "TREE",
                                   .protocol = "LL",
                                   .channels = 4},
            1);
    }
}

/* ---- the loop ---- */

static void spend(uint64_t ns)
{
    for (uint64_t until = now() + ns; now() < until;)
        ;
}

static void work(void)
{
    {
        PK_REGION_SCOPE(forward);
        spend(150 * US);
    }
    {
        PK_REGION_SCOPE(backward);
        spend(100 * US);
    }
    PK_REGION_SCOPE(sync_point);
    spend(50 * US);
}

/* A step began between `before` and `after`: the thread may have lost its processor in between. */
typedef struct edge {
    uint64_t before, after;
} edge;

/* What device 0 and 1 did in a step, three steps later. */
static void tell(pk_comm *comm, uint64_t step, const edge *edges)
{
    uint64_t start = edges[step].after, length = edges[step + 1].before - start;
    bool measured = step >= 10 && step < 50;
    pthread_mutex_lock(&pki_drain_lock);
    if (step == 10) {
        pki_activity_begins(PKI_SOURCE_CUPTI, start);
        pki_activity_measures(edges[step].before, true); /* step 10 itself is whole */
    }
    if (measured) {
        add_others(start, length);
        add_kernels(start, length);
        add_copies(start, length);
        add_kernel_of_nccl(start, length);
        add_graph(start, length);
        pki_activity_finalised(PKI_SOURCE_CUPTI, start);
    }
    if (step == 50) {
        pki_activity_measures(start, false);
        pki_activity_ends(PKI_SOURCE_CUPTI);
    }
    if (step % 3)
        add_spans(start, length);
    add_collectives(comm, step, start, length);
    pki_activity_finalised(PKI_SOURCE_CUDA, start);
    pki_activity_counter(&memory, 1e9 + 1e6 * (double)step);
    pthread_mutex_unlock(&pki_drain_lock);
}

int main(int argc, char **argv)
{
    edge edges[STEPS + 1];
    (void)argv;
    if (pk_start(NULL) != PK_OK)
        return 1;
    pthread_mutex_lock(&pki_drain_lock);
    pki_activity_begins(PKI_SOURCE_CUDA, 0);
    pthread_mutex_unlock(&pki_drain_lock);
    pk_comm *comm = pk_comm_create("NCCL", "dp", 0, 1, 2);
    edges[0].after = now();
    for (uint64_t i = 0; i < STEPS; i++) {
        work();
        if (i >= 3)
            tell(comm, i - 3, edges);
        edges[i + 1].before = now();
        pk_step(32);
        edges[i + 1].after = now();
    }
    for (uint64_t i = STEPS - 3; i < STEPS; i++)
        tell(comm, i, edges);
    pk_flush();
    if (argc > 1)
        raise(SIGKILL);
    return pk_stop() != PK_OK;
}
