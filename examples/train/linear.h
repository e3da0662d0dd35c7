/* linear.h - y = x W + b, and its derivative. */
#ifndef TRAIN_LINEAR_H
#define TRAIN_LINEAR_H

#include <pk/pk.h>

#include "real.h"

typedef struct linear {
    size_t in, out;
    real *weight; /* in x out */
    real *bias;   /* out; NULL: none */
} linear;

/* y += x W + b; y is tokens x out. */
void linear_forward(pk_region *charge, const linear *values, size_t tokens, const real *x, real *y);

/* From dy, the gradient of y: adds to those of the weights, sets that of x. */
void linear_backward(pk_region *charge, const linear *values, const linear *gradients,
                     size_t tokens, const real *x, const real *dy, real *dx);

#endif
