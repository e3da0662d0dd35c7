/* program.c DOUBLE FOLDER - uses NCCL as a training engine does, and knows nothing of perfkit. Its
 * streams are those of the mock of the driver. What it saw goes to FOLDER/result, what a profiler
 * should have seen to FOLDER/ledger: communicator, operation, bytes of a call, calls, sharers. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../fake/driver.h"
#include "nccl_stub.h"

enum { BYTES = 65536, THREADS = 4, ROUNDS = 100 };

static const fake_cuda_script *gpu;
static CUcontext context;
static CUstream stream;
static FILE *result, *ledger;
static unsigned char out[BYTES], in[BYTES];

static void need(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "program: %s\n", what);
    exit(1);
}

static unsigned sum_of(const unsigned char *bytes)
{
    unsigned sum = 1;
    for (int i = 0; i < BYTES; i++)
        sum = sum * 31 + bytes[i];
    return sum;
}

static void saw(const char *what, int code)
{
    fprintf(result, "%s: %d, errno %d, %08x\n", what, code, errno, sum_of(in));
    errno = 42;
}

static void expect(const char *comm, const char *op, size_t bytes, unsigned calls, unsigned sharers)
{
    fprintf(ledger, "%s|%s|%zu|%u|%u\n", comm, op, bytes, calls, sharers);
}

/* ---- communicators ---- */

static char plain_name[32];
static ncclComm_t world, plain, late[2], child, local[2], unseen;

static void make_all(void)
{
    ncclUniqueId id;
    ncclConfig config = {.size = sizeof config, .blocking = 1, .name = "world"};
    saw("id", ncclGetUniqueId(&id));
    saw("world", ncclCommInitRankConfig(&world, 4, id, 1, &config));
    ncclGetUniqueId(&id);
    uint64_t hash = 5381; /* as NCCL tells its profilers */
    for (size_t i = 0; i < sizeof id.internal; i++)
        hash = (hash * 33) ^ (uint64_t)(int64_t)(signed char)id.internal[i];
    snprintf(plain_name, sizeof plain_name, "nccl %016llx", (unsigned long long)hash);
    saw("plain", ncclCommInitRank(&plain, 8, id, 3));
    ncclGroupStart();
    for (int i = 0; i < 2; i++) {
        ncclGetUniqueId(&id);
        config.name = i ? "late 1" : "late 0";
        saw("late", ncclCommInitRankConfig(&late[i], 2, id, i, &config));
        need(late[i] == NULL, "a handle came too early");
    }
    saw("late", ncclGroupEnd());
    saw("child", ncclCommSplit(world, 7, 1, &child, NULL));
    ncclComm_t none;
    saw("no child", ncclCommSplit(world, -1, 1, &none, NULL));
    saw("local", ncclCommInitAll(local, 2, NULL));
    saw("unseen", pncclCommInitRank(&unseen, 16, id, 9)); /* before anybody listened */
}

static void destroy_all(void)
{
    ncclComm_t all[] = {world, plain, late[1], child, local[0], local[1], unseen};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        saw("finalize", ncclCommFinalize(all[i]));
        saw("destroy", ncclCommDestroy(all[i]));
    }
}

/* ---- one after the other ---- */

static void each_once(void)
{
    saw("AllReduce", ncclAllReduce(out, in, 1000, FLOAT, SUM, world, stream));
    expect("world", "all_reduce", 4000, 1, 1);
    saw("Broadcast", ncclBroadcast(out, in, 7, DOUBLE, 2, world, stream));
    expect("world", "broadcast", 56, 1, 1);
    saw("Bcast", ncclBcast(in, 9, INT8, 0, world, stream));
    expect("world", "broadcast", 9, 1, 1);
    saw("Reduce", ncclReduce(out, in, 11, HALF, SUM, 3, world, stream));
    expect("world", "reduce", 22, 1, 1);
    saw("AllGather", ncclAllGather(out, in, 13, BFLOAT16, world, stream));
    expect("world", "all_gather", 26, 1, 1);
    saw("ReduceScatter", ncclReduceScatter(out, in, 17, UINT64, SUM, world, stream));
    expect("world", "reduce_scatter", 136, 1, 1);
    saw("Send", ncclSend(out, 19, INT32, 2, world, stream));
    expect("world", "send", 76, 1, 1);
    saw("Recv", ncclRecv(in, 23, UINT8, 2, world, stream));
    expect("world", "recv", 23, 1, 1);
    saw("nothing", ncclAllReduce(out, in, 0, E4M3, SUM, world, stream));
    expect("world", "all_reduce", 0, 1, 1);
    saw("NULL stream", ncclAllReduce(out, in, 5, E5M2, SUM, world, NULL));
    expect("world", "all_reduce", 5, 1, 1);
}

