/* queue.h - batches on their way from the loader to the trainer: a bounded queue for one of each.
 *
 * The queue owns the memory. The loader claims an empty batch, fills it and commits it; the trainer
 * takes the oldest full one, learns from it and releases it. Nothing is copied or allocated on the
 * way.
 */
#ifndef TRAIN_QUEUE_H
#define TRAIN_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct batch {
    uint64_t number;         /* of the step that it is for */
    uint8_t *input, *target; /* the target of a byte is the one that follows it */
} batch;

typedef struct queue queue;

/* Room for `capacity` batches of so many bytes of input. NULL if there is no memory. */
queue *queue_create(size_t capacity, size_t bytes);
void queue_destroy(queue *q); /* NULL is fine */

/* The loader's side. claim waits for room; NULL once the queue is closed. */
batch *queue_claim(queue *q);
void queue_commit(queue *q);

/* The trainer's side. take waits for a batch; NULL once the queue is closed. */
const batch *queue_take(queue *q);
void queue_release(queue *q);

/* Either side: both stop waiting, for good. */
void queue_close(queue *q);

/* Waits so many nanoseconds; false at once when the queue is closed. */
bool queue_sleep(queue *q, uint64_t duration);

/* How long the trainer has kept its last batch, in nanoseconds; 0 before it has released one. */
uint64_t queue_kept(queue *q);

/* The mean of that over all batches so far. */
uint64_t queue_kept_mean(queue *q);

/* The loader's side: waits until the trainer has released all; false at once when the queue is
 * closed. */
bool queue_drain(queue *q);

#endif
