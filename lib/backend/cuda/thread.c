/* lib/backend/cuda/thread.c - which lanes a thread has: found by stream, without a lock. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "backend/cuda/lane.h"
#include "backend/cuda/reasons.h"

#define BUCKETS 64u
#define LOOK_AGAIN 256u /* begins: is the handle still the stream that it was? */

typedef struct thread {
    pki_cuda_lane *last;
    pki_cuda_lane *buckets[BUCKETS];
} thread;

static _Thread_local thread *self;
static pthread_key_t key;
static bool key_made;

uint64_t pki_cuda_refused_begun, pki_cuda_refused_dropped;
void (*pki_cuda_at_thread_end)(void);

/* The thread ends: its lanes are the collector's, which gives them to others once they are read. */
static void release_lanes(void *pointer)
{
    thread *t = pointer;
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (pki_cuda_lane *l = t->buckets[i], *next; l; l = next) {
            next = l->in_thread;
            pki_store_release(&l->life, (uint32_t)PKI_CUDA_LEFT); /* acquire: cuda/harvest.c */
        }
    self = NULL;
    void (*also)(void) = pki_load(&pki_cuda_at_thread_end);
    if (also)
        also();
    free(t);
}

bool pki_cuda_threads_prepare(void)
{
    if (!key_made)
        key_made = pthread_key_create(&key, release_lanes) == 0;
    return key_made;
}

void pki_cuda_threads_after_fork(void)
{
    free(self); /* this thread's own: nobody else is here to use it */
    self = NULL;
    if (key_made)
        pthread_setspecific(key, NULL);
}

static thread *make_self(void)
{
    thread *t = calloc(1, sizeof *t);
    if (t && pthread_setspecific(key, t) != 0) {
        free(t);
        t = NULL;
    }
    return self = t;
}

static pki_cuda_lane **bucket_of(thread *t, CUstream stream)
{
    uintptr_t bits = (uintptr_t)stream;
    return &t->buckets[(bits >> 4 ^ bits >> 10 ^ bits) % BUCKETS];
}

static bool is_default(CUstream stream)
{
    return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

static CUcontext current_for(CUstream stream)
{
    CUcontext current = NULL;
    if (is_default(stream) && pki_cuda.ctx_current(&current))
        current = NULL;
    return current;
}

static CUcontext context_of(CUstream stream, CUcontext current)
{
    CUcontext ctx = current;
    if (!is_default(stream) && pki_cuda.stream_ctx(stream, &ctx))
        ctx = NULL;
    return ctx;
}

void pki_cuda_lane_forget(pki_cuda_lane *lane)
{
    pki_cuda_lane **at = bucket_of(self, lane->stream);
    while (*at && *at != lane)
        at = &(*at)->in_thread;
    if (*at)
        *at = lane->in_thread;
    self->last = NULL;
    pki_store_release(&lane->life, (uint32_t)PKI_CUDA_LEFT); /* acquire: cuda/harvest.c */
}

static bool is_same_stream(const pki_cuda_lane *l)
{
    unsigned long long id = l->stream_id;
    if (context_of(l->stream, l->current) != l->context->handle ||
        !pki_cuda_context_is_same(l->context))
        return false;
    return is_default(l->stream) || !pki_cuda.stream_id || pki_cuda.stream_id(l->stream, &id) ||
           id == l->stream_id;
}

/* Only between spans: what is open belongs to the stream it was begun on. */
static bool is_outdated(pki_cuda_lane *l)
{
    if (l->depth > 0)
        return false;
    if (pki_load(&l->context->dead) == PKI_CUDA_GONE)
        return true;
    return ++l->calls % LOOK_AGAIN == 0 && !is_same_stream(l);
}

static pki_cuda_lane *refuse(bool begins, bool memory)
{
    if (!begins)
        return NULL;
    pki_fetch_add(&pki_cuda_refused_dropped, (uint64_t)memory);
    pki_fetch_add(&pki_cuda_refused_begun, (uint64_t)1);
    pki_cuda_note_reason(memory ? PKI_CUDA_NO_MEMORY : PKI_CUDA_NO_CONTEXT, CUDA_SUCCESS, 0);
    return NULL;
}

static PKI_COLD pki_cuda_lane *make_lane(CUstream stream, CUcontext current)
{
    CUcontext ctx = context_of(stream, current);
    if (!ctx)
        return refuse(true, false);
    pki_cuda_context *context = pki_cuda_context_for(ctx);
    pki_cuda_lane *l = context ? pki_cuda_lane_acquire(context, stream) : NULL;
    if (!l)
        return refuse(true, true);
    pki_cuda_lane **at = bucket_of(self, stream);
    l->current = current;
    l->stream_id = pki_cuda_stream_id(stream);
    l->in_thread = *at;
    return *at = l;
}

static pki_cuda_lane *find(CUstream stream, CUcontext current)
{
    pki_cuda_lane *l = *bucket_of(self, stream);
    while (l && !(l->stream == stream && l->current == current))
        l = l->in_thread;
    return l;
}

bool pki_cuda_lane_is_own(const pki_cuda_lane *lane, CUstream stream)
{
    const pki_cuda_lane *l = self ? *bucket_of(self, stream) : NULL;
    while (l && l != lane)
        l = l->in_thread;
    return l;
}

static PKI_COLD pki_cuda_lane *look_up(CUstream stream, CUcontext current, bool begins)
{
    pki_cuda_lane *l;
    if (!self && (!begins || !make_self()))
        return refuse(begins, true);
    while ((l = find(stream, current)) && begins && is_outdated(l))
        pki_cuda_lane_forget(l);
    if (!l && begins)
        l = make_lane(stream, current);
    if (l && l->session != pki_load(&pki_cuda_session))
        pki_cuda_lane_enter(l);
    self->last = l;
    return l;
}

pki_cuda_lane *pki_cuda_lane_of(CUstream stream, bool begins)
{
    CUcontext current = current_for(stream);
    pki_cuda_lane *l = self ? self->last : NULL;
    bool known = l && l->stream == stream && l->current == current &&
                 l->session == pki_load(&pki_cuda_session);
    if (PKI_LIKELY(known && !(begins && is_outdated(l))))
        return l;
    if (known)
        pki_cuda_lane_forget(l);
    return look_up(stream, current, begins);
}
