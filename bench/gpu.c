/* LIBRARY WHAT N: spans of a stream, or bare calls of the driver's, N times on the mock in
 * tests/fake, for a tool that counts instructions (bench/instructions.sh). On a GPU the cost of a
 * span is tests/gpu's to measure: there the driver's own calls are nearly all of it. */
#include <pk/gpu.h>
#include <pk/pk.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/fake/driver.h"
#include "harness.h"

static pk_region one = PK_REGION("one");
static const fake_cuda_script *gpu;
static CUstream stream;
static CUevent events[2];
static CUresult(CUDAAPI *record)(CUevent, CUstream);
static CUresult(CUDAAPI *create)(CUevent *, unsigned);
static CUresult(CUDAAPI *is_capturing)(CUstream, CUstreamCaptureStatus *);

static void run_records(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            record(events[k], stream);
}

static void run_asked(uint64_t n)
{
    CUstreamCaptureStatus status;
    for (uint64_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            is_capturing(stream, &status);
            record(events[k], stream);
        }
}

static void run_spans(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_gpu_begin(&one, stream);
        pk_gpu_end(&one, stream);
    }
}

/* The pool has what will be in flight: growing is not what a span costs. */
static void warm_up(void)
{
    if (pk_start(pk_options(.backends = "cuda")) != PK_OK)
        bench_fail(pk_error_message());
    gpu->hold(true);
    run_spans(3000);
    gpu->hold(false);
    pk_flush();
}

static const struct {
    const char *name;
    void (*run)(uint64_t n);
    bool started;
} subjects[] = {
    {"records", run_records, false},
    {"asked", run_asked, false},
    {"off", run_spans, false},
    {"span", run_spans, true},
};

static void find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    if (!address)
        bench_fail(name);
    memcpy(function, &address, sizeof address);
}

static void open_double(const char *path)
{
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
}

int main(int argc, char **argv)
{
    uint64_t n = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
    if (n)
        open_double(argv[1]);
    for (size_t i = 0; n && i < sizeof subjects / sizeof *subjects; i++)
        if (strcmp(argv[2], subjects[i].name) == 0) {
            if (subjects[i].started)
                warm_up();
            subjects[i].run(n);
            _Exit(0); /* nothing after it is counted */
        }
    bench_fail("usage: gpu LIBRARY records|asked|off|span N");
}
