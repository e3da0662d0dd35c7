#include "measure/fold/fold.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pki_fold *now;

void pki_fold_lock(void)
{
    pthread_mutex_lock(&lock);
}

void pki_fold_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

pki_fold *pki_fold_now(void)
{
    return now;
}

static void destroy(pki_fold *fold)
{
    if (!fold)
        return;
    for (size_t i = 0; i < fold->thread_count; i++)
        free(fold->threads[i].work);
    pki_steps_destroy(fold->steps);
    pki_device_destroy(fold->device);
    pki_comm_figures_destroy(fold->collectives);
    pki_timelines_finish(&fold->timelines);
    pki_spans_finish_counter(&fold->spans);
    free(fold->requests);
    free(fold->threads);
    free(fold);
}

static pki_fold *create(pki_registry *registry, bool per_thread, uint32_t warmup_steps)
{
    pki_fold *fold = calloc(1, sizeof *fold);
    if (!fold)
        return NULL;
    fold->registry = registry;
    fold->per_thread = per_thread;
    fold->steps = pki_steps_create();
    fold->device = pki_device_create(PKI_DEVICE_ITEMS);
    fold->collectives = pki_comm_figures_create();
    pki_spans *spans = &registry->arena->spans;
    fold->last_resort = pki_table_add(spans, &fold->totals, PKI_NAME_TOO_MANY, PK_OTHER);
    if (!fold->steps || !fold->device || !fold->collectives || !fold->last_resort ||
        !pki_table_add(spans, &fold->totals, PKI_NAME_STEP, PKI_KIND_INTERNAL)) {
        destroy(fold);
        return NULL;
    }
    pki_steps_expect_warmup(fold->steps, warmup_steps);
    pki_device_expect_warmup(fold->device, warmup_steps);
    return fold;
}

bool pki_fold_open(pki_registry *registry, bool per_thread, uint32_t warmup_steps)
{
    pki_fold *fold = registry ? create(registry, per_thread, warmup_steps) : NULL;
    pki_fold_lock();
    destroy(now);
    now = fold;
    pki_fold_unlock();
    return fold || !registry;
}

void pki_fold_after_fork(void)
{
    if (pthread_mutex_trylock(&lock) == 0) {
        destroy(now); /* else somebody was at it, and it may be half of something */
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_init(&lock, NULL);
    now = NULL; /* its tables lie in the parent's arena */
}

pki_thread_fold *pki_fold_thread(pki_fold *fold, const pki_thread *t)
{
    if (!pki_array_fit(&fold->threads, &fold->thread_count, t->index + (size_t)1,
                       sizeof *fold->threads))
        return &fold->nobody;
    return &fold->threads[t->index];
}