/* What an older NCCL lacks is found, or not, as a plug-in would look for it. */
static void later_ones(void)
{
    int (*all_to_all)(const void *, void *, size_t, int, ncclComm_t, stub_stream);
    int (*gather)(const void *, void *, size_t, int, int, ncclComm_t, stub_stream);
    int (*shrink)(ncclComm_t, int *, int, ncclComm_t *, ncclConfig *, int);
    void *there = dlsym(RTLD_DEFAULT, "pncclGather");
    *(void **)&all_to_all = dlsym(RTLD_DEFAULT, "ncclAlltoAll");
    *(void **)&gather = dlsym(RTLD_DEFAULT, "ncclGather");
    *(void **)&shrink = dlsym(RTLD_DEFAULT, "ncclCommShrink");
    saw("AlltoAll", all_to_all ? all_to_all(out, in, 29, FLOAT, world, stream) : 5);
    saw("Gather", gather ? gather(out, in, 31, FLOAT, 1, world, stream) : 5);
    *(void **)&gather = dlsym(RTLD_DEFAULT, "ncclScatter");
    saw("Scatter", gather ? gather(out, in, 37, FLOAT, 1, world, stream) : 5);
    if (there) {
        expect("world", "all_to_all", 116, 1, 1);
        expect("world", "gather", 124, 1, 1);
        expect("world", "scatter", 148, 1, 1);
    }
    ncclComm_t less = NULL;
    int gone = 2;
    saw("Shrink", shrink ? shrink(world, &gone, 1, &less, NULL, 0) : 5);
    if (less) {
        saw("shrunk", ncclAllReduce(out, in, 41, FLOAT, SUM, less, stream));
        expect("world/3.1", "all_reduce", 164, 1, 1);
        ncclCommDestroy(less);
    }
}

/* As training that survives a lost rank uses them. */
static void newest_ones(void)
{
    ncclUniqueId id = {{1}};
    ncclConfig config = {.size = sizeof config, .blocking = 1, .name = "grown"};
    int (*revoke)(ncclComm_t, int);
    int (*grow)(ncclComm_t, int, const ncclUniqueId *, int, ncclComm_t *, ncclConfig *);
    int (*put)(const void *, size_t, int, int, stub_window, size_t, int, int, unsigned, ncclComm_t,
               stub_stream);
    int (*signal)(int, int, int, unsigned, ncclComm_t, stub_stream);
    void *there = dlsym(RTLD_DEFAULT, "pncclSignal");
    *(void **)&revoke = dlsym(RTLD_DEFAULT, "ncclCommRevoke");
    *(void **)&grow = dlsym(RTLD_DEFAULT, "ncclCommGrow");
    *(void **)&put = dlsym(RTLD_DEFAULT, "ncclPutSignal");
    *(void **)&signal = dlsym(RTLD_DEFAULT, "ncclSignal");
    saw("Put", put ? put(out, 43, FLOAT, 2, NULL, 0, 0, 0, 0, world, stream) : 5);
    saw("Signal", signal ? signal(2, 0, 0, 0, world, stream) : 5);
    saw("bad signal", signal ? signal(2, 1, 0, 0, world, stream) : 5);
    ncclComm_t more = NULL, joined = NULL, last = NULL;
    saw("Grow", grow ? grow(world, 6, NULL, -1, &more, &config) : 5);
    saw("Grow in", grow ? grow(NULL, 6, &id, 5, &joined, &config) : 5);
    saw("Grow wrongly", grow ? grow(world, 6, NULL, 2, &last, &config) : 5);
    if (!there)
        return;
    expect("world", "send", 172, 1, 1);
    expect("world", "other", 0, 1, 1);
    saw("grown", ncclAllReduce(out, in, 47, FLOAT, SUM, more, stream));
    saw("joined", ncclAllReduce(out, in, 47, FLOAT, SUM, joined, stream));
    expect("grown", "all_reduce", 188, 1, 1);
    expect("grown", "all_reduce", 188, 1, 1);
    saw("Revoke", revoke(more, 0));
    saw("revoked", ncclAllReduce(out, in, 47, FLOAT, SUM, more, stream));
    ncclCommDestroy(more);
    ncclCommDestroy(joined);
}

