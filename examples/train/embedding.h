/* embedding.h - from bytes to vectors: one learned vector per byte value, plus one per position. */
#ifndef TRAIN_EMBEDDING_H
#define TRAIN_EMBEDDING_H

#include "real.h"

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

#endif
