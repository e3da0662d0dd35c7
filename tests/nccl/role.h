/* role.h - NCCL's role: opens what NCCL_PROFILER_PLUGIN names, looks up the table of a version, and
 * describes events as that version does. Offsets are those of NCCL's own headers, counted by hand
 * and not taken from lib/comm/plugin/abi.h.
 */
#ifndef TESTS_NCCL_ROLE_H
#define TESTS_NCCL_ROLE_H

#include "document.h"
#include "tuning.h"
#include "kit.h"

#include <dlfcn.h>

#include <pk/pk.h>

enum {
    GROUP = 1,
    COLL = 2,
    P2P = 4,
    PROXY_OP = 8,
    PROXY_STEP = 16,
    PROXY_CTRL = 32,
    KERNEL_CH = 64,
    NET = 128,
    GROUP_API = 256,
    COLL_API = 512,
    P2P_API = 1024,
    LAUNCH = 2048,
    CE_COLL = 4096
};

typedef struct table {
    const char *name;
    void (*init)(void);
    int (*start)(void *context, void **event, void *description);
    int (*stop)(void *event);
    int (*state)(void *event, int state, void *args);
    int (*finalize)(void *context);
} table;

typedef struct says { /* what NCCL has to say of an event */
    int type;
    void *parent, *group;
    const char *func, *element, *algorithm, *protocol;
    size_t count;
    int peer, channels, steps, sends, foreign;
    uint64_t timer, sequence;
    bool captured;
} says;

static int version;
static const table *plugin;
static int mask;
static const char *shim, *trace_path, *report_path;

/* NCCL keeps its words as literals; so does this. */
static const char *const float32 = "ncclFloat32", *const int8 = "ncclInt8";

static inline void open_plugin(void)
{
    char symbol[32];
    const char *name = getenv("NCCL_PROFILER_PLUGIN");
    must(name);
    void *library = dlopen(strcmp(name, "STATIC_PLUGIN") == 0 ? NULL : name, RTLD_NOW | RTLD_LOCAL);
    must(library);
    snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", version);
    plugin = dlsym(library, symbol);
    must(plugin);
}

static inline void start_session(void)
{
    trace_path = kit_path("nccl.json");
    report_path = kit_path("report.json");
    must(pk_start(pk_options(.trace_path = trace_path, .report_path = report_path,
                             .backends = "nccl",
                             .tuning = kit_tuning("nvtx_shim=%s", shim ? shim : ""))) == PK_OK);
    open_plugin();
}

static inline void *make_comm(const char *name, uint64_t id, int rank, int ranks)
{
    void *context = NULL;
    must(plugin->init);
    if (version < 4)
        must(((int (*)(void **, int *))plugin->init)(&context, &mask) == 0);
    else if (version == 4)
        must(((int (*)(void **, int *, const char *, uint64_t, int, int, int, void *))plugin->init)(
                 &context, &mask, name, id, 1, ranks, rank, NULL) == 0);
    else
        must(((int (*)(void **, uint64_t, int *, const char *, int, int, int, void *))plugin->init)(
                 &context, id, &mask, name, 1, ranks, rank, NULL) == 0);
    must(context);
    return context;
}

/* ---- descriptions, byte by byte ---- */

#define AT(offset, type, value) memcpy(d + (offset), &(type){(type)(value)}, sizeof(type))

static inline void say_coll(unsigned char *d, const says *s)
{
    static const int func[] = {48, 48, 32, 32, 32}, count[] = {72, 72, 56, 56, 56},
                     root[] = {80, 80, 64, 64, 64}, type[] = {88, 88, 72, 72, 72},
                     channels[] = {104, 96, 80, 80, 80}, algorithm[] = {112, 104, 88, 88, 88};
    int v = version - 2;
    if (v < 2) {
        AT(24, const char *, "old world");
        AT(32, uint64_t, 0xABCD);
    }
    AT(func[v] - 8, uint64_t, s->sequence);
    AT(func[v], const char *, s->func);
    AT(count[v], size_t, s->count);
    AT(root[v], int, s->peer);
    AT(type[v], const char *, s->element);
    AT(channels[v], uint8_t, s->channels);
    AT(algorithm[v], const char *, s->algorithm);
    AT(algorithm[v] + 8, const char *, s->protocol);
    if (version >= 5)
        AT(104, void *, s->group);
}

static inline void say_p2p(unsigned char *d, const says *s)
{
    int func = version < 4 ? 40 : 24;
    if (version < 4) {
        AT(24, const char *, "old world");
        AT(32, uint64_t, 0xABCD);
    }
    AT(func, const char *, s->func);
    AT(func + 16, const char *, s->element);
    AT(func + 24, size_t, s->count);
    AT(func + 32, int, s->peer);
    if (version >= 4)
        AT(60, uint8_t, s->channels);
    if (version >= 5)
        AT(64, void *, s->group);
}

