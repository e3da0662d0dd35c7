#include "backend/cuda/lane.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/cuda/clock.h"
#include "backend/cuda/comm/emit.h"
#include "backend/cuda/cuda.h"
#include "core/names.h"
#include "session/activity.h"
#include "session/session.h"

/* ---- a context's pairs of events, handed out and given back without a lock ---- */

#define NO_BATCH UINT32_MAX

static CUresult make_pair(pki_cuda_pair *pair)
{
    CUresult code = pki_cuda.event_create(&pair->begin, CU_EVENT_DEFAULT);
    if (code)
        return code;
    code = pki_cuda.event_create(&pair->end, CU_EVENT_DEFAULT);
    if (code)
        pki_cuda.event_destroy(pair->begin);
    return code;
}

CUresult pki_cuda_pair_renew(pki_cuda_pair *pair, CUcontext ctx)
{
    pki_cuda_pair fresh;
    CUstreamCaptureMode mode = pki_cuda_relax();
    CUresult code = pki_cuda_enter(ctx);
    if (!code) {
        code = make_pair(&fresh);
        if (!code) {
            pki_cuda.event_destroy(pair->begin);
            pki_cuda.event_destroy(pair->end);
            pair->begin = fresh.begin;
            pair->end = fresh.end;
        }
        pki_cuda_leave();
    }
    pki_cuda_restore(mode);
    return code;
}

/* How many could be made, and why not all. */
static uint32_t make_pairs(pki_cuda_pair *pairs, CUcontext ctx, CUresult *code)
{
    uint32_t made = 0;
    CUstreamCaptureMode mode = pki_cuda_relax();
    *code = pki_cuda_enter(ctx);
    if (!*code) {
        while (made < PKI_CUDA_BATCH && !(*code = make_pair(&pairs[made])))
            made++;
        pki_cuda_leave();
    }
    pki_cuda_restore(mode);
    return made;
}

static CUresult fill(pki_cuda_pool *pool, uint32_t batch, CUcontext ctx)
{
    CUresult code;
    pki_cuda_pair *pairs = calloc(PKI_CUDA_BATCH, sizeof *pairs);
    if (!pairs)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint32_t made = make_pairs(pairs, ctx, &code);
    pki_store_release(&pool->chunks[batch], pairs); /* pairs with the acquire in _pair_at */
    for (uint32_t i = made; i > 0; i--)
        pki_cuda_pool_release(pool, batch * PKI_CUDA_BATCH + i);
    pki_fetch_add(&pool->pairs, made);
    return made ? CUDA_SUCCESS : code;
}

/* In batches. */
static uint32_t bound_of(const pki_cuda_pool *pool)
{
    uint32_t captured = PKI_MIN(pki_load(&pool->captured), PKI_CUDA_CAPTURED_MOST);
    return PKI_CUDA_BATCHES + (captured + PKI_CUDA_BATCH - 1) / PKI_CUDA_BATCH;
}

