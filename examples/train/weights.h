/* weights.h - all that is learned: the model's tensors, their gradients and the optimiser's
 * moments.
 *
 * Each kind lies in one array, in the same order: an optimiser step, a gradient norm or a
 * checkpoint is then one loop, and the layers see named pointers into it.
 */
#ifndef TRAIN_WEIGHTS_H
#define TRAIN_WEIGHTS_H

#include "attention.h"
#include "embedding.h"
#include "mlp.h"
#include "norm.h"

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

#endif