/* ---- communicators that do not block ---- */

static void wait_until_done(ncclComm_t comm)
{
    int state = 7, turns = 0;
    for (; state == 7; turns++)
        need(!ncclCommGetAsyncError(comm, &state), "the communicator's state");
    need(state == 0, "an error in the background");
    fprintf(result, "done after %d\n", turns);
}

static void patient(void)
{
    ncclUniqueId id = {{2}};
    ncclConfig config = {.size = sizeof config, .blocking = 0, .name = "patient"};
    ncclComm_t comm = NULL;
    int ranks;
    saw("patient", ncclCommInitRankConfig(&comm, 2, id, 0, &config));
    saw("too early", ncclAllReduce(out, in, 600, INT8, SUM, comm, stream));
    saw("count", ncclCommCount(comm, &ranks));
    wait_until_done(comm);
    for (int i = 0; i < 3; i++) {
        saw("in progress", ncclAllReduce(out, in, 601, INT8, SUM, comm, stream));
        wait_until_done(comm);
        expect("patient", "all_reduce", 601, 1, 1);
    }
    saw("in progress", ncclAllReduce(out, in, 602, INT8, SUM, comm, stream));
    saw("too early", ncclAllReduce(out, in, 602, INT8, SUM, comm, stream)); /* when is not known */
    wait_until_done(comm);
    ncclGroupStart();
    for (int i = 0; i < 2; i++)
        saw("member", ncclAllReduce(out, in, 603, INT8, SUM, comm, stream));
    saw("group in progress", ncclGroupEnd());
    wait_until_done(comm);
    expect("patient", "all_reduce", 603, 2, 1);
    saw("in progress", ncclAllReduce(out, in, 604, INT8, SUM, comm, stream));
    saw("abort", ncclCommAbort(comm)); /* never came */
}

static void of_all_communicators(void)
{
    saw("plain", ncclAllReduce(out, in, 100, INT8, SUM, plain, stream));
    saw("late", ncclAllReduce(out, in, 101, INT8, SUM, late[1], stream));
    saw("child", ncclAllReduce(out, in, 102, INT8, SUM, child, stream));
    saw("local", ncclAllReduce(out, in, 103, INT8, SUM, local[0], stream));
    saw("unseen", ncclAllReduce(out, in, 104, INT8, SUM, unseen, stream));
    saw("none", ncclAllReduce(out, in, 105, INT8, SUM, NULL, stream));
    expect(plain_name, "all_reduce", 100, 1, 1);
    expect("late 1", "all_reduce", 101, 1, 1);
    expect("world/1.7", "all_reduce", 102, 1, 1);
    expect("communicator of 2", "all_reduce", 103, 1, 1);
    expect("communicator of 16", "all_reduce", 104, 1, 1);
}

static void errors(void)
{
    for (int code = 1; code < 8; code++) {
        stub_next(code);
        saw("error", ncclAllReduce(out, in, 200, INT8, SUM, world, stream));
    }
    saw("type", ncclAllReduce(out, in, 201, 99, SUM, world, stream));
}

/* ---- groups ---- */

static void groups(void)
{
    ncclGroupStart(); /* alike, and nested */
    ncclGroupStart();
    for (int i = 0; i < 4; i++)
        saw("member", ncclAllReduce(out, in, 300, INT8, SUM, world, stream));
    saw("inner", ncclGroupEnd());
    saw("alike", ncclGroupEnd());
    expect("world", "all_reduce", 300, 4, 1);
    ncclGroupStart();
    ncclBcast(in, 301, INT8, 1, world, stream);
    ncclSend(out, 302, INT8, 2, plain, stream);
    saw("unlike", ncclGroupEnd());
    expect("world", "group", 301, 1, 2);
    expect(plain_name, "group", 302, 1, 2);
    ncclGroupStart();
    ncclRecv(in, 303, INT8, 2, world, stream);
    ncclSend(out, 303, INT8, 2, world, stream);
    saw("pair", ncclGroupEnd());
    expect("world", "send_recv", 303, 1, 1);
    saw("empty", ncclGroupStart() + ncclGroupEnd());
    saw("stray", ncclGroupEnd());
}