static inline void say_api(unsigned char *d, const says *s)
{
    AT(24, const char *, s->func);
    AT(32, size_t, s->count);
    AT(40, const char *, s->element);
    if (s->type == COLL_API)
        AT(48, int, s->peer);
    AT(s->type == COLL_API ? 64 : 56, uint8_t, s->captured);
}

static inline void say_proxy(unsigned char *d, const says *s)
{
    AT(24, int, getpid() + s->foreign);
    AT(28, uint8_t, s->channels);
    AT(32, int, s->peer);
    AT(36, int, s->steps);
    AT(44, int, s->sends);
}

static inline void *begin_(void *context, const says *s)
{
    static const size_t sizes[] = {128, 120, 104, 112, 112};
    unsigned char *d = calloc(1, sizes[version - 2]); /* exactly, for the sanitizers */
    void *event = &event;
    must(d);
    if (version >= 5)
        AT(0, uint64_t, s->type);
    else
        AT(0, uint8_t, s->type);
    AT(8, void *, s->parent);
    AT(16, int, 1);
    if (s->type == COLL)
        say_coll(d, s);
    else if (s->type == P2P)
        say_p2p(d, s);
    else if (s->type == COLL_API || s->type == P2P_API)
        say_api(d, s);
    else if (s->type == PROXY_OP)
        say_proxy(d, s);
    else if (s->type == KERNEL_CH) {
        AT(24, uint8_t, s->channels);
        if (version >= 4)
            AT(32, uint64_t, s->timer);
    } else if (s->type == CE_COLL) {
        AT(32, const char *, s->func);
        AT(56, size_t, s->count);
        AT(72, const char *, s->element);
    }
    must(plugin->start(context, &event, d) == 0);
    free(d);
    return event;
}

#define begin(context, ...) begin_(context, &(says){__VA_ARGS__})

static inline void end(void *event)
{
    must(plugin->stop(event) == 0);
}

/* ---- what a program calls ---- */

/* A task that begins and ends at once, as NCCL's do. */
static inline void *task(void *context, void *parent, says s)
{
    s.parent = parent;
    s.group = NULL;
    void *event = begin_(context, &s);
    end(event);
    return event;
}

static inline says coll(const char *func, const char *element, size_t count)
{
    return (says){.type = COLL,
                  .func = func,
                  .element = element,
                  .count = count,
                  .algorithm = "RING",
                  .protocol = "LL128",
                  .channels = 2,
                  .sequence = 7};
}

/* A collective: from version 5 on its call, then its task, which is open; the task's handle. What
 * has begun before its task ends belongs to it, however late the thread gets there. Broadcast and
 * AllGather are told as bytes. */
static inline void *begin_collective(void *context, const char *func, size_t count)
{
    bool in_bytes = strcmp(func, "Broadcast") == 0 || strcmp(func, "AllGather") == 0;
    says what = in_bytes ? coll(func, int8, 4 * count) : coll(func, float32, count);
    void *group = NULL, *call = NULL;
    if (version >= 5) {
        group = begin(context, .type = GROUP_API);
        call = begin(context, .type = COLL_API, .parent = group, .func = func, .element = float32,
                     .count = count);
        end(call);
    }
    void *tasks = begin(context, .type = GROUP);
    what.parent = version >= 5 ? call : tasks;
    void *event = begin_(context, &what);
    end(tasks);
    if (version >= 5)
        end(group);
    return event;
}

/* The same, handed over. */
static inline void *collective(void *context, const char *func, size_t count)
{
    void *event = begin_collective(context, func, count);
    end(event);
    return event;
}

/* ---- what was made of it ---- */

static inline const char *text(const json_t *event, const char *key)
{
    return json_string_value(member(member(event, "args"), key));
}

static inline json_int_t number(const json_t *event, const char *key)
{
    return json_integer_value(member(member(event, "args"), key));
}

static inline json_int_t optional(const json_t *event, const char *key)
{
    return json_integer_value(json_object_get(member(event, "args"), key));
}

static inline json_t *stop_session(void)
{
    assert_int_equal(pk_stop(), PK_OK);
    return load_document(trace_path);
}

static inline const char *status(void)
{
    static pk_backend_info info;
    info = (pk_backend_info){.size = sizeof info};
    must(pk_backend_status("nccl", &info) == PK_OK);
    return info.reason;
}

/* Calls of all communicators, by the report. */
static inline json_int_t calls(void)
{
    size_t i;
    json_t *comm, *report = load_document(report_path);
    json_int_t sum = 0;
    json_t *all = json_object_get(member(report, "comm"), "communicators");
    json_array_foreach(all, i, comm) sum += json_integer_value(member(comm, "calls"));
    json_decref(report);
    return sum;
}

#endif
