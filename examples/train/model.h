/* model.h - a decoder-only transformer over bytes: loss on the way forward, gradients on the way
 * back.
 *
 *     stream = embedding(bytes)
 *     for each block:  stream += attention(norm(stream));  stream += mlp(norm(stream))
 *     logits = norm(stream) head
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <pk/pk.h>

#include "weights.h"

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

#endif
