/* fake/cublas_device.c - a cuBLAS on the mock of a device (fake/device.c), for the tests on a GPU:
 * a product of matrices is a kernel that takes as long as its operations at FLOPS_PER_NS. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

enum { FLOPS_PER_NS = 600000, REFUSED = 7 };

#define EXPORT __attribute__((visibility("default")))

static CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CUstream, void **, void **);
static CUfunction kernel;

typedef struct handle {
    CUstream stream;
} handle;

EXPORT int cublasCreate_v2(handle **out);
int cublasCreate_v2(handle **out)
{
    const char *path = getenv("PK_CUDA_LIBRARY");
    void *driver = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *first = driver ? dlsym(driver, "cuLaunchKernel") : NULL;
    void *second = driver ? dlsym(driver, "cuModuleGetFunction") : NULL;
    CUresult (*function)(CUfunction *, CUmodule, const char *);
    if (!first || !second)
        return REFUSED;
    memcpy(&launch, &first, sizeof first);
    memcpy(&function, &second, sizeof second);
    *out = calloc(1, sizeof **out);
    return function(&kernel, NULL, "gemm_bf16") || !*out ? REFUSED : 0;
}

EXPORT int cublasSetStream_v2(handle *h, CUstream stream);
int cublasSetStream_v2(handle *h, CUstream stream)
{
    h->stream = stream;
    return 0;
}

EXPORT int cublasGemmEx(const handle *h, int a_transposed, int b_transposed, int m, int n, int k,
                        const void *alpha, const void *a, int a_type, int lda, const void *b,
                        int b_type, int ldb, const void *beta, void *c, int c_type, int ldc,
                        int compute, int algorithm);
int cublasGemmEx(const handle *h, int a_transposed, int b_transposed, int m, int n, int k,
                 const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type,
                 int ldb, const void *beta, void *c, int c_type, int ldc, int compute,
                 int algorithm)
{
    uint64_t ns = (uint64_t)(2.0 * m * n * k / FLOPS_PER_NS);
    void *arguments[] = {&ns};
    (void)a_transposed, (void)b_transposed, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb;
    (void)beta, (void)c, (void)ldc, (void)compute, (void)algorithm;
    if (a_type != b_type || a_type != c_type)
        return REFUSED;
    return launch(kernel, 1, 1, 1, 1, 1, 1, 0, h->stream, arguments, NULL) ? REFUSED : 0;
}
