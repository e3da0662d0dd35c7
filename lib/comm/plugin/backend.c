/* lib/comm/plugin/backend.c - how NCCL is made to find us, and what the collector knows of
 * operations, into trace and figures */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backend/shim.h"
#include "base/loader.h"
#include "comm/plugin/plugin.h"
#include "session/activity.h"
#include "session/session.h"

/* ---- where in the trace ---- */

/* A track for each communicator, more where its operations overlap; below it its channels, and
 * beside each thread what it called in NCCL. Slices of a track have to nest, so what overlaps even
 * so begins where the one before ends. */

#define FIRST (1u << 21) /* among the tracks that are no thread's */
#define DETAILS 512      /* tracks of channels and threads; what has none is not in the trace */
#define SORT (1u << 22)

static uint32_t made, details, threads;
static struct {
    uint32_t tid, track;
} call_tracks[DETAILS];

static void pki_nccl_tracks_start(void)
{
    made = details = threads = 0;
}

static uint32_t add(const char *name)
{
    pki_track t = {pki_the_session.config.world.pid, pki_track_apart(FIRST + made), NULL, name,
                   SORT + made};
    made++;
    return pki_track_add(&t);
}

static uint32_t add_detail(const char *name)
{
    if (details == DETAILS)
        return 0;
    details++;
    return add(name);
}

/* ---- lanes ---- */

static pki_nccl_lane *free_lane(pki_nccl_communicator *t, uint64_t start)
{
    pki_nccl_lane *best = &t->lanes[0];
    for (unsigned i = 0; i < PKI_NCCL_LANES; i++) {
        if (t->lanes[i].end <= start)
            return &t->lanes[i];
        if (t->lanes[i].end < best->end)
            best = &t->lanes[i];
    }
    return best;
}

static uint32_t use(pki_nccl_lane *lane, uint64_t *start, uint64_t end)
{
    *start = PKI_MAX(*start, lane->end);
    lane->end = PKI_MAX(lane->end, end);
    return lane->track;
}

/* A track where nothing is from *start on. *start is moved if all have something there. 0: there
 * are too many. */
static uint32_t pki_nccl_track_of_operation(pki_nccl_communicator *t, uint64_t *start, uint64_t end)
{
    pki_nccl_lane *lane = free_lane(t, *start);
    unsigned number = (unsigned)(lane - t->lanes) + 1;
    char name[PKI_COMM_TEXT + 32];
    if (number == 1)
        snprintf(name, sizeof name, "NCCL %s", t->comm->title);
    else
        snprintf(name, sizeof name, "NCCL %s (%u)", t->comm->title, number);
    if (!lane->track)
        lane->track = add(name);
    return use(lane, start, end);
}

static uint32_t pki_nccl_track_of_channel(pki_nccl_communicator *t, unsigned direction,
                                          uint32_t channel, uint64_t *start, uint64_t end)
{
    static const char *const words[PKI_NCCL_DIRECTIONS] = {"receives", "sends", "kernels"};
    pki_nccl_lane *lane = &t->channels[direction][channel % PKI_NCCL_CHANNELS];
    char name[PKI_COMM_TEXT + 48];
    snprintf(name, sizeof name, "NCCL %s %s, channel %u", t->comm->title, words[direction],
             channel % PKI_NCCL_CHANNELS);
    if (!lane->track)
        lane->track = add_detail(name);
    return use(lane, start, end);
}

/* ---- threads ---- */

static uint32_t pki_nccl_track_of_thread(uint32_t tid)
{
    char name[48];
    for (uint32_t i = threads; i > 0; i--)
        if (call_tracks[i - 1].tid == tid)
            return call_tracks[i - 1].track;
    snprintf(name, sizeof name, "NCCL on thread %u", tid);
    uint32_t track = add_detail(name);
    if (track) {
        call_tracks[threads].tid = tid;
        call_tracks[threads++].track = track;
    }
    return track;
}

/* ---- operations and details, into trace and figures ---- */

