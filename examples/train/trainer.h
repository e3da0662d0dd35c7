/* examples/train/trainer.h - the training loop, and its checkpoints */
#pragma once

#include <signal.h>

#include "data.h"
#include "model.h"
#include "options.h"

typedef struct trainer {
    const options *options;
    text text;
    corpus corpus;
    model *model;
    loader *loader;
    uint64_t step; /* steps done */
    /* What several trainers do with their gradients before the optimiser; NULL: there is one. */
    void (*communicate)(parameters *p, double loss);
} trainer;

typedef struct step_result {
    double loss, gradient_norm, rate;
} step_result;

/* False after complaining; finish in either case. */
bool trainer_init(trainer *t, const options *o);
void trainer_finish(trainer *t);

/* False after complaining. */
bool trainer_step(trainer *t, step_result *result);
bool trainer_save(const trainer *t);

/* All steps that are left, with progress lines and checkpoints, until `stop` is set (by a signal
 * handler; NULL: never). False after complaining. */
bool trainer_run(trainer *t, const volatile sig_atomic_t *stop);
