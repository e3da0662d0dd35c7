#include "queue.h"

#include <pk/pk.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* A counter is a line in the trace: a queue that keeps touching zero is a loader that cannot keep
 * up. */
static pk_counter length_counter = PK_COUNTER("loader.queue", "batches");

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* there is room, or a batch, or the end */
    bool closed;
    size_t capacity;
    size_t full;      /* committed and not yet released */
    size_t next_full; /* the oldest of them */
    uint64_t taken;   /* when, by nanoseconds() */
    uint64_t kept, kept_in_all, released;
    batch *batches;
    uint8_t *memory;
};

/* Waits by the clock that no one sets. */
static bool init_waiting(queue *q)
{
    pthread_condattr_t attributes;
    if (pthread_mutex_init(&q->lock, NULL) != 0)
        return false;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    bool good = pthread_cond_init(&q->changed, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    if (!good)
        pthread_mutex_destroy(&q->lock);
    return good;
}

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void free_memory(queue *q)
{
    free(q->batches);
    free(q->memory);
    free(q);
}

queue *queue_create(size_t capacity, size_t bytes)
{
    queue *q = calloc(1, sizeof(*q));
    if (!q)
        return NULL;
    q->capacity = capacity;
    q->batches = calloc(capacity, sizeof(*q->batches));
    q->memory = calloc(capacity, 2 * bytes);
    if (!q->batches || !q->memory || !init_waiting(q)) {
        free_memory(q);
        return NULL;
    }
    for (size_t i = 0; i < capacity; i++) {
        q->batches[i].input = q->memory + 2 * i * bytes;
        q->batches[i].target = q->batches[i].input + bytes;
    }
    return q;
}

void queue_destroy(queue *q)
{
    if (!q)
        return;
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free_memory(q);
}

batch *queue_claim(queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->closed && q->full == q->capacity)
        pthread_cond_wait(&q->changed, &q->lock);
    batch *empty = q->closed ? NULL : &q->batches[(q->next_full + q->full) % q->capacity];
    pthread_mutex_unlock(&q->lock);
    return empty;
}

void queue_commit(queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->full++;
    pk_counter_set(&length_counter, (double)q->full);
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

const batch *queue_take(queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->closed && q->full == 0)
        pthread_cond_wait(&q->changed, &q->lock);
    batch *oldest = q->closed ? NULL : &q->batches[q->next_full];
    q->taken = nanoseconds();
    pthread_mutex_unlock(&q->lock);
    return oldest;
}

void queue_release(queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->next_full = (q->next_full + 1) % q->capacity;
    q->full--;
    q->kept = nanoseconds() - q->taken;
    q->kept_in_all += q->kept;
    q->released++;
    pk_counter_set(&length_counter, (double)q->full);
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

void queue_close(queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

bool queue_sleep(queue *q, uint64_t duration)
{
    uint64_t end = nanoseconds() + duration;
    struct timespec until = {.tv_sec = (time_t)(end / 1000000000),
                             .tv_nsec = (long)(end % 1000000000)};
    int result = 0;
    pthread_mutex_lock(&q->lock);
    while (!q->closed && result == 0)
        result = pthread_cond_timedwait(&q->changed, &q->lock, &until);
    bool open = !q->closed;
    pthread_mutex_unlock(&q->lock);
    return open;
}

uint64_t queue_kept(queue *q)
{
    pthread_mutex_lock(&q->lock);
    uint64_t kept = q->kept;
    pthread_mutex_unlock(&q->lock);
    return kept;
}

uint64_t queue_kept_mean(queue *q)
{
    pthread_mutex_lock(&q->lock);
    uint64_t mean = q->released ? q->kept_in_all / q->released : 0;
    pthread_mutex_unlock(&q->lock);
    return mean;
}

bool queue_drain(queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->closed && q->full > 0)
        pthread_cond_wait(&q->changed, &q->lock);
    bool open = !q->closed;
    pthread_mutex_unlock(&q->lock);
    return open;
}