#define ARGS 20

typedef struct args {
    pki_activity_arg list[ARGS];
    size_t count;
} args;

static uint64_t operations;

static void pki_nccl_emit_start(void)
{
    operations = 0;
}

uint64_t pki_nccl_operations(void)
{
    return pki_load(&operations);
}

static void number(args *a, const char *key, uint64_t n)
{
    a->list[a->count++] =
        (pki_activity_arg){.key = key, .number = (int64_t)PKI_MIN(n, (uint64_t)INT64_MAX)};
}

static void number_if(args *a, const char *key, uint64_t n)
{
    if (n)
        number(a, key, n);
}

static void text(args *a, const char *key, const char *words)
{
    a->list[a->count++] = (pki_activity_arg){.key = key, .text = words};
}

static void text_if(args *a, const char *key, const char *words)
{
    if (words[0])
        text(a, key, words);
}

/* ---- operations ---- */

static uint64_t bytes_of(const pki_operation *o)
{
    return o->count * pki_comm_type_bytes(o->type);
}

static void put_how(args *a, const pki_nccl_operation *o, const pki_nccl_event *e)
{
    static const char *const timed[] = {"host", "proxy", "kernel"};
    text(a, PKI_COMM_TIMED, timed[o->timed]);
    text_if(a, "algorithm", pki_nccl_text(PKI_NCCL_ALGORITHM, e->algorithm));
    text_if(a, "protocol", pki_nccl_text(PKI_NCCL_PROTOCOL, e->protocol));
    number_if(a, "channels", e->channels);
    number_if(a, "nccl seq", e->sequence);
    if (o->call && o->call != e->op)
        text(a, "call", pki_nccl_text(PKI_NCCL_FUNCTION, o->call));
    number_if(a, "graph", (o->node->flags & PKI_NCCL_CAPTURED) != 0);
    number_if(a, "unfinished", o->unfinished);
}

/* Summed over the steps. */
static uint64_t waited_ns(const pki_nccl_node *n, int what_for)
{
    return pki_activity_ns_of_ticks(n->start + n->waits[what_for]) -
           pki_activity_ns_of_ticks(n->start);
}

static void put_network(args *a, const pki_nccl_node *n)
{
    number_if(a, "proxy operations", n->proxies);
    number_if(a, "proxy steps", n->steps);
    number_if(a, "proxy bytes", n->bytes);
    number_if(a, "waited for GPU ns", waited_ns(n, PKI_NCCL_FOR_GPU));
    number_if(a, "waited for peer ns", waited_ns(n, PKI_NCCL_FOR_PEER));
    number_if(a, "waited for network ns", waited_ns(n, PKI_NCCL_FOR_NET));
    number_if(a, "network events", n->net_events);
}

/* A wrapper library counts operations where they are called, this backend where NCCL reports them:
 * with both, the wrapper does, and what is emitted here is a detail of the trace. */
static bool is_wrapped(void)
{
    return pki_load(&pki_comms_wrapped);
}

static void write_operation(pki_nccl_communicator *t, const pki_nccl_operation *o,
                            const pki_nccl_event *event)
{
    char name[32];
    args a = {.count = 0};
    uint64_t start = o->start;
    pki_activity activity = {.kind = is_wrapped() ? PKI_ACTIVITY_RANGE : PKI_ACTIVITY_OPERATION,
                             .track = pki_nccl_track_of_operation(t, &start, o->end),
                             .name = name,
                             .end = PKI_MAX(o->end, start),
                             .region = o->node->region,
                             .device = PKI_NO_DEVICE,
                             .bytes = bytes_of(&o->what),
                             .operation = &o->what,
                             .args = a.list};
    activity.start = start;
    activity.name_length =
        (size_t)snprintf(name, sizeof name, "NCCL %s", pki_comm_op_name(o->what.op));
    number(&a, "exposed_ns", o->exposed);
    put_how(&a, o, event);
    put_network(&a, o->node);
    activity.arg_count = a.count;
    pki_activity_add(&activity);
}

