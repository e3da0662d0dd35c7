/* bench.md's benchmark has matrices. */
#include <pk/pk.h>
#include <stdlib.h>

static inline float *matrix(int64_t n)
{
    return calloc((size_t)(n * n), sizeof(float));
}

static inline void multiply(float *c, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
}

static inline void free_all(float *a, float *b, float *c)
{
    free(a);
    free(b);
    free(c);
}