static void groups_that_fail(void)
{
    ncclGroupStart();
    stub_next(4);
    saw("bad member", ncclAllReduce(out, in, 400, INT8, SUM, world, stream));
    saw("good member", ncclAllReduce(out, in, 401, INT8, SUM, world, stream));
    saw("good group", ncclGroupEnd());
    expect("world", "all_reduce", 401, 1, 1);
    ncclGroupStart();
    ncclAllReduce(out, in, 402, INT8, SUM, world, stream);
    stub_next_end(6);
    saw("bad group", ncclGroupEnd());
    ncclGroupStart();
    ncclAllReduce(out, in, 403, INT8, SUM, late[0], stream);
    ncclAllReduce(out, in, 404, INT8, SUM, late[1], stream);
    saw("abort", ncclCommAbort(late[0]));
    saw("aborted", ncclGroupEnd());
    expect("late 1", "all_reduce", 404, 1, 1);
}

/* ---- threads, each with a communicator and a stream of its own ---- */

static void *loop(void *number)
{
    int n = (int)(intptr_t)number;
    unsigned char *mine = calloc(2, BYTES);
    ncclComm_t comm = NULL;
    ncclUniqueId id = {{(char)n}};
    char name[16];
    snprintf(name, sizeof name, "thread %d", n % 1000);
    ncclConfig config = {.size = sizeof config, .blocking = 1, .name = name};
    gpu->context_current(context);
    CUstream own = gpu->stream_create(context);
    need(mine && ncclCommInitRankConfig(&comm, 2, id, 0, &config) == 0, "no communicator");
    for (size_t i = 1; i <= ROUNDS; i++)
        need(ncclAllReduce(mine, mine + BYTES, i, INT8, SUM, comm, own) == 0, "a thread");
    need(ncclCommDestroy(comm) == 0, "destroy");
    free(mine);
    return NULL;
}

static void threads(void)
{
    pthread_t all[THREADS];
    for (int n = 0; n < THREADS; n++) {
        char name[16];
        snprintf(name, sizeof name, "thread %d", n % 1000);
        need(!pthread_create(&all[n], NULL, loop, (void *)(intptr_t)n), "no thread");
        for (size_t i = 1; i <= ROUNDS; i++)
            expect(name, "all_reduce", i, 1, 1);
    }
    for (int n = 0; n < THREADS; n++)
        pthread_join(all[n], NULL);
}

/* ---- a graph: launched once, nobody announces it ---- */

static void graph(void)
{
    CUgraph g;
    CUstream captured = gpu->stream_create(context);
    need(!gpu->capture_begin(captured, CU_STREAM_CAPTURE_MODE_GLOBAL), "no capture");
    saw("captured", ncclAllGather(out, in, 500, INT8, world, captured));
    need(!gpu->capture_end(captured, &g), "the capture was spoilt");
    CUgraphExec exec = gpu->instantiate(g);
    need(!gpu->launch(exec, captured), "no launch");
    expect("world", "all_gather", 500, 1, 1);
}

int main(int argc, char **argv)
{
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    need(library != NULL, "usage: program DOUBLE FOLDER");
    gpu = dlsym(library, FAKE_CUDA_SCRIPT);
    char path[4096];
    snprintf(path, sizeof path, "%s/result", argv[2]);
    result = fopen(path, "w");
    snprintf(path, sizeof path, "%s/ledger", argv[2]);
    ledger = fopen(path, "w");
    need(gpu && result && ledger, "no files");
    context = gpu->context_create(0);
    stream = gpu->stream_create(context);
    for (int i = 0; i < BYTES; i++)
        out[i] = (unsigned char)(i * 7);
    errno = 42;
    make_all();
    each_once();
    of_all_communicators();
    errors();
    groups();
    groups_that_fail();
    threads();
    graph();
    later_ones();
    newest_ones();
    patient();
    destroy_all();
    fprintf(result, "done %u\n", stub_done());
    need(gpu->invalidated() == 0, "a capture was spoilt");
    return fclose(result) || fclose(ledger);
}
