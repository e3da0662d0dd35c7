/* fake/nccl_device.c - an NCCL on the mock of a device (fake/device.c), for the tests on a GPU: its
 * operations are kernels that take as long as their bytes at BYTES_PER_US, and a group's messages
 * are one kernel; its communicators are told to the profiler in the program. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

enum { BYTES_PER_US = 100000, LEAST_NS = 8000, QUEUED = 64, NOT_INITIALISED = 5 };

typedef struct communicator {
    int rank, ranks;
    CUcontext context;
    void *profiler;
} communicator;

/* As lib/comm/plugin/abi.h has it, version 5. */
typedef struct profiler {
    const char *name;
    int (*init)(void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                int rank, void *log);
    int (*start)(void *context, void **handle, void *description);
    int (*stop)(void *handle);
    int (*state)(void *handle, int state, void *arguments);
    int (*finalize)(void *context);
} profiler;

typedef struct work {
    communicator *comm;
    CUstream stream;
    size_t bytes;
} work;

static CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CUstream, void **, void **);
static CUresult (*set_current)(CUcontext);
static CUresult (*get_current)(CUcontext *);
static CUresult (*retain)(CUcontext *, CUdevice);
static CUfunction kernels[2]; /* of messages, of collectives */
static _Thread_local int depth;
static _Thread_local work messages[QUEUED], collectives[QUEUED];
static _Thread_local size_t message_count, collective_count;
static int mask;

static void find(void *library, const char *name, void *function)
{
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(function, &symbol, sizeof symbol);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("PK_CUDA_LIBRARY");
    void *driver = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    CUresult (*function)(CUfunction *, CUmodule, const char *);
    find(driver, "cuLaunchKernel", &launch);
    find(driver, "cuCtxSetCurrent", &set_current);
    find(driver, "cuCtxGetCurrent", &get_current);
    find(driver, "cuDevicePrimaryCtxRetain", &retain);
    find(driver, "cuModuleGetFunction", &function);
    if (function) {
        function(&kernels[0], NULL, "ncclDevKernel_SendRecv");
        function(&kernels[1], NULL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    }
}

static const profiler *find_profiler(void)
{
    const char *fault = getenv("FAKE_DEVICE_FAULT"); /* fake/device.c */
    return fault && strcmp(fault, "plugin") == 0 ? NULL : dlsym(RTLD_DEFAULT, "ncclProfiler_v5");
}

static int make(void **comm, int ranks, int rank, int device)
{
    const profiler *p = find_profiler();
    communicator *c = calloc(1, sizeof *c);
    if (!c)
        return 2;
    *c = (communicator){.rank = rank, .ranks = ranks};
    retain(&c->context, device);
    if (p)
        p->init(&c->profiler, 77, &mask, "mock", 1, ranks, rank, NULL);
    *comm = c;
    return 0;
}

static int run(const work *w, CUfunction kernel)
{
    uint64_t ns = LEAST_NS + (uint64_t)w->bytes * 1000 / BYTES_PER_US;
    void *arguments[] = {&ns};
    CUcontext before;
    get_current(&before);
    set_current(w->comm->context);
    CUresult code = launch(kernel, 1, 1, 1, 1, 1, 1, 0, w->stream, arguments, NULL);
    set_current(before);
    return code ? 1 : 0;
}

typedef struct unique_id {
    char internal[128];
} unique_id;

/* Strong with a p, and weak without, as NCCL has them. */
#define ENTRY(NAME, PARAMS)                                                                        \
    int pnccl##NAME PARAMS;                                                                        \
    int nccl##NAME PARAMS __attribute__((weak, alias("pnccl" #NAME)));                             \
    int pnccl##NAME PARAMS

ENTRY(GetVersion, (int *version))
{
    *version = 22809;
    return 0;
}

ENTRY(CommInitAll, (void **comms, int ranks, const int *devices))
{
    if (!launch)
        return NOT_INITIALISED;
    for (int i = 0; i < ranks; i++)
        if (make(&comms[i], ranks, i, devices[i]))
            return 2;
    return 0;
}

/* Of this process one rank, whose device is the one that is current. */
ENTRY(CommInitRank, (void **comm, int ranks, unique_id id, int rank))
{
    (void)id;
    return launch ? make(comm, ranks, rank, rank) : NOT_INITIALISED;
}

ENTRY(CommCount, (const void *comm, int *ranks))
{
    *ranks = ((const communicator *)comm)->ranks;
    return 0;
}

ENTRY(CommUserRank, (const void *comm, int *rank))
{
    *rank = ((const communicator *)comm)->rank;
    return 0;
}

ENTRY(CommDestroy, (void *comm))
{
    communicator *c = comm;
    const profiler *p = find_profiler();
    if (p && c->profiler)
        p->finalize(c->profiler);
    free(c);
    return 0;
}

ENTRY(GroupStart, (void))
{
    depth++;
    return 0;
}

ENTRY(GroupEnd, (void))
{
    int result = 0;
    if (--depth > 0)
        return 0;
    for (size_t i = 0; i < collective_count; i++)
        result |= run(&collectives[i], kernels[1]);
    if (message_count > 0) /* all of them are one kernel */
        result |= run(&messages[0], kernels[0]);
    message_count = collective_count = 0;
    return result;
}

static int add(work *queue, size_t *count, work w, CUfunction kernel)
{
    if (depth == 0)
        return run(&w, kernel);
    if (*count == QUEUED)
        return 3;
    queue[(*count)++] = w;
    return 0;
}

ENTRY(Send, (const void *from, size_t count, int type, int peer, void *comm, CUstream s))
{
    (void)from, (void)type, (void)peer;
    return add(messages, &message_count, (work){comm, s, 4 * count}, kernels[0]);
}

ENTRY(Recv, (void *to, size_t count, int type, int peer, void *comm, CUstream s))
{
    (void)to, (void)type, (void)peer;
    return add(messages, &message_count, (work){comm, s, 4 * count}, kernels[0]);
}

ENTRY(AllReduce,
      (const void *from, void *to, size_t count, int type, int op, void *comm, CUstream s))
{
    (void)from, (void)to, (void)type, (void)op;
    return add(collectives, &collective_count, (work){comm, s, 4 * count}, kernels[1]);
}
