#include "norm.h"

#include <pk/pk.h>
#include <tgmath.h>

static pk_region forward = PK_REGION_OF(PK_COMPUTE, "layernorm");
static pk_region backward = PK_REGION_OF(PK_COMPUTE, "layernorm.backward");

static real mean_of(size_t n, const real *x)
{
    real sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (real)n;
}

static real variance_of(size_t n, const real *x, real mean)
{
    real sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sum / (real)n;
}

void norm_forward(const norm *values, const norm_cache *cache, size_t tokens, const real *x,
                  real *y)
{
    size_t dim = values->dim;
    PK_SCOPE(forward) {
        for (size_t t = 0; t < tokens; t++, x += dim, y += dim) {
            real mean = mean_of(dim, x);
            real scale = 1 / sqrt(variance_of(dim, x, mean) + (real)1e-5);
            for (size_t i = 0; i < dim; i++)
                y[i] = (x[i] - mean) * scale * values->gain[i] + values->bias[i];
            cache->mean[t] = mean;
            cache->scale[t] = scale;
        }
    }
}

static void token_backward(const norm *values, const norm *gradients, real mean, real scale,
                           const real *x, const real *dy, real *dx)
{
    size_t dim = values->dim;
    real sum = 0, product = 0;
    for (size_t i = 0; i < dim; i++) {
        real unit = (x[i] - mean) * scale, d = dy[i] * values->gain[i];
        gradients->gain[i] += dy[i] * unit;
        gradients->bias[i] += dy[i];
        sum += d;
        product += d * unit;
    }
    /* Mean and variance depend on every x: their part is taken off what came straight down. */
    sum /= (real)dim;
    product /= (real)dim;
    for (size_t i = 0; i < dim; i++) {
        real unit = (x[i] - mean) * scale;
        dx[i] += (dy[i] * values->gain[i] - sum - unit * product) * scale;
    }
}

void norm_backward(const norm *values, const norm *gradients, const norm_cache *cache,
                   size_t tokens, const real *x, const real *dy, real *dx)
{
    size_t dim = values->dim;
    PK_SCOPE(backward) {
        for (size_t t = 0; t < tokens; t++)
            token_backward(values, gradients, cache->mean[t], cache->scale[t], x + t * dim,
                           dy + t * dim, dx + t * dim);
    }
}
