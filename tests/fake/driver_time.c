/* fake/driver_time.c - the mock: a device that takes its time, and threads that wait for it. */
#include <sched.h>

#include "driver_state.h"

/* ---- the device ---- */

static bool is_there(const work_item *w)
{
    return !w->word || (int32_t)(__atomic_load_n(w->word, __ATOMIC_ACQUIRE) - w->value) >= 0;
}

/* When the stream's next piece of work will be done; UINT64_MAX: not by itself. A word that has
 * come is seen when somebody looks. */
static uint64_t done_at(const stream *s, uint64_t now)
{
    const work_item *w = &s->queue[s->tail % QUEUE];
    if (s->tail == s->head || w->due == UINT64_MAX || !is_there(w))
        return UINT64_MAX;
    uint64_t begins = s->free_at > w->due ? s->free_at : w->due;
    return (w->word ? now : begins) + w->ns;
}

static void go_on(stream *s, uint64_t now)
{
    for (uint64_t done; (done = done_at(s, now)) <= now;) {
        work_item w = s->queue[s->tail++ % QUEUE];
        s->launched -= !w.event && !w.word;
        s->free_at = done;
        fake_stamp(s, w, done);
    }
}

void fake_go_on(void)
{
    bool moves = fake.lagging || fake.waiting || fake.time;
    uint64_t now = moves ? fake_monotonic() : 0;
    for (stream *s = fake.streams; s && moves; s = s->next)
        go_on(s, now);
}

void fake_push(stream *s, work_item w)
{
    s->queue[s->head++ % QUEUE] = w;
    s->launched += !w.event && !w.word;
    fake_go_on();
}

/* What was under way on the other clock is forgotten. */
void fake_live_on(const fake_cuda_time *time)
{
    pthread_mutex_lock(&fake.lock);
    fake.base_ns = fake.time == time ? fake.base_ns : 0;
    for (stream *s = fake.streams; s && fake.time != time; s = s->next) {
        s->head = s->tail = s->launched = 0;
        s->free_at = 0;
    }
    fake.time = time;
    pthread_mutex_unlock(&fake.lock);
}

/* ---- who waits for it ---- */

bool fake_wait_for(stream *s)
{
    pthread_mutex_lock(&fake.lock);
    const fake_cuda_time *time = fake.time;
    uint64_t now = time ? time->now() : 0, next = time && s ? done_at(s, now) : UINT64_MAX;
    pthread_mutex_unlock(&fake.lock);
    if (!time) {
        sched_yield();
        return true;
    }
    if (next != UINT64_MAX) {
        time->pass(next > now ? next - now : 0);
        return true;
    }
    bool comes = time->wait();
    pthread_mutex_lock(&fake.lock);
    fake.hung += !comes;
    pthread_mutex_unlock(&fake.lock);
    return comes;
}

static bool is_full(const stream *s)
{
    return s->launched >= LAUNCHES;
}

static bool is_busy(const stream *s)
{
    return s->head != s->tail;
}

/* Until that is so no more; the lock is taken in between. */
static bool wait_while(bool (*so)(const stream *), stream *s)
{
    for (;;) {
        pthread_mutex_lock(&fake.lock);
        fake_go_on();
        bool still = so(s);
        pthread_mutex_unlock(&fake.lock);
        if (!still)
            return true;
        if (!fake_wait_for(s))
            return false;
    }
}

/* For one more launch. */
bool fake_await_room(stream *s)
{
    return !s || wait_while(is_full, s);
}

static bool wait_for_device(const context *ctx)
{
    for (stream *s = fake.streams; s; s = s->next)
        if (s->ctx == ctx && !wait_while(is_busy, s))
            return false;
    return true;
}

CUresult fake_synchronize(CUstream handle)
{
    return wait_while(is_busy, fake_stream(handle)) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

CUresult CUDAAPI cuEventSynchronize(CUevent e)
{
    CUresult code;
    while ((code = cuEventQuery(e)) == CUDA_ERROR_NOT_READY)
        if (!fake_wait_for(e->on))
            return CUDA_ERROR_UNKNOWN;
    return code;
}

/* An allocation of device memory waits for the device (CUDA's "implicit synchronization"). */
bool fake_settle(void)
{
    return wait_for_device(fake_current);
}

/* ---- kernels ---- */

void fake_run(stream *s, uint64_t ns)
{
    pthread_mutex_lock(&fake.lock);
    fake_push(s, (work_item){.due = fake_monotonic(), .ns = ns});
    pthread_mutex_unlock(&fake.lock);
}

CUresult fake_kernel(CUstream handle, uint64_t launch_ns, uint64_t ns)
{
    stream *s = fake_stream(handle);
    if (!s->ctx->loaded && !wait_for_device(s->ctx))
        return CUDA_ERROR_UNKNOWN;
    s->ctx->loaded = true;
    fake.time->pass(launch_ns);
    if (!fake_await_room(s))
        return CUDA_ERROR_UNKNOWN;
    fake_run(s, ns);
    return CUDA_SUCCESS;
}

/* ---- waits for memory ---- */

void fake_no_waits(void)
{
    fake.no_waits = true;
}

static CUresult wait_value(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    const uint32_t *word = fake_host_word(address);
    stream *s = fake_stream(handle);
    if (fake.no_waits)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!s || !word || flags != CU_STREAM_WAIT_VALUE_GEQ)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fake.lock);
    fake.waiting = true;
    fake_push(s, (work_item){.due = fake_monotonic(), .word = word, .value = value});
    pthread_mutex_unlock(&fake.lock);
    return CUDA_SUCCESS;
}

#ifndef FAKE_NO_PROC_ADDRESS
CUresult CUDAAPI cuStreamWaitValue32(CUstream handle, CUdeviceptr address, cuuint32_t value,
                                     unsigned flags)
{
    return wait_value(handle, address, value, flags);
}
#endif

/* The first form, of drivers before 11.7. */
#undef cuStreamWaitValue32
CUresult CUDAAPI cuStreamWaitValue32(CUstream handle, CUdeviceptr address, cuuint32_t value,
                                     unsigned flags);
CUresult CUDAAPI cuStreamWaitValue32(CUstream handle, CUdeviceptr address, cuuint32_t value,
                                     unsigned flags)
{
    fake.misused += fake.no_waits;
    return wait_value(handle, address, value, flags);
}