/* Its number is the caller's; NO_BATCH: there are as many as may be. */
static uint32_t next_batch(pki_cuda_pool *pool)
{
    uint32_t batch = pki_load(&pool->batches);
    while (batch < bound_of(pool))
        if (__atomic_compare_exchange_n(&pool->batches, &batch, batch + 1, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return batch;
    return NO_BATCH;
}

CUresult pki_cuda_pool_grow(pki_cuda_pool *pool, CUcontext ctx)
{
    uint32_t batch = pki_load(&pool->tired) ? NO_BATCH : next_batch(pool);
    if (batch == NO_BATCH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult code = fill(pool, batch, ctx);
    if (code)
        pki_store(&pool->tired, 1u);
    return code;
}

/* ---- the contexts in which spans are recorded ---- */

#define PKI_CUDA_GONE UINT32_MAX

static pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;
pki_cuda_context *pki_cuda_contexts;

static unsigned long long id_of(CUcontext handle)
{
    unsigned long long id = 0;
    return pki_cuda.ctx_id && pki_cuda.ctx_id(handle, &id) == CUDA_SUCCESS ? id : 0;
}

static pki_cuda_context *find(CUcontext handle, unsigned long long id)
{
    for (pki_cuda_context *c = pki_load_acquire(&pki_cuda_contexts); c; c = c->next) { /* make */
        if (c->handle != handle || pki_load(&c->dead) == PKI_CUDA_GONE)
            continue;
        if (c->id == id)
            return c;
        pki_store(&c->dead, PKI_CUDA_GONE); /* the handle is another one's now */
    }
    return NULL;
}

static uint32_t device_of(CUcontext handle)
{
    CUdevice device = 0;
    if (pki_cuda_enter(handle) == CUDA_SUCCESS) {
        if (pki_cuda.ctx_device(&device))
            device = 0;
        pki_cuda_leave();
    }
    return (uint32_t)device;
}

static pki_cuda_context *make(CUcontext handle, unsigned long long id, uint32_t device)
{
    void *memory = NULL;
    if (posix_memalign(&memory, PKI_LINE, sizeof(pki_cuda_context)) != 0)
        return NULL;
    pki_cuda_context *c = memory;
    *c = (pki_cuda_context){.next = pki_cuda_contexts,
                            .handle = handle,
                            .id = id,
                            .number = pki_cuda_contexts ? pki_cuda_contexts->number + 1 : 1,
                            .device = device};
    pki_store_release(&pki_cuda_contexts, c); /* pairs with the acquire of who reads them */
    return c;
}

/* The entry for a context, made if needed; NULL without memory. Any thread, so the driver is asked
 * before the lock is taken. */
static pki_cuda_context *pki_cuda_context_for(CUcontext handle)
{
    CUstreamCaptureMode mode = pki_cuda_relax();
    unsigned long long id = id_of(handle);
    pki_cuda_context *c = find(handle, id);
    uint32_t device = c ? c->device : device_of(handle);
    pki_cuda_restore(mode);
    if (c)
        return c;
    pthread_mutex_lock(&context_lock);
    c = find(handle, id);
    c = c ? c : make(handle, id, device);
    pthread_mutex_unlock(&context_lock);
    return c;
}

bool pki_cuda_is_sticky(CUresult code)
{
    switch ((int)code) {
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
        return true;
    default: /* a stack error, an illegal instruction, ..., a launch failure */
        return code >= CUDA_ERROR_HARDWARE_STACK_ERROR && code <= CUDA_ERROR_LAUNCH_FAILED;
    }
}

bool pki_cuda_context_failed(pki_cuda_context *c, CUresult code)
{
    if (!pki_load(&c->dead) && pki_cuda_is_sticky(code)) {
        pki_store(&c->dead, (uint32_t)code);
        pki_cuda_note_reason(PKI_CUDA_CONTEXT_DEAD, code, c->number);
    }
    return pki_load(&c->dead) != 0;
}

/* Is the handle still the same context's? Only for one that is there, whoever's. */
static bool pki_cuda_context_is_same(const pki_cuda_context *c)
{
    return id_of(c->handle) == c->id;
}

bool pki_cuda_context_alive(pki_cuda_context *c)
{
    unsigned version;
    if (pki_load(&c->dead))
        return false;
    CUresult code = pki_cuda.ctx_api_version(c->handle, &version);
    if (pki_cuda_context_failed(c, code))
        return false;
    if (code == CUDA_SUCCESS && pki_cuda_context_is_same(c))
        return true;
    pki_store(&c->dead, PKI_CUDA_GONE);
    pki_cuda_note_reason(PKI_CUDA_CONTEXT_GONE, code, c->number);
    return false;
}

static pki_cuda_context *used; /* by who asks: one at a time */

bool pki_cuda_context_use(pki_cuda_context *c)
{
    if (used == c)
        return true;
    if (used)
        pki_cuda_leave();
    used = NULL;
    if (!c)
        return true;
    CUresult code = pki_load(&c->dead) ? CUDA_ERROR_INVALID_CONTEXT : pki_cuda_enter(c->handle);
    if (code && !pki_cuda_context_failed(c, code))
        pki_cuda_context_alive(c);
    used = code ? NULL : c;
    return !code;
}

/* ---- one thread's spans on one stream, in the order of that stream ---- */

uint32_t pki_cuda_session;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pki_cuda_lane *pki_cuda_lanes;

static pki_cuda_lane *find_free(void)
{
    for (pki_cuda_lane *l = pki_cuda_lanes; l; l = l->next)
        if (pki_load_acquire(&l->life) == PKI_CUDA_FREE) /* release: recycle in cuda/cuda.c */
            return l;
    return NULL;
}

static pki_cuda_lane *lane_make(void)
{
    void *memory = NULL;
    if (posix_memalign(&memory, PKI_LINE, sizeof(pki_cuda_lane)) != 0)
        return NULL;
    pki_cuda_lane *l = memory;
    memset(l, 0, sizeof *l);
    l->number = pki_cuda_lanes ? pki_cuda_lanes->number + 1 : 1;
    l->next = pki_cuda_lanes;
    pki_store(&l->life, (uint32_t)PKI_CUDA_TAKEN);
    pki_store_release(&pki_cuda_lanes, l); /* pairs with the acquire of who reads them */
    return l;
}

/* Streams of one context are told apart by their ids, if the driver gives any. */
static uint64_t stream_id_of(CUstream stream)
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
        l = lane_make();
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
    if (pki_cuda_lane_is_current(l)) /* another stream's until now: it is not entered again */
        pki_store(&context->session, pki_load(&pki_cuda_session));
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
    /* Pairs with the release in start: what read the lane in the session before has ended. */
    uint32_t session = pki_load_acquire(&pki_cuda_session);
    if (pki_load(&l->session) != 0 && !l->exec && !pki_load(&l->context->dead))
        drop_unread(l);
    l->depth = l->over = 0;
    l->reading = 0;
    l->last = l->recorded = l->lost = l->replayed = l->sampled = l->operations = 0;
    pki_store(&l->tail, l->head);
    memset(&l->counters, 0, sizeof l->counters);
    pki_store(&l->context->session, session);
    pki_store_release(&l->session, session); /* acquire: the collector's walk */
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
    for (const pki_cuda_lane *o = pki_load_acquire(&pki_cuda_lanes); o; o = o->next)
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

/* ---- from what the events say to spans on a track ---- */

/* Of the tracks of spans; kernels have their streams' ids, below. */
#define TRACK_FIRST (1u << 20)

/* Where a device's time lies in the session's; not before what the lane has emitted already, which
 * adds to the doubt. */
static uint64_t session_time(pki_cuda_lane *l, double device, double *doubt)
{
    uint64_t ns = pki_cuda_session_ns(l->context, device, doubt);
    if (ns < l->last)
        *doubt += (double)(l->last - ns);
    l->last = PKI_MAX(l->last, ns);
    return l->last;
}

static uint32_t track_of(pki_cuda_lane *l)
{
    char process[32], thread[96];
    uint32_t device = l->context->device;
    if (pki_load(&l->track) && l->track_session == pki_load(&pki_cuda_session))
        return pki_load(&l->track);
    l->track_session = pki_load(&pki_cuda_session);
    snprintf(process, sizeof process, "GPU %u", device);
    pki_cuda_lane_name(l, "spans", thread, sizeof thread);
    const pki_track track = {pki_track_device_pid(device), TRACK_FIRST + l->number, process, thread,
                             (uint32_t)l->stream_id * 2};
    pki_store(&l->track, pki_track_add(&track));
    return pki_load(&l->track);
}

void pki_cuda_emit_begin(pki_cuda_lane *l, uint32_t region, double device)
{
    pki_cuda_read r = {.region = region, .device = device, .start = l->last};
    if (!isnan(device))
        r.start = session_time(l, device, &r.doubt);
    if (l->reading > PKI_CUDA_DEPTH) /* ends that nobody captured; see cuda/replay.h */
        l->reading = 0;
    l->read[l->reading++] = r;
}

static pki_cuda_read *innermost(pki_cuda_lane *l, uint32_t region)
{
    for (uint32_t i = l->reading; i > 0; i--)
        if (l->read[i - 1].region == region)
            return &l->read[i - 1];
    return NULL;
}

double pki_cuda_emit_begun(pki_cuda_lane *l, uint32_t region)
{
    const pki_cuda_read *r = innermost(l, region);
    return r ? r->device : NAN;
}

static pki_cuda_read pop(pki_cuda_lane *l, uint32_t region)
{
    const pki_cuda_read *r = innermost(l, region);
    pki_cuda_read found = r ? *r : (pki_cuda_read){region, NAN, 0, l->last};
    if (r)
        l->reading = (uint32_t)(r - l->read);
    return found;
}

void pki_cuda_emit_cancel(pki_cuda_lane *l, uint32_t region)
{
    pop(l, region);
}

static uint64_t session_end(pki_cuda_lane *l, const pki_cuda_read *begun, double device)
{
    uint64_t ended = session_time(l, device, &l->doubt);
    l->doubt = fmax(l->doubt, begun->doubt);
    return ended;
}

void pki_cuda_emit_end(pki_cuda_lane *l, uint32_t region, double device)
{
    pki_cuda_read r = pop(l, region);
    uint64_t ended = session_end(l, &r, device);
    const pki_name *name = pki_name_at(region);
    const pki_activity_arg doubt = {"uncertainty_ns", NULL, pki_cuda_lane_doubt_ns(l)};
    pki_activity span = {
        .kind = PKI_ACTIVITY_SPAN,
        .name = name ? name->name : "?",
        .name_length = name ? name->length : 1,
        .start = r.start,
        .end = ended,
        .region = region,
        .device = l->context->device,
        .context = l->context->number,
        .stream = (uint32_t)l->stream_id,
        .stream_hidden = 1,
        .args = &doubt,
        .arg_count = 1,
    };
    if (!pki_activity_lock())
        return;
    span.track = track_of(l);
    pki_activity_add(&span);
    pki_activity_unlock();
}

void pki_cuda_emit_operation(pki_cuda_lane *l, uint32_t region, double device,
                             pki_cuda_operation *op, bool replayed)
{
    pki_cuda_read r = pop(l, region);
    uint64_t ended = session_end(l, &r, device);
    if (pki_activity_lock()) {
        pki_cuda_emit_parts(l, r.start, ended, op, replayed);
        pki_activity_unlock();
    }
    if (!replayed)
        pki_cuda_operation_complete(op);
}

/* ---- which lanes a thread has: found by stream, without a lock ---- */

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
            pki_store_release(&l->life, (uint32_t)PKI_CUDA_LEFT); /* acquire: cuda/cuda.c */
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

static void contexts_after_fork(void)
{
    used = NULL;
    static void *volatile parents __attribute__((unused)); /* neither freed nor lost */
    pthread_mutex_init(&context_lock, NULL);
    parents = pki_cuda_contexts;
    pki_cuda_contexts = NULL; /* they are the parent's, events included */
}

void pki_cuda_lanes_after_fork(void)
{
    static void *volatile parents __attribute__((unused)); /* neither freed nor lost */
    contexts_after_fork();
    pthread_mutex_init(&lock, NULL);
    parents = pki_cuda_lanes;
    pki_cuda_lanes = NULL;
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
    void *green = NULL;
    if (is_default(stream))
        return ctx;
    CUresult code = pki_cuda.stream_ctx_v2 ? pki_cuda.stream_ctx_v2(stream, &ctx, &green)
                                           : pki_cuda.stream_ctx(stream, &ctx);
    return code ? NULL : ctx;
}

/* Forgets which lanes this thread has for the stream: it is another one now. */
static void pki_cuda_lane_forget(pki_cuda_lane *lane)
{
    pki_cuda_lane **at = bucket_of(self, lane->stream);
    while (*at && *at != lane)
        at = &(*at)->in_thread;
    if (*at)
        *at = lane->in_thread;
    self->last = NULL;
    pki_store_release(&lane->life, (uint32_t)PKI_CUDA_LEFT); /* acquire: cuda/cuda.c */
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
    l->stream_id = stream_id_of(stream);
    l->in_thread = *at;
    return *at = l;
}

static pki_cuda_lane *thread_find(CUstream stream, CUcontext current)
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
    while ((l = thread_find(stream, current)) && begins && is_outdated(l))
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
