#include "embedding.h"

#include <pk/pk.h>

static pk_region forward = PK_REGION_OF(PK_COMPUTE, "embedding");
static pk_region backward = PK_REGION_OF(PK_COMPUTE, "embedding.backward");

void embedding_forward(const embedding *values, size_t batch, size_t seq, const uint8_t *bytes,
                       real *y)
{
    size_t dim = values->dim;
    PK_SCOPE(forward) {
        for (size_t t = 0; t < batch * seq; t++) {
            const real *byte = values->byte + bytes[t] * dim;
            const real *position = values->position + t % seq * dim;
            for (size_t i = 0; i < dim; i++)
                y[t * dim + i] = byte[i] + position[i];
        }
    }
}

void embedding_backward(const embedding *gradients, size_t batch, size_t seq, const uint8_t *bytes,
                        const real *dy)
{
    size_t dim = gradients->dim;
    PK_SCOPE(backward) {
        for (size_t t = 0; t < batch * seq; t++) {
            real *byte = gradients->byte + bytes[t] * dim;
            real *position = gradients->position + t % seq * dim;
            for (size_t i = 0; i < dim; i++) {
                byte[i] += dy[t * dim + i];
                position[i] += dy[t * dim + i];
            }
        }
    }
}
