#include "backend/cuda/lane.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

uint32_t pki_cuda_session;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pki_cuda_lane *first; /* release; acquire in pki_cuda_lanes */

pki_cuda_lane *pki_cuda_lanes(void)
{
    return pki_load_acquire(&first); /* pairs with the release in make */
}

static pki_cuda_lane *find_free(void)
{
    for (pki_cuda_lane *l = first; l; l = l->next)
        if (pki_load_acquire(&l->life) == PKI_CUDA_FREE) /* release: recycle in cuda/harvest.c */
            return l;
    return NULL;
}

static pki_cuda_lane *make(void)
{
    void *memory = NULL;
    if (posix_memalign(&memory, PKI_LINE, sizeof(pki_cuda_lane)) != 0)
        return NULL;
    pki_cuda_lane *l = memory;
    memset(l, 0, sizeof *l);
    l->number = first ? first->number + 1 : 1;
    l->next = first;
    pki_store(&l->life, (uint32_t)PKI_CUDA_TAKEN);
    pki_store_release(&first, l); /* pairs with the acquire in pki_cuda_lanes */
    return l;
}

/* Streams of one context are told apart by their ids, if the driver gives any. */
uint64_t pki_cuda_stream_id(CUstream stream)
{
    unsigned long long id = 0;
    if (stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        return 0;
    return pki_cuda.stream_id && pki_cuda.stream_id(stream, &id) == CUDA_SUCCESS ? id : 0;
}

pki_cuda_lane *pki_cuda_lane_acquire(pki_cuda_context *context, CUstream stream)
{
    pthread_mutex_lock(&lock);
    pki_cuda_lane *l = find_free();
    if (l)
        pki_store(&l->life, (uint32_t)PKI_CUDA_TAKEN);
    else
        l = make();
    pthread_mutex_unlock(&lock);
    if (!l)
        return NULL;
    l->stream = stream;
    l->context = context;
    l->current = NULL;
    l->in_thread = NULL;
    l->depth = l->over = l->calls = 0;
    l->graph = l->branch = 0;
    l->last = 0;
    l->reading = 0;
    l->exec = NULL;
    l->tid = (uint32_t)syscall(SYS_gettid);
    l->stream_id = 0;
    pki_store(&l->track, 0u);
    pki_store_release(&l->life, (uint32_t)PKI_CUDA_OWNED); /* acquire: the collector's walk */
    return l;
}

/* Of the session before: ends that nobody has read, and what is open. */
static void drop_unread(pki_cuda_lane *l)
{
    pki_cuda_pool *pool = &l->context->pool;
    for (uint64_t i = l->tail; i < l->head; i++) {
        pki_cuda_mark m = l->marks[i % PKI_CUDA_MARKS];
        if (pki_cuda_mark_type_of(m) != PKI_CUDA_BEGIN)
            pki_cuda_pair_release(pool, pki_cuda_mark_pair(m));
    }
    for (uint32_t i = 0; i < l->depth; i++)
        if (l->open[i].how == PKI_CUDA_RECORDED || l->open[i].how == PKI_CUDA_PENDING)
            pki_cuda_pair_release(pool, l->open[i].pair);
}

void pki_cuda_lane_enter(pki_cuda_lane *l)
{
    if (pki_load(&l->session) != 0 && !l->exec && !pki_load(&l->context->dead))
        drop_unread(l);
    l->depth = l->over = 0;
    l->reading = 0;
    l->last = l->recorded = l->lost = l->replayed = l->sampled = l->operations = 0;
    pki_store(&l->tail, l->head);
    memset(&l->counters, 0, sizeof l->counters);
    pki_store(&l->context->session, pki_load(&pki_cuda_session));
    pki_store_release(&l->session, pki_load(&pki_cuda_session)); /* acquire: the collector's walk */
}

void pki_cuda_lanes_after_fork(void)
{
    static void *volatile parents __attribute__((unused)); /* neither freed nor lost */
    pthread_mutex_init(&lock, NULL);
    parents = first;
    first = NULL;
}

/* ---- in the trace ---- */

static void name_stream(const pki_cuda_lane *l, char *text, size_t size)
{
    if (l->stream == CU_STREAM_LEGACY)
        snprintf(text, size, "default stream");
    else if (l->stream == CU_STREAM_PER_THREAD)
        snprintf(text, size, "default stream of thread %u", l->tid);
    else
        snprintf(text, size, "stream %llu",
                 (unsigned long long)(l->stream_id ? l->stream_id : l->number));
}

/* Does another lane of this session show the same stream? */
static bool is_shared(const pki_cuda_lane *l)
{
    for (const pki_cuda_lane *o = pki_cuda_lanes(); o; o = o->next)
        if (o != l && pki_load_acquire(&o->life) == PKI_CUDA_OWNED && /* release: _lane_take */
            pki_load(&o->track) && o->track_session == l->track_session && !o->graph &&
            o->context == l->context && o->stream == l->stream && o->stream_id == l->stream_id)
            return true;
    return false;
}

void pki_cuda_lane_name(const pki_cuda_lane *l, const char *what, char *text, size_t size)
{
    char stream[48];
    name_stream(l, stream, sizeof stream);
    if (l->graph)
        snprintf(text, size, "graph %u, captured on %s (%s)", l->graph, stream, what);
    else if (l->stream != CU_STREAM_PER_THREAD && is_shared(l))
        snprintf(text, size, "%s (%s of thread %u)", stream, what, l->tid);
    else
        snprintf(text, size, "%s (%s)", stream, what);
}

/* Whole microseconds: arguments that differ in each span are frames of their own to speedscope. */
int64_t pki_cuda_lane_doubt_ns(const pki_cuda_lane *l)
{
    return (int64_t)ceil(l->doubt / 1000) * 1000;
}
