/* norm.h - layer normalisation: every token's vector to mean 0 and variance 1, then a gain and a
 * bias. */
#ifndef TRAIN_NORM_H
#define TRAIN_NORM_H

#include "real.h"

typedef struct norm {
    size_t dim;
    real *gain, *bias;
} norm;

/* What the way back needs of the way forward: per token, the mean and 1 / standard deviation. */
typedef struct norm_cache {
    real *mean, *scale;
} norm_cache;

void norm_forward(const norm *values, const norm_cache *cache, size_t tokens, const real *x,
                  real *y);

/* Adds to dx, since x is the residual stream, which gets gradient from elsewhere too. */
void norm_backward(const norm *values, const norm *gradients, const norm_cache *cache,
                   size_t tokens, const real *x, const real *dy, real *dx);

#endif
