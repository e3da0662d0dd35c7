/* Products of matrices by cuBLAS, whose operations are known: the share of the device's peak that
 * the report gives, and what the device's own counters (GPM) say of its tensor cores meanwhile. */
#include "gpu.h"

#include <pk/pk.h>
#include <pk/step.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After NVIDIA's cuBLAS reference and library_types.h. */
enum { NOT_TRANSPOSED = 0, BF16 = 14, COMPUTE_32F = 68, ANY_ALGORITHM = -1 };

static struct {
    int (*create)(void **handle);
    int (*set_stream)(void *handle, cuda_stream stream);
    int (*gemm)(void *handle, int a_transposed, int b_transposed, int m, int n, int k,
                const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type,
                int ldb, const void *beta, void *c, int c_type, int ldc, int compute,
                int algorithm);
} blas;

static void bind(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    if (!symbol)
        gpu_skip("cuBLAS has no %s", name);
    memcpy(function, &symbol, sizeof symbol);
}

static void open_blas(void)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so",
                                        "/usr/local/cuda/lib64/libcublas.so"};
    const char *named = getenv("PK_CUBLAS_LIBRARY");
    void *library = named && *named ? dlopen(named, RTLD_NOW) : NULL;
    for (size_t i = 0; !library && !(named && *named) && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW);
    if (!library)
        gpu_skip("there is no cuBLAS (PK_CUBLAS_LIBRARY names one): %s", dlerror());
    bind(library, "cublasCreate_v2", &blas.create);
    bind(library, "cublasSetStream_v2", &blas.set_stream);
    bind(library, "cublasGemmEx", &blas.gemm);
}

/* ---- products ---- */

#define SIDE 4096
#define PRODUCTS 20
#define PEAK 989.5e12 /* an H200's; what is held against it is arithmetic, whatever the device */
#define WARM_UP 10
#define STEPS_MOST 4096

static void *handle;
static cuda_stream stream;
static cuda_memory a, b, c;
static uint64_t ends[STEPS_MOST];

static void *pointer(cuda_memory at)
{
    return (void *)(uintptr_t)at;
}

static void multiply(void)
{
    const float one = 1, zero = 0;
    int code = blas.gemm(handle, NOT_TRANSPOSED, NOT_TRANSPOSED, SIDE, SIDE, SIDE, &one, pointer(a),
                         BF16, SIDE, pointer(b), BF16, SIDE, &zero, pointer(c), BF16, SIDE,
                         COMPUTE_32F, ANY_ALGORITHM);
    if (!gpu_check(code == 0, "cublasGemmEx: %d", code))
        exit(gpu_result());
}

static double operations(void)
{
    return 2.0 * SIDE * SIDE * SIDE * PRODUCTS;
}

static unsigned run_steps(double seconds)
{
    unsigned steps = 0;
    uint64_t until = gpu_now() + (uint64_t)(seconds * 1e9);
    while (steps < STEPS_MOST && (gpu_now() < until || steps < 2 * WARM_UP)) {
        for (int i = 0; i < PRODUCTS; i++)
            multiply();
        must(cu.cuda_stream_synchronize(stream));
        pk_step_add_flops(operations(), 0);
        pk_step(1);
        ends[steps++] = gpu_now();
    }
    return steps;
}

/* ---- what is told ---- */

static void check_share(const char *report, unsigned steps)
{
    unsigned counted = steps - WARM_UP;
    double ns = (double)(ends[steps - 1] - ends[WARM_UP - 1]);
    double own = operations() * counted / (ns / 1e9) / PEAK;
    double told = gpu_number(report, "utilisation", "mfu", NULL),
           of = gpu_number(report, "utilisation", "steps", NULL);
    gpu_figure("gemm.mfu", "%.3f %% in the report, %.3f %% by own arithmetic: %.1f Tflop/s",
               1e2 * told, 1e2 * own, own * PEAK / 1e12);
    gpu_check(of == counted, "%.0f steps of %u", of, counted);
    gpu_check(fabs(told - own) <= 0.01 * own, "%.4f %% of %.4f %%", 1e2 * told, 1e2 * own);
}

/* Samples of a counter: a line each, its value the last number. */
static double mean_of(const char *path, const char *counter, unsigned *count)
{
    char *line = NULL;
    size_t size = 0;
    double sum = 0;
    FILE *file = fopen(path, "r");
    *count = 0;
    while (file && getline(&line, &size, file) > 0) {
        const char *value = strstr(line, counter) ? strrchr(line, ':') : NULL;
        if (value && strstr(line, "\"ph\":\"C\""))
            sum += strtod(value + 1, NULL), ++*count;
    }
    free(line);
    if (file)
        fclose(file);
    return *count ? sum / *count : NAN;
}

static void check_counters(const char *trace, double share)
{
    unsigned count;
    double tensor = mean_of(trace, "\"gpu0.tensor_active\"", &count);
    if (!count) {
        gpu_figure("gemm.gpm", "none: the device or its driver has no GPM; NVML: %s",
                   gpu_reason("nvml"));
        return;
    }
    gpu_figure("gemm.gpm", "tensor cores active %.1f %%, %u samples, beside %.1f %% of the peak",
               tensor, count, 1e2 * share);
    gpu_check(tensor >= 5 && tensor <= 100, "%.1f %% in products of matrices", tensor);
}

int test_gemm(int argc, char **argv)
{
    (void)argc, (void)argv;
    char trace[512], report[512];
    driver_open();
    open_blas();
    stream = driver_stream();
    size_t bytes = (size_t)SIDE * SIDE * 2;
    must(cu.cuda_memory(&a, bytes));
    must(cu.cuda_memory(&b, bytes));
    must(cu.cuda_memory(&c, bytes));
    int code = blas.create(&handle);
    if (code == 0)
        code = blas.set_stream(handle, stream);
    if (!gpu_check(code == 0, "cublasCreate, cublasSetStream: %d", code))
        return gpu_result();
    multiply(); /* what is loaded and tried out at first */
    must(cu.cuda_stream_synchronize(stream));
    snprintf(trace, sizeof trace, "%s", gpu_path("trace.json"));
    snprintf(report, sizeof report, "%s", gpu_path("report.json"));
    setenv("PK_PEAK", "bf16:989.5e12", 0);
    pk_status status = pk_start(pk_options(.trace_path = trace, .report_path = report,
                                           .backends = "nvml", .warmup_steps = WARM_UP));
    gpu_check(status == PK_OK, "%s", pk_error_message());
    unsigned steps = run_steps(gpu_seconds(5, 1));
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    char *text = gpu_read(report);
    if (text) {
        check_share(text, steps);
        check_counters(trace, gpu_number(text, "utilisation", "mfu", NULL));
    }
    free(text);
    return gpu_result();
}
