#include "loader.h"

#include <errno.h>
#include <pk/pk.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "say.h"

/* The thread's own regions. They show in the trace what the loader does while the trainer computes.
 * They are not data time of the step: that is what the trainer waits, "batch.wait" in trainer.c. */
static pk_region read_region = PK_REGION_OF(PK_DATA, "loader.read");
static pk_region slow_region = PK_REGION_OF(PK_DATA, "loader.slow");
static pk_region stalled_region = PK_REGION_OF(PK_DATA, "loader.stalled");
static pk_region full_region = PK_REGION_OF(PK_WAIT, "loader.full");

struct loader {
    loader_options options;
    queue *queue;
    uint8_t *window; /* room for one */
    pthread_t thread;
};

static uint64_t choose_window(const loader_options *o, uint64_t place)
{
    uint64_t windows = o->corpus->windows, epoch = place / windows;
    return random_order(random_mix(o->seed ^ random_mix(epoch + 1)), place % windows, windows);
}

static bool fill(const loader *l, uint64_t number, batch *b)
{
    const loader_options *o = &l->options;
    size_t seq = o->corpus->seq;
    b->number = number;
    for (size_t i = 0; i < o->batch; i++) {
        if (!corpus_read(o->corpus, choose_window(o, number * o->batch + i), l->window))
            return false;
        memcpy(b->input + i * seq, l->window, seq);
        memcpy(b->target + i * seq, l->window + 1, seq);
    }
    pk_region_add(&read_region, o->batch * (seq + 1), 0);
    return true;
}

static uint64_t slowness(const loader *l)
{
    uint64_t wanted = l->options.slow_ms;
    return wanted == LOADER_TOO_SLOW ? 3 * queue_kept(l->queue) : wanted * 1000000;
}

/* Nothing is ahead any more, and then it takes as long as STALL_STEPS steps. A median is at most
 * twice the mean, so this is four times the median at least, on whatever machine. */
static bool stall(loader *l)
{
    enum { STALL_STEPS = 8, LEAST_MS = 50 };
    bool open = false;
    PK_SCOPE(stalled_region) {
        uint64_t wait = STALL_STEPS * queue_kept_mean(l->queue);
        open = queue_drain(l->queue) &&
               queue_sleep(l->queue, wait > LEAST_MS * 1000000u ? wait : LEAST_MS * 1000000u);
    }
    return open;
}

static bool load(loader *l, uint64_t number)
{
    batch *b = NULL;
    bool good = true;
    PK_SCOPE(full_region) {
        b = queue_claim(l->queue);
    }
    if (b && l->options.slow_ms)
        PK_SCOPE(slow_region) {
            good = queue_sleep(l->queue, slowness(l));
        }
    if (b && good && l->options.slow_step && number == l->options.slow_step)
        good = stall(l);
    if (!b || !good)
        return false;
    PK_SCOPE(read_region) {
        good = fill(l, number, b);
    }
    if (good)
        queue_commit(l->queue);
    return good;
}

static void *run(void *argument)
{
    loader *l = argument;
    pk_thread_name("loader");
    uint64_t number = l->options.first;
    while (load(l, number))
        number++;
    queue_close(l->queue);
    return NULL;
}

static void destroy(loader *l)
{
    queue_destroy(l->queue);
    free(l->window);
    free(l);
}

loader *loader_start(const loader_options *o)
{
    loader *l = calloc(1, sizeof(*l));
    if (!l) {
        complain("not enough memory for the loader");
        return NULL;
    }
    l->options = *o;
    l->queue = queue_create(o->queue, o->batch * o->corpus->seq);
    l->window = malloc(o->corpus->seq + 1);
    int error = l->queue && l->window ? pthread_create(&l->thread, NULL, run, l) : ENOMEM;
    if (error) {
        complain("cannot start the loader: %s", strerror(error));
        destroy(l);
        return NULL;
    }
    return l;
}

const batch *loader_next(loader *l)
{
    return queue_take(l->queue);
}

void loader_release(loader *l)
{
    queue_release(l->queue);
}

void loader_stop(loader *l)
{
    if (!l)
        return;
    queue_close(l->queue);
    pthread_join(l->thread, NULL);
    destroy(l);
}
