/* examples/train/layers.h - the layers of the transformer, forward and backward */
#pragma once

#include <pk/pk.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- random numbers that are the same on every machine for a seed ---- */

/* A bijection of 64-bit numbers whose output looks unrelated to its input (splitmix64's finaliser).
 */
uint64_t random_mix(uint64_t x);

typedef struct random_source {
    uint64_t state;
} random_source;

uint64_t random_bits(random_source *source);

/* Of the normal distribution, mean 0 and standard deviation 1. */
double random_normal(random_source *source);

/* Which of `count` things comes at `place` (0 .. count - 1) in the shuffle named `key`. A function
 * of its arguments alone, so a resumed run finds its place in the data without replaying it. */
uint64_t random_order(uint64_t key, uint64_t place, uint64_t count);

/* ---- the number that the model computes with ---- */

/* Float for training. The gradient check is built with TRAIN_DOUBLE, where a central difference is
 * exact enough to tell a wrong term of a derivative from rounding. */

#ifdef TRAIN_DOUBLE
typedef double real;
#else
typedef float real;
#endif

/* ---- the matrix product, where a step spends most of its time ---- */

/* Element (i, j) lies at data[i * row + j * column]. */
typedef struct matrix {
    const real *data;
    size_t row, column;
} matrix;

static inline matrix plain(const real *data, size_t row)
{
    return (matrix){data, row, 1};
}

/* Rows for columns: nothing is moved. */
static inline matrix transposed(const real *data, size_t row)
{
    return (matrix){data, 1, row};
}

/* c = a b, where a is m x k, b is k x n and c is m x n, its rows c_row apart. */
typedef struct extent {
    size_t m, n, k;
} extent;

/* Adds its bytes and operations to `charge`, the region that the caller has open: the report then
 * shows GB/s and GFLOP/s beside each layer's time. */
void matmul(pk_region *charge, extent e, matrix a, matrix b, real *c, size_t c_row);

/* c += a b */
void matmul_add(pk_region *charge, extent e, matrix a, matrix b, real *c, size_t c_row);

/* ---- y = x W + b, and its derivative ---- */

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

/* ---- layer normalisation ---- */

/* Every token's vector to mean 0 and variance 1, then a gain and a bias. */

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

/* ---- from bytes to vectors ---- */

/* One learned vector per byte value, plus one per position. */

enum { VOCABULARY = 256 };

typedef struct embedding {
    size_t dim;
    real *byte;     /* VOCABULARY x dim */
    real *position; /* seq x dim */
} embedding;

void embedding_forward(const embedding *values, size_t batch, size_t seq, const uint8_t *bytes,
                       real *y);
void embedding_backward(const embedding *gradients, size_t batch, size_t seq, const uint8_t *bytes,
                        const real *dy);

/* ---- causal self-attention with several heads ---- */

/* A token looks at itself and those before it. */

typedef struct attention {
    size_t dim, heads;
    linear qkv; /* dim x 3 dim: queries, keys, values */
    linear out; /* dim x dim */
} attention;

typedef struct attention_cache {
    real *qkv;           /* tokens x 3 dim */
    real *probabilities; /* sequence and head: seq x seq, rows sum to 1 */
    real *mixed;         /* tokens x dim: the values, averaged by the probabilities */
} attention_cache;

/* Room for the way back: tokens x 3 dim, tokens x dim, seq x seq. */
typedef struct attention_scratch {
    real *qkv, *mixed, *scores;
} attention_scratch;

/* y += attention(x), for `batch` sequences of `seq` tokens. */
void attention_forward(const attention *values, const attention_cache *cache, size_t batch,
                       size_t seq, const real *x, real *y);

/* Sets dx. */
void attention_backward(const attention *values, const attention *gradients,
                        const attention_cache *cache, const attention_scratch *scratch,
                        size_t batch, size_t seq, const real *x, const real *dy, real *dx);

/* ---- the block's two-layer network ---- */

/* Up to four times the width, GELU, and down again. */

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

/* ---- cross-entropy ---- */

/* How surprised the model is by the byte that really came next, in nats. */

/* The mean over the tokens; replaces the logits (tokens x classes) by their gradient. */
double loss_forward_backward(size_t tokens, size_t classes, const uint8_t *target, real *logits);

/* ---- many arrays out of one allocation ---- */

/* The same code lays the arrays out twice: with base NULL to learn how much room they need, then
 * for real. */

typedef struct pool {
    real *base; /* NULL: only count */
    size_t used;
} pool;

static inline real *pool_take(pool *p, size_t count)
{
    real *array = p->base ? p->base + p->used : NULL;
    p->used += (count + 15) / 16 * 16; /* every array begins on a cache line of its own */
    return array;
}
