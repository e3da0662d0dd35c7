#include "loss.h"

#include <pk/pk.h>
#include <tgmath.h>

static pk_region region = PK_REGION_OF(PK_COMPUTE, "loss");

/* Softmax in place; returns the logarithm of the target's probability. */
static double predict(size_t classes, size_t target, real *logits)
{
    real most = logits[0], sum = 0;
    for (size_t i = 1; i < classes; i++)
        most = logits[i] > most ? logits[i] : most;
    real wanted = logits[target] - most;
    for (size_t i = 0; i < classes; i++) {
        logits[i] = exp(logits[i] - most);
        sum += logits[i];
    }
    for (size_t i = 0; i < classes; i++)
        logits[i] /= sum;
    return (double)(wanted - log(sum));
}

double loss_forward_backward(size_t tokens, size_t classes, const uint8_t *target, real *logits)
{
    double sum = 0;
    PK_SCOPE(region) {
        for (size_t t = 0; t < tokens; t++) {
            real *row = logits + t * classes;
            sum -= predict(classes, target[t], row);
            row[target[t]] -= 1;
            for (size_t i = 0; i < classes; i++)
                row[i] /= (real)tokens;
        }
    }
    return sum / (double)tokens;
}
