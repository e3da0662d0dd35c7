/* fake/driver_script.c - the mock: what the test scripts, and how the library is entered. */
#include <stdlib.h>
#include <string.h>

#include "driver_state.h"

/* ---- entry points, by name and by the version in which their form came ---- */

#ifndef FAKE_NO_PROC_ADDRESS
static const struct {
    const char *name;
    int version;
    void *(*function)(void);
} entries[] = {
#define ENTRY(id, name, version) {#name, version, (void *(*)(void))(void (*)(void))name},
    FAKE_CUDA_CALLS(ENTRY)
#undef ENTRY
};

/* Macros of cuda.h give some names a suffix: what is asked for is the plain one. */
static bool is_called(const char *entry, const char *name)
{
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && (entry[n] == 0 || strncmp(entry + n, "_v", 2) == 0);
}

#undef cuGetProcAddress
CUresult CUDAAPI cuGetProcAddress_v2(const char *name, void **function, int version,
                                     cuuint64_t flags, CUdriverProcAddressQueryResult *status);

CUresult CUDAAPI cuGetProcAddress_v2(const char *name, void **function, int version,
                                     cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    (void)flags, (void)status;
    *function = NULL;
    if (fake.version == 0)
        return CUDA_ERROR_STUB_LIBRARY;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (is_called(entries[i].name, name) && version >= entries[i].version &&
            fake.version >= entries[i].version)
            memcpy(function, &entries[i].function, sizeof *function);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
#endif

/* ---- the script ---- */

static void reset(void)
{
    pthread_mutex_lock(&fake.lock);
    memset(fake.failures, 0, sizeof fake.failures);
    memset(fake.counts, 0, sizeof fake.counts);
    fake.holding = fake.lagging = false;
    fake.lag = 0;
    fake.invalidated = fake.hung = fake.misused = 0;
    fake.waiting = fake.no_waits = false;
    fake_current = NULL;
    pthread_mutex_unlock(&fake.lock);
    fake_live_on(NULL);
}

static void set_driver(int version, int devices, CUresult init, CUresult count)
{
    fake.version = version;
    fake.devices = devices;
    fake.init_code = init;
    fake.count_code = count;
}

static bool initialised(void)
{
    return fake.is_initialised;
}

static CUcontext context_create(int device)
{
    pthread_mutex_lock(&fake.lock);
    context *c = fake_keep(sizeof *c);
    fake.is_initialised = true;
    *c = (context){.magic = MAGIC_CONTEXT, .device = device, .alive = true, .id = ++fake.ids};
    c->legacy = fake_make_stream(c, false);
    c->next = fake.contexts;
    fake.contexts = c;
    fake_current = c;
    pthread_mutex_unlock(&fake.lock);
    return c;
}

static void context_destroy(CUcontext c)
{
    pthread_mutex_lock(&fake.lock);
    c->alive = false;
    pthread_mutex_unlock(&fake.lock);
}

static void context_poison(CUcontext c, CUresult code)
{
    pthread_mutex_lock(&fake.lock);
    c->poison = code;
    pthread_mutex_unlock(&fake.lock);
}

static void context_current(CUcontext c)
{
    fake_current = c;
}

static CUstream stream_create(CUcontext c)
{
    pthread_mutex_lock(&fake.lock);
    stream *s = fake_make_stream(c, true);
    pthread_mutex_unlock(&fake.lock);
    return s;
}

static CUstream stream_again(CUstream s, CUcontext c)
{
    pthread_mutex_lock(&fake.lock);
    s->ctx = c;
    s->id = ++fake.ids;
    pthread_mutex_unlock(&fake.lock);
    return s;
}

static unsigned run_locked(stream *s, unsigned most)
{
    unsigned n = 0;
    for (; s && n < most && s->tail != s->head; n++)
        fake_stamp(s, s->queue[s->tail++ % QUEUE], fake_monotonic());
    return n;
}

static unsigned run(CUstream handle, unsigned most)
{
    pthread_mutex_lock(&fake.lock);
    unsigned n = run_locked(fake_stream(handle), most);
    pthread_mutex_unlock(&fake.lock);
    return n;
}

static void hold(bool on)
{
    pthread_mutex_lock(&fake.lock);
    fake.holding = on;
    for (stream *s = fake.streams; s && !on; s = s->next)
        run_locked(s, QUEUE);
    pthread_mutex_unlock(&fake.lock);
}

static void set_clock(double rate)
{
    pthread_mutex_lock(&fake.lock);
    fake.base_device = (double)fake_device_ns();
    fake.base_ns = 0;
    fake.rate = rate;
    pthread_mutex_unlock(&fake.lock);
}

static void lag(uint64_t ns)
{
    pthread_mutex_lock(&fake.lock);
    fake.lag = ns;
    fake.lagging = true;
    pthread_mutex_unlock(&fake.lock);
}

static uint64_t host_ns(uint64_t device)
{
    pthread_mutex_lock(&fake.lock);
    double passed = ((double)device - fake.base_device) / fake.rate;
    pthread_mutex_unlock(&fake.lock);
    return (uint64_t)((double)fake.base_ns + passed);
}

static unsigned calls(fake_call call)
{
    pthread_mutex_lock(&fake.lock);
    unsigned n = fake.counts[call];
    pthread_mutex_unlock(&fake.lock);
    return n;
}

static void count_anew(void)
{
    pthread_mutex_lock(&fake.lock);
    memset(fake.counts, 0, sizeof fake.counts);
    pthread_mutex_unlock(&fake.lock);
}

static void let_fail(fake_call call, unsigned after, unsigned times, CUresult code)
{
    pthread_mutex_lock(&fake.lock);
    fake.failures[call] = (struct fake_failure){after, times, code};
    pthread_mutex_unlock(&fake.lock);
}

static unsigned stamps(CUstream handle, uint64_t *ns, unsigned most)
{
    pthread_mutex_lock(&fake.lock);
    const stream *s = fake_stream(handle);
    unsigned n = s->stamped < most ? s->stamped : most;
    for (unsigned i = 0; i < n; i++)
        ns[i] = s->stamps[(s->stamped - n + i) % STAMPS];
    pthread_mutex_unlock(&fake.lock);
    return n;
}

static uint64_t device_ns(void)
{
    pthread_mutex_lock(&fake.lock);
    uint64_t now = fake_device_ns();
    pthread_mutex_unlock(&fake.lock);
    return now;
}

static unsigned locked(const unsigned *count)
{
    pthread_mutex_lock(&fake.lock);
    unsigned now = *count;
    pthread_mutex_unlock(&fake.lock);
    return now;
}

static unsigned invalidated(void)
{
    return locked(&fake.invalidated);
}

static unsigned nodes(CUgraph g)
{
    pthread_mutex_lock(&fake.lock);
    unsigned count = (unsigned)g->count;
    pthread_mutex_unlock(&fake.lock);
    return count;
}

static unsigned events(void)
{
    return locked(&fake.event_count);
}

static unsigned modes(void)
{
    return locked(&fake.exchanged);
}

static unsigned hung(void)
{
    return locked(&fake.hung);
}

static unsigned misused(void)
{
    return locked(&fake.misused);
}

static void on_query(void (*told)(CUresult answer))
{
    __atomic_store_n(&fake_on_query, told, __ATOMIC_RELEASE);
}

extern const fake_cuda_script fake_cuda_script_table __asm__(FAKE_CUDA_SCRIPT);
const fake_cuda_script fake_cuda_script_table = {
    .reset = reset,
    .set_driver = set_driver,
    .initialised = initialised,
    .context_create = context_create,
    .context_destroy = context_destroy,
    .context_poison = context_poison,
    .context_current = context_current,
    .stream_create = stream_create,
    .stream_again = stream_again,
    .hold = hold,
    .run = run,
    .clock = set_clock,
    .lag = lag,
    .host_ns = host_ns,
    .calls = calls,
    .count_anew = count_anew,
    .on_query = on_query,
    .let_fail = let_fail,
    .stamps = stamps,
    .device_ns = device_ns,
    .capture_begin = fake_capture_begin,
    .capture_end = fake_capture_end,
    .capture_join = fake_capture_join,
    .work = fake_work,
    .invalidated = invalidated,
    .graph_create = fake_graph_create,
    .capture_begin_to = fake_capture_begin_to,
    .conditional = fake_conditional,
    .programmatic = fake_programmatic,
    .instantiate = fake_instantiate,
    .instantiate_for_device = fake_instantiate_for_device,
    .launch = fake_launch,
    .graph_destroy = fake_graph_destroy,
    .exec_destroy = fake_exec_destroy,
    .graph_again = fake_graph_again,
    .nodes = nodes,
    .events = events,
    .modes = modes,
    .live_on = fake_live_on,
    .no_waits = fake_no_waits,
    .misused = misused,
    .hung = hung,
    .kernel = fake_kernel,
    .synchronize = fake_synchronize,
};

/* ---- fork ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&fake.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&fake.lock);
}

/* A child asks the mock what has been called, while the collector of its parent was amid a call. */
__attribute__((constructor)) static void see_to_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}
