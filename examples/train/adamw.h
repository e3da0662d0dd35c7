/* adamw.h - the optimiser: Adam with decoupled weight decay, after clipping the gradient's norm. */
#ifndef TRAIN_ADAMW_H
#define TRAIN_ADAMW_H

#include "weights.h"

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

#endif