static void count_operation(const pki_nccl_communicator *t, const pki_nccl_operation *o,
                            const pki_nccl_event *e)
{
    pki_activity_count_operation(
        &(pki_timed_operation){.comm = t->comm->index,
                               .ranks = (uint32_t)PKI_MAX(t->comm->size, 0),
                               .op = (pk_comm_op)o->what.op,
                               .region = o->node->region,
                               .bytes = bytes_of(&o->what),
                               .sequence = o->what.sequence,
                               .start = o->start,
                               .end = o->end,
                               .exposed = o->exposed,
                               .in_flight = o->what.in_flight,
                               .unrated = o->timed != PKI_NCCL_BY_KERNEL,
                               .algorithm = pki_nccl_text(PKI_NCCL_ALGORITHM, e->algorithm),
                               .protocol = pki_nccl_text(PKI_NCCL_PROTOCOL, e->protocol),
                               .channels = e->channels},
        1);
}

void pki_nccl_emit_operation(pki_nccl_communicator *t, pki_nccl_operation *o)
{
    const pki_nccl_event *event = pki_nccl_event_of(o->node->handle);
    o->exposed = PKI_MIN(o->exposed, o->end > o->start ? o->end - o->start : 0);
    o->what.in_flight = pki_comm_count_overlap(t->comm, o->start, o->end);
    pki_bump(&operations, 1);
    write_operation(t, o, event);
    if (!o->unfinished && !is_wrapped())
        count_operation(t, o, event);
}

/* ---- details ---- */

static void write_detail(const char *name, uint32_t track, uint32_t level, uint64_t start,
                         uint64_t end, const args *a)
{
    pki_activity_add(&(pki_activity){.kind = PKI_ACTIVITY_RANGE,
                                     .track = track,
                                     .level = level,
                                     .name = name,
                                     .name_length = strlen(name),
                                     .start = start,
                                     .end = PKI_MAX(start, end),
                                     .device = PKI_NO_DEVICE,
                                     .args = a->list,
                                     .arg_count = a->count});
}

void pki_nccl_emit_proxy(pki_nccl_communicator *t, const pki_nccl_event *e, uint64_t bytes)
{
    args a = {.count = 0};
    bool sends = (e->flags & PKI_NCCL_SENDS) != 0;
    uint64_t start = pki_activity_ns_of_ticks(e->start), end = pki_activity_ns_of_ticks(e->stop);
    uint32_t track = pki_nccl_track_of_channel(t, sends ? PKI_NCCL_SENDING : PKI_NCCL_RECEIVES,
                                               e->channels, &start, end);
    number(&a, "Peer", (uint64_t)PKI_MAX(e->peer, 0));
    number(&a, "steps", e->count);
    number_if(&a, "bytes moved", bytes);
    number_if(&a, "for another process", (e->flags & PKI_NCCL_FOREIGN) != 0);
    write_detail(sends ? "send" : "receive", track, 0, start, end, &a);
}

void pki_nccl_emit_kernel(pki_nccl_communicator *t, const pki_nccl_event *e)
{
    args a = {.count = 0};
    uint64_t start = pki_activity_ns_of_ticks(e->start), end = pki_activity_ns_of_ticks(e->stop);
    uint64_t first = e->timer, last = pki_load(&e->stop_timer);
    uint32_t track = pki_nccl_track_of_channel(t, PKI_NCCL_KERNELS, e->channels, &start, end);
    number_if(&a, "GPU ns", first && last > first ? last - first : 0);
    write_detail("kernel", track, 0, start, end, &a);
}

static const char *name_of_call(const pki_nccl_event *e)
{
    switch (e->type) {
    case PKI_NCCL_GROUP:
        return "tasks";
    case PKI_NCCL_GROUP_API:
        return "group";
    case PKI_NCCL_LAUNCH:
        return "launch";
    case PKI_NCCL_PROXY_CTRL:
        return "proxy";
    default:
        return pki_nccl_text(PKI_NCCL_FUNCTION, e->op);
    }
}

