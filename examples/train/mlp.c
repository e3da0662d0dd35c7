#include "mlp.h"

#include <string.h>
#include <tgmath.h>

static pk_region forward = PK_REGION_OF(PK_COMPUTE, "mlp");
static pk_region backward = PK_REGION_OF(PK_COMPUTE, "mlp.backward");

/* x (1 + tanh(z / 2)) / 2 with z = 2 sqrt(2 / pi) (x + 0.044715 x^3), in the form x sigmoid(z),
 * which takes one exponential. Replaces x by its value. */
static void gelu(size_t n, real *x, real *slope)
{
    const real a = (real)1.5957691216057308, b = (real)0.044715;
    for (size_t i = 0; i < n; i++) {
        real u = x[i];
        real gate = 1 / (1 + exp(-a * (u + b * u * u * u)));
        x[i] = u * gate;
        slope[i] = gate + u * gate * (1 - gate) * a * (1 + 3 * b * u * u);
    }
}

void mlp_forward(const mlp *values, const mlp_cache *cache, size_t tokens, const real *x, real *y)
{
    size_t hidden = tokens * values->up.out;
    PK_SCOPE(forward) {
        memset(cache->active, 0, hidden * sizeof(real));
        linear_forward(&forward, &values->up, tokens, x, cache->active);
        gelu(hidden, cache->active, cache->slope);
        linear_forward(&forward, &values->down, tokens, cache->active, y);
    }
}

void mlp_backward(const mlp *values, const mlp *gradients, const mlp_cache *cache, size_t tokens,
                  const real *x, const real *dy, real *dx, real *hidden)
{
    PK_SCOPE(backward) {
        linear_backward(&backward, &values->down, &gradients->down, tokens, cache->active, dy,
                        hidden);
        for (size_t i = 0; i < tokens * values->up.out; i++)
            hidden[i] *= cache->slope[i];
        linear_backward(&backward, &values->up, &gradients->up, tokens, x, hidden, dx);
    }
}
