/* loader.h - the thread that reads batches ahead of the trainer.
 *
 * Which windows of the text are in batch n depends on the seed and n alone: every window once per
 * epoch, each epoch in an order of its own. A run that is resumed at step n just begins at batch n.
 */
#ifndef TRAIN_LOADER_H
#define TRAIN_LOADER_H

#include "corpus.h"
#include "queue.h"

typedef struct loader_options {
    const corpus *corpus;
    size_t batch; /* windows per batch */
    size_t queue; /* batches ahead at most */
    uint64_t seed;
    uint64_t first;     /* number of the first batch */
    uint64_t slow_ms;   /* pretend that the storage takes so long per batch; 0: do not */
    uint64_t slow_step; /* and that it stands still before the batch of this step; 0: it does not */
} loader_options;

/* As slow_ms: three times as long as the trainer takes, which makes any machine wait. */
#define LOADER_TOO_SLOW UINT64_MAX

typedef struct loader loader;

/* NULL after complaining. */
loader *loader_start(const loader_options *o);

/* The next batch, to be released before the next; NULL when the loader has failed. */
const batch *loader_next(loader *l);
void loader_release(loader *l);

/* At any moment, whatever the thread is waiting for. NULL is fine. */
void loader_stop(loader *l);

#endif