/* Calls are in the group around them, the launch in its tasks; a clock of coarse steps lets them
 * end together. */
static uint32_t level_of_call(const pki_nccl_event *e)
{
    return e->type == PKI_NCCL_GROUP_API ? 1 : e->type == PKI_NCCL_LAUNCH ? 3 : 2;
}

void pki_nccl_emit_call(const pki_nccl_event *e)
{
    static const char *const doing[] = {"idle",     "active",  "asleep",
                                        "wakes up", "appends", "has appended"};
    args a = {.count = 0};
    uint32_t state = pki_load(&e->state);
    if (e->type == PKI_NCCL_PROXY_CTRL && state >= PKI_NCCL_CTRL_IDLE &&
        state <= PKI_NCCL_CTRL_APPEND_END)
        text(&a, "state", doing[state - PKI_NCCL_CTRL_IDLE]);
    number_if(&a, "graph", (e->flags & PKI_NCCL_CAPTURED) != 0);
    write_detail(name_of_call(e), pki_nccl_track_of_thread(e->thread), level_of_call(e),
                 pki_activity_ns_of_ticks(e->start), pki_activity_ns_of_ticks(e->stop), &a);
}

/* ---- how NCCL is made to find us ---- */

/* It opens what NCCL_PROFILER_PLUGIN names, or itself and all that is linked with it if that is
 * STATIC_PLUGIN, and looks for ncclProfiler_v6 and older ones. With a static perfkit nobody finds
 * those unless the program exports them (-u and --export-dynamic-symbol, as pk.pc and CMake's
 * package say); libpkshim.so has them otherwise, and gets our functions. A search that failed is
 * not repeated by NCCL, so it has to find us before the first communicator. */

#define IN_PROGRAM "STATIC_PLUGIN"
#define NAME_MOST 254 /* NCCL cuts what is longer */

/* NCCL linked into the program, or loaded by it. */
extern int ncclGetVersion(int *version) __attribute__((weak));

/* The functions, for a table of our own: what a shim gets, and what it is known by. */
#define TABLE(V, INIT, STATE)                                                                      \
    static const pki_nccl_table_v##V table_v##V = PKI_NCCL_FUNCTIONS(V, INIT, STATE);
PKI_NCCL_TABLES(TABLE)

static bool nccl_is_here(void)
{
    void *library;
    if (&ncclGetVersion || dlsym(RTLD_DEFAULT, "ncclGetVersion"))
        return true;
    library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    return library != NULL;
}

static const char *claimed(void)
{
    const char *name = secure_getenv(PKI_NCCL_VARIABLE);
    return name && *name ? name : NULL;
}

/* ---- where we are ---- */

/* A table of ours has our functions in it, wherever it lies. A program may export one of them only,
 * that of its NCCL. */
static bool is_ours(void *library)
{
    bool ours = false;
#define LOOK(V, INIT, STATE)                                                                       \
    const pki_nccl_table_v##V *v##V = library ? dlsym(library, "ncclProfiler_v" #V) : NULL;        \
    ours |= v##V && v##V->start == table_v##V.start;
    PKI_NCCL_TABLES(LOOK)
#undef LOOK
    return ours;
}

/* Does whoever looks into that file find us? NULL: the program and what it is linked with. */
static bool leads_here(const char *path)
{
    void *library = dlopen(path, path ? RTLD_LAZY | RTLD_NOLOAD : RTLD_LAZY);
    bool ours = is_ours(library);
    if (library)
        dlclose(library); /* was there before */
    return ours;
}

static bool own_library(char path[PATH_MAX])
{
    Dl_info self;
    return dladdr(&pki_nccl_open, &self) && self.dli_fname && realpath(self.dli_fname, path) &&
           strlen(path) <= NAME_MOST && leads_here(path);
}

