/* attention.h - causal self-attention with several heads: a token looks at itself and those before
 * it. */
#ifndef TRAIN_ATTENTION_H
#define TRAIN_ATTENTION_H

#include "linear.h"

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

#endif
