/* mlp.h - the block's two-layer network: up to four times the width, GELU, and down again. */
#ifndef TRAIN_MLP_H
#define TRAIN_MLP_H

#include "linear.h"

typedef struct mlp {
    linear up, down;
} mlp;

/* Per token and hidden unit: GELU's value and its derivative there. */
typedef struct mlp_cache {
    real *active, *slope;
} mlp_cache;

/* y += mlp(x) */
void mlp_forward(const mlp *values, const mlp_cache *cache, size_t tokens, const real *x, real *y);

/* Sets dx; `hidden` is room for tokens x hidden units. */
void mlp_backward(const mlp *values, const mlp *gradients, const mlp_cache *cache, size_t tokens,
                  const real *x, const real *dy, real *dx, real *hidden);

#endif