/* ---- the shim ---- */

/* All of it, or nothing: it has one user. */
static bool fill_shim(void *shim)
{
    pki_nccl_table_v5 *five = dlsym(shim, "ncclProfiler_v5");
    if (!five || (five->name[0] && five->start != table_v5.start))
        return false;
#define FILL(V, INIT, STATE)                                                                       \
    pki_nccl_table_v##V *v##V = dlsym(shim, "ncclProfiler_v" #V);                                  \
    if (!v##V)                                                                                     \
        return false;                                                                              \
    *v##V = table_v##V;
    PKI_NCCL_TABLES(FILL)
    return true;
}

static bool use_shim(const char *given, char path[PATH_MAX])
{
    Dl_info info;
    void *shim = pki_dl_possible() ? pki_shim_open(given) : NULL;
    void *table = shim ? dlsym(shim, "ncclProfiler_v5") : NULL;
    return table && dladdr(table, &info) && info.dli_fname && realpath(info.dli_fname, path) &&
           strlen(path) <= NAME_MOST && fill_shim(shim); /* never closed: NCCL is inside */
}

/* ---- being found ---- */

static bool find_way(const pki_config *config, char path[PATH_MAX])
{
    if (leads_here(NULL)) {
        strcpy(path, IN_PROGRAM);
        return true;
    }
    return own_library(path) || use_shim(config->nvtx_shim, path);
}

/* Somebody has said who is to be found: that may be us. */
static bool is_way(const char *name, const char *path)
{
    char full[PATH_MAX];
    if (strcasecmp(name, IN_PROGRAM) == 0)
        return leads_here(NULL);
    return strcmp(name, path) == 0 || (realpath(name, full) && strcmp(full, path) == 0) ||
           leads_here(name);
}

static bool refuse(char *reason, size_t size, const char *format, const char *what)
{
    snprintf(reason, size, format, what);
    return false;
}

/* From here on a first communicator finds us, unless somebody else is to be found: false, and why
 * in reason, which otherwise says how it finds us. */
static bool pki_nccl_make_discoverable(const pki_config *config, bool named, char *reason,
                                       size_t size)
{
    char path[PATH_MAX] = "";
    const char *there = claimed();
    if (!there && !named && !nccl_is_here())
        return refuse(reason, size, "%s",
                      "NCCL is not in this process; if it comes later, name nccl among"
                      " the backends");
    bool found = find_way(config, path);
    if (there && !is_way(there, path))
        return refuse(reason, size, PKI_NCCL_VARIABLE " is another's: %.120s", there);
    if (!there && !found && !pki_dl_possible())
        return refuse(reason, size, "%s", PKI_DL_STATIC);
    if (!there && !found)
        return refuse(reason, size,
                      "perfkit is linked statically, and %.100s cannot be used: see"
                      " docs/nccl.md",
                      *config->nvtx_shim ? config->nvtx_shim : PKI_SHIM);
    if (!there && setenv(PKI_NCCL_VARIABLE, path, 1) != 0)
        return refuse(reason, size, "%s cannot be set", PKI_NCCL_VARIABLE);
    snprintf(reason, size, PKI_NCCL_VARIABLE "=%.140s", there ? there : path);
    return true;
}

/* ---- backend ---- */

static char how[192]; /* NCCL finds us, or why not; of the last start */
static bool started, backend_found;
static uint64_t dropped, dropped_operations, unknown, stale; /* before the session */

static bool is_named(const char *list)
{
    for (const char *p = list; *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        if (n == 4 && memcmp(p, "nccl", 4) == 0)
            return true;
        p += n;
    }
    return false;
}

/* A communicator that is there already tells us whoever the variable names: it has found us. */
static bool start(const pki_config *config)
{
    started = true;
    pki_store(&pki_comms_wrapped, 0u); /* who wraps says so with the first call */
    backend_found = pki_nccl_make_discoverable(config, is_named(config->backends), how, sizeof how);
    if (!backend_found && pki_load(&pki_nccl_comms.live) == 0)
        return false;
    pki_nccl_assemble_start();
    pki_nccl_emit_start();
    pki_nccl_tracks_start();
    dropped = pki_load(&pki_nccl_lost.dropped);
    unknown = pki_load(&pki_nccl_lost.unknown);
    stale = pki_load(&pki_nccl_lost.stale);
    dropped_operations = pki_load(&pki_nccl_lost.operations);
    pki_store(&pki_nccl_open.monotonic, config->monotonic);
    pki_store_release(&pki_nccl_open.recording, 1); /* pairs with the acquire of a start */
    pki_nccl_ask(true);
    return true;
}

/* Those that a wrapper counts are missing in the trace alone. */
static void tell_of_losses(void)
{
    uint64_t events = pki_load(&pki_nccl_lost.dropped) - dropped;
    uint64_t lost = pki_load(&pki_nccl_lost.operations) - dropped_operations;
    if (events)
        pki_activity_dropped_operations(events, pki_load(&pki_comms_wrapped) ? 0 : lost);
}

static void collect(void)
{
    pki_nccl_assemble_round(false);
    tell_of_losses();
}

/* Without a communicator nothing comes. */
static bool is_idle(void)
{
    return pki_load(&pki_nccl_comms.live) == 0;
}

static void stop(void)
{
    pki_nccl_ask(false);
    pki_store(&pki_nccl_open.recording, 0);
    pki_nccl_assemble_round(true);
    tell_of_losses();
}

static void after_fork(void)
{
    pki_nccl_callbacks_after_fork();
    pki_nccl_assemble_after_fork();
    backend_found = false;
}

/* ---- what it says of itself ---- */

static void describe_future(pk_backend_info *info)
{
    const char *name = secure_getenv(PKI_NCCL_VARIABLE);
    info->live = 0;
    if (name && *name)
        snprintf(info->reason, sizeof info->reason, PKI_NCCL_VARIABLE " names %.120s", name);
    else
        snprintf(info->reason, sizeof info->reason,
                 "listens to NCCL from pk_start on, if that is in the process");
}

static size_t put_losses(char *text, size_t size, const char *words, uint64_t n)
{
    int length = n ? snprintf(text, size, "; %llu %s", (unsigned long long)n, words) : 0;
    return length > 0 ? PKI_MIN((size_t)length, size - 1) : 0;
}

static void describe(pk_backend_info *info)
{
    size_t size = sizeof info->reason;
    uint32_t live = pki_load(&pki_nccl_comms.live);
    info->live = backend_found || live;
    if (!info->live || (live == 0 && pki_nccl_operations() == 0)) {
        snprintf(info->reason, size, "%.180s", how);
        return;
    }
    size_t n = (size_t)snprintf(info->reason, size, "%u communicators, %llu operations", live,
                                (unsigned long long)pki_nccl_operations());
    n += put_losses(info->reason + n, size - n, "events dropped: the pool was full",
                    pki_load(&pki_nccl_lost.dropped) - dropped);
    n += put_losses(info->reason + n, size - n, "events of unknown types",
                    pki_load(&pki_nccl_lost.unknown) - unknown);
    n += put_losses(info->reason + n, size - n, "ends of events that were not open",
                    pki_load(&pki_nccl_lost.stale) - stale);
    put_losses(info->reason + n, size - n, "communicators refused",
               pki_load(&pki_nccl_comms.refused));
}

static void probe(pk_backend_info *info)
{
    snprintf(info->version, sizeof info->version, "profiler 2 to 6");
    if (started)
        describe(info);
    else
        describe_future(info);
}

extern const pki_backend pki_backend_nccl;
const pki_backend pki_backend_nccl = {.name = "nccl",
                                      .by_default = true,
                                      .probe = probe,
                                      .start = start,
                                      .collect = collect,
                                      .idle = is_idle,
                                      .stop = stop,
                                      .after_fork = after_fork};
