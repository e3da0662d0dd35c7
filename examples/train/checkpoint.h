/* checkpoint.h - the state of a training in a file, from which it goes on bit by bit as if never
 * stopped. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "weights.h"

/* What a run must have in common with the one that it continues, and how far that had come. */
typedef struct checkpoint_state {
    shape shape;
    uint64_t batch, seed;
    uint64_t step; /* steps done */
} checkpoint_state;

/* Replaces the file as a whole or not at all. False after complaining. */
bool checkpoint_save(const char *path, const checkpoint_state *state, const parameters *p);

typedef enum checkpoint_result {
    CHECKPOINT_LOADED,
    CHECKPOINT_NONE,
    CHECKPOINT_BAD
} checkpoint_result;

/* `state` says what is expected and gets the step. NONE: there is no such file. BAD: after
 * complaining; the parameters may then have changed. */
checkpoint_result checkpoint_load(const char *path, checkpoint_state *state, parameters *p);

/* Whether a file can be made there; better to know before the training. False after complaining. */
bool checkpoint_try(const char *path);

#endif
