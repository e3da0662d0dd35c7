/* nccl_wrap.c DOUBLE [WHAT N] - what a collective costs through libpk_nccl, on an NCCL that answers
 * at once and the mock of the driver. The bar: two event records, and 150 ns. With WHAT and N: so
 * many of one kind, for a tool that counts instructions (bench/instructions.sh). */
#include <pk/gpu.h>
#include <pk/pk.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/fake/driver.h"
#include "../tests/nccl/wrap/nccl_stub.h"
#include "harness.h"

enum { CALLS = 2000 }; /* a round's: there is room for them on a lane */

static const fake_cuda_script *gpu;
static CUstream stream;
static CUevent events[2];
static CUresult(CUDAAPI *record)(CUevent, CUstream);
static CUresult(CUDAAPI *create)(CUevent *, unsigned);
static CUresult(CUDAAPI *is_capturing)(CUstream, CUstreamCaptureStatus *);
static pk_region region = PK_REGION("span");
static ncclComm_t comm;

static void call(void)
{
    pncclAllReduce(NULL, NULL, 1, FLOAT, SUM, comm, stream);
}

static void run_bare(uint64_t n)
{
    while (n-- > 0)
        call();
}

static void run_records(uint64_t n)
{
    while (n-- > 0) {
        record(events[0], stream);
        call();
        record(events[1], stream);
    }
}

static void run_asked(uint64_t n)
{
    CUstreamCaptureStatus status;
    while (n-- > 0) {
        is_capturing(stream, &status);
        record(events[0], stream);
        call();
        is_capturing(stream, &status);
        record(events[1], stream);
    }
}

static void run_spans(uint64_t n)
{
    while (n-- > 0) {
        pk_gpu_begin(&region, stream);
        call();
        pk_gpu_end(&region, stream);
    }
}

static void run_wrapped(uint64_t n)
{
    while (n-- > 0)
        ncclAllReduce(NULL, NULL, 1, FLOAT, SUM, comm, stream);
}

static void empty(void)
{
    pk_flush();
}

static const struct {
    const char *name;
    void (*run)(uint64_t n);
    bool started;
} subjects[] = {
    {"bare", run_bare, false},   {"off", run_wrapped, false}, {"records", run_records, false},
    {"asked", run_asked, false}, {"span", run_spans, true},   {"wrapped", run_wrapped, true},
};

static void find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    if (!address)
        bench_fail(name);
    memcpy(function, &address, sizeof address);
}

static void set_up(const char *path)
{
    ncclUniqueId id = {{1}};
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        bench_fail(dlerror());
    gpu = dlsym(library, FAKE_CUDA_SCRIPT);
    find(library, "cuEventRecord", &record);
    find(library, "cuEventCreate", &create);
    find(library, "cuStreamIsCapturing", &is_capturing);
    setenv("PK_CUDA_LIBRARY", path, 1);
    stream = gpu->stream_create(gpu->context_create(0));
    for (int i = 0; i < 2; i++)
        create(&events[i], 0);
    if (ncclCommInitRank(&comm, 2, id, 0))
        bench_fail("no communicator");
}

/* The pool has what will be in flight: growing is not what a call costs. */
static void start(void)
{
    if (pk_start(pk_options(.backends = "cuda")) != PK_OK)
        bench_fail(pk_error_message());
    gpu->hold(true);
    run_wrapped(3000);
    gpu->hold(false);
    pk_flush();
}

static void count(const char *what, uint64_t n)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (strcmp(what, subjects[i].name) == 0) {
            if (subjects[i].started)
                start();
            subjects[i].run(n);
            _Exit(0); /* nothing after it is counted */
        }
    bench_fail("bare, off, records, asked, span or wrapped");
}

static void time_all(unsigned long rounds)
{
    bench_case off[] = {{.name = "NCCL's call", .run = run_bare, .n = CALLS},
                        {.name = "the same, wrapped, off", .run = run_wrapped, .n = CALLS}};
    bench_case on[] = {
        {.name = "NCCL's call between two records", .run = run_records, .n = CALLS},
        {.name = "and two questions about a capture", .run = run_asked, .n = CALLS},
        {.name = "in a span of pk/gpu.h", .run = run_spans, .n = CALLS, .after = empty},
        {.name = "through libpk_nccl", .run = run_wrapped, .n = CALLS, .after = empty}};
    bench_pin(0);
    bench_rounds(off, sizeof off / sizeof *off, rounds);
    bench_print("perfkit off", off, sizeof off / sizeof *off);
    start();
    bench_rounds(on, sizeof on / sizeof *on, rounds);
    bench_print("perfkit on, on the mock of the driver", on, sizeof on / sizeof *on);
    pk_gpu_counts counts = {.size = sizeof counts};
    if (pk_stop() != PK_OK || pk_get_gpu_counts(&counts) != PK_OK || counts.dropped > 0)
        bench_fail("spans were dropped: the figures above are not of recorded ones");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        bench_fail("usage: nccl_wrap DOUBLE [WHAT N]");
    set_up(argv[1]);
    if (argc == 4 && argv[2][0] != '-')
        count(argv[2], strtoull(argv[3], NULL, 10));
    time_all(bench_number(argc, argv, "--rounds", 51));
    return 0;
}
