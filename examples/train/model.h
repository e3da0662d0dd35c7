/* examples/train/model.h - the transformer: its weights, a step forward and backward, and AdamW */
#pragma once

#include <pk/pk.h>

#include "layers.h"

/* ---- all that is learned ---- */

/* The model's tensors, their gradients and the optimiser's moments.
 *
 * Each kind lies in one array, in the same order: an optimiser step, a gradient norm or a
 * checkpoint is then one loop, and the layers see named pointers into it. */

typedef struct shape {
    size_t layers, dim, heads, seq;
} shape;

typedef struct block {
    norm before_attention;
    attention attention;
    norm before_mlp;
    mlp mlp;
} block;

typedef struct weights {
    embedding embedding;
    block *blocks;
    norm last;
    linear head; /* dim x VOCABULARY, no bias */
} weights;

/* One tensor's place in the arrays, and how it is initialised and regularised. */
typedef struct tensor {
    char name[64];
    size_t offset, count;
    real center, spread; /* of the normal distribution that it begins with */
    bool decays;         /* matrices do; gains, biases and embeddings do not */
} tensor;

typedef struct parameters {
    size_t count; /* numbers in each array, padding included; the padding stays 0 */
    real *values, *gradients, *first_moment, *second_moment;
    weights value, gradient; /* views of the first two */
    size_t tensor_count;
    tensor *tensors;
} parameters;

/* False if there is no memory; finish all the same. */
bool parameters_init(parameters *p, const shape *s);
void parameters_finish(parameters *p);

void parameters_randomise(parameters *p, uint64_t seed);
void parameters_clear_gradients(parameters *p);

/* ---- a decoder-only transformer over bytes ---- */

/* Loss on the way forward, gradients on the way back.
 *
 *     stream = embedding(bytes)
 *     for each block:  stream += attention(norm(stream));  stream += mlp(norm(stream))
 *     logits = norm(stream) head */

/* What a block's way back needs of its way forward. */
typedef struct block_activations {
    real *stream; /* what came in */
    real *middle; /* between attention and mlp */
    real *normed_attention, *normed_mlp;
    norm_cache norm_attention, norm_mlp;
    attention_cache attention;
    mlp_cache mlp;
} block_activations;

typedef struct model_scratch {
    real *stream, *normed, *hidden; /* gradients */
    attention_scratch attention;
} model_scratch;

typedef struct model {
    shape shape;
    size_t batch;
    parameters parameters;
    real *memory; /* what everything below lies in */
    block_activations *blocks;
    real *stream, *normed, *logits; /* after the last block */
    norm_cache last;
    model_scratch scratch;
    pk_region **forward, **backward; /* per block */
} model;

/* For batches of that many sequences. NULL if there is no memory. destroy accepts NULL. */
model *model_create(const shape *s, size_t batch);
void model_destroy(model *m);

/* Both take batch x seq bytes. Returns the mean loss. */
double model_forward(model *m, const uint8_t *input, const uint8_t *target);

/* After model_forward of the same input; adds to the gradients. */
void model_backward(model *m, const uint8_t *input);

/* ---- the optimiser ---- */

/* Adam with decoupled weight decay, after clipping the gradient's norm. */

typedef struct adamw {
    double beta1, beta2, epsilon;
    double decay; /* of the tensors that decay, times the learning rate, per step */
    double clip;  /* the gradient is scaled down to this norm; 0: never */
} adamw;

/* Returns the norm of the gradient before clipping. `step` counts from 0. */
double adamw_update(const adamw *o, parameters *p, double learning_rate, uint64_t step);

/* Rises linearly for `warmup` steps to `peak`, then falls along a cosine to a tenth of it at
 * `steps`. */
double learning_rate_at(double peak, uint64_t warmup, uint64_t steps, uint64_t step);
