/* loss.h - cross-entropy: how surprised the model is by the byte that really came next, in nats. */
#ifndef TRAIN_LOSS_H
#define TRAIN_LOSS_H

#include "real.h"

/* The mean over the tokens; replaces the logits (tokens x classes) by their gradient. */
double loss_forward_backward(size_t tokens, size_t classes, const uint8_t *target, real *logits);

#endif
