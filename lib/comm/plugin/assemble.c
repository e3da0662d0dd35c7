/* lib/comm/plugin/assemble.c - the collector: what NCCL's words mean, which event belongs to which,
 * and when an operation is over */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/plugin/plugin.h"
#include "session/activity.h"
#include "session/session.h"

/* ---- NCCL's words as numbers ---- */

typedef struct code_word {
    const char *text;
    int meaning; /* a pk_comm_op or a pk_comm_type */
} code_word;

static const code_word functions[] = {{"other", PK_COMM_OP_OTHER},
                                      {"AllReduce", PK_COMM_OP_ALL_REDUCE},
                                      {"Broadcast", PK_COMM_OP_BROADCAST},
                                      {"Reduce", PK_COMM_OP_REDUCE},
                                      {"AllGather", PK_COMM_OP_ALL_GATHER},
                                      {"ReduceScatter", PK_COMM_OP_REDUCE_SCATTER},
                                      {"AlltoAll", PK_COMM_OP_ALL_TO_ALL},
                                      {"Gather", PK_COMM_OP_GATHER},
                                      {"Scatter", PK_COMM_OP_SCATTER},
                                      {"Send", PK_COMM_OP_SEND},
                                      {"Recv", PK_COMM_OP_RECV},
                                      {"SendRecv", PK_COMM_OP_SEND_RECV},
                                      {"PutSignal", PK_COMM_OP_OTHER},
                                      {"Signal", PK_COMM_OP_OTHER},
                                      {"WaitSignal", PK_COMM_OP_OTHER}};

static const code_word elements[] = {{"ncclUint8", PK_COMM_TYPE_BYTE},
                                     {"ncclInt8", PK_COMM_TYPE_INT8},
                                     {"ncclInt32", PK_COMM_TYPE_INT32},
                                     {"ncclUint32", PK_COMM_TYPE_UINT32},
                                     {"ncclInt64", PK_COMM_TYPE_INT64},
                                     {"ncclUint64", PK_COMM_TYPE_UINT64},
                                     {"ncclFloat16", PK_COMM_TYPE_FLOAT16},
                                     {"ncclFloat32", PK_COMM_TYPE_FLOAT32},
                                     {"ncclFloat64", PK_COMM_TYPE_FLOAT64},
                                     {"ncclBfloat16", PK_COMM_TYPE_BFLOAT16},
                                     {"ncclFloat8e4m3", PK_COMM_TYPE_FLOAT8_E4M3},
                                     {"ncclFloat8e5m2", PK_COMM_TYPE_FLOAT8_E5M2}};

static const code_word algorithms[] = {
    {"", 0},     {"TREE", 0},      {"RING", 0}, {"COLLNET_DIRECT", 0}, {"COLLNET_CHAIN", 0},
    {"NVLS", 0}, {"NVLS_TREE", 0}, {"PAT", 0}};

static const code_word protocols[] = {{"", 0}, {"LL", 0}, {"LL128", 0}, {"SIMPLE", 0}};

static const struct {
    const code_word *words;
    uint8_t count;
} lists[PKI_NCCL_CODE_KINDS] = {{functions, PKI_COUNT_OF(functions)},
                                {elements, PKI_COUNT_OF(elements)},
                                {algorithms, PKI_COUNT_OF(algorithms)},
                                {protocols, PKI_COUNT_OF(protocols)}};

uint64_t pki_nccl_seen[PKI_NCCL_SEEN];

_Static_assert(PKI_COUNT_OF(functions) < 32 && PKI_COUNT_OF(elements) < 32, "five bits");

uint8_t pki_nccl_look_up(pki_nccl_code_kind kind, const char *text)
{
    uint8_t code = 0;
    if (!text)
        return 0;
    for (uint8_t i = 0; i < lists[kind].count; i++)
        if (strcmp(lists[kind].words[i].text, text) == 0)
            code = i;
    uint64_t key = pki_nccl_code_key(kind, text);
    pki_store(pki_nccl_code_seen(key), key << 5 | code);
    return code;
}

const char *pki_nccl_text(pki_nccl_code_kind kind, uint8_t code)
{
    return lists[kind].words[code < lists[kind].count ? code : 0].text;
}

static pk_comm_op op_of(uint8_t function)
{
    return (pk_comm_op)functions[function < PKI_COUNT_OF(functions) ? function : 0].meaning;
}

static pk_comm_type type_of(uint8_t element)
{
    return (pk_comm_type)elements[element < PKI_COUNT_OF(elements) ? element : 0].meaning;
}

/* ---- what is in the pool, and the nodes of it ---- */

static void release(uint64_t handle)
{
    pki_nccl_pool *pool = pki_nccl_the_pool();
    uint64_t given = pki_load(&pool->given);
    pki_store(pki_nccl_turn(pool, given), (uint16_t)pki_nccl_place(handle));
    pki_store_release(&pool->given, given + 1); /* pairs with the next claim's acquire */
}

/* The place may be given away. */
static void pki_nccl_free(uint64_t handle)
{
    pki_store(&pki_nccl_the_pool()->heads[pki_nccl_place(handle)],
              pki_nccl_head(handle, PKI_NCCL_FREE));
    release(handle);
}

/* Who is about to stop it meets a word that is not an open event's. */
static void pki_nccl_retire(uint64_t handle)
{
    __atomic_exchange_n(&pki_nccl_the_pool()->heads[pki_nccl_place(handle)],
                        pki_nccl_head(handle, PKI_NCCL_FREE), __ATOMIC_ACQUIRE);
    release(handle);
}

static pki_nccl_node *nodes; /* by place; for the process's life, from the first round on */

static bool has_nodes(void)
{
    if (!nodes)
        nodes = calloc(PKI_NCCL_PLACES, sizeof *nodes);
    return nodes != NULL;
}

/* Its node, if that is (still) this handle's; NULL otherwise. */
static pki_nccl_node *pki_nccl_node_of(uint64_t handle)
{
    pki_nccl_node *n = &nodes[pki_nccl_place(handle)];
    return handle >= PKI_NCCL_PLACES && n->handle == handle ? n : NULL;
}

static pki_nccl_node *make_node(uint64_t handle)
{
    pki_nccl_node *n = &nodes[pki_nccl_place(handle)];
    const pki_nccl_event *e = pki_nccl_event_of(handle);
    *n = (pki_nccl_node){.handle = handle,
                         .parent = e->parent,
                         .type = e->type,
                         .context = e->context,
                         .region = e->region,
                         .op = e->op,
                         .element = e->element,
                         .flags = e->flags,
                         .count = e->count,
                         .start = e->start,
                         .peer = e->peer};
    return n;
}

/* The same, whether or not it has been met: a child may be seen before its parent in a round. */
static pki_nccl_node *pki_nccl_node_make(uint64_t handle)
{
    pki_nccl_node *n = pki_nccl_node_of(handle);
    if (n || handle < PKI_NCCL_PLACES)
        return n;
    uint64_t word = pki_nccl_word_at(pki_nccl_place(handle));
    return word >> 2 == handle && (word & 3) != PKI_NCCL_FREE ? make_node(handle) : NULL;
}

/* Was the event of this handle open, or about to be stopped, at this tick? False: nobody knows of
 * it any more. A node that has no end may have one since the pool was looked
 * through. */
static bool pki_nccl_was_open(uint64_t handle, uint64_t ticks)
{
    const pki_nccl_node *n = pki_nccl_node_make(handle);
    if (!n)
        return false;
    if (n->stop)
        return n->stop >= ticks;
    bool open = pki_nccl_word_at(pki_nccl_place(handle)) == pki_nccl_head(handle, PKI_NCCL_OPEN);
    return open || pki_load(&pki_nccl_event_of(handle)->stop) >= ticks;
}

/* Forgets what the last session knew. */
static void pki_nccl_nodes_start(void)
{
    if (nodes)
        memset(nodes, 0, PKI_NCCL_PLACES * sizeof *nodes);
}

static void pki_nccl_nodes_after_fork(void)
{
    nodes = NULL;
}

/* ---- communicators on the collector's side: perfkit's own, and tracks ---- */

/* The collector's: nothing of a closed one is left. */
static void pki_nccl_context_free(uint32_t index)
{
    pki_store_release(&pki_nccl_context_at(index)->state,
                      PKI_NCCL_CONTEXT_FREE); /* pairs with the next claim */
}

static pki_nccl_communicator *known[PKI_NCCL_CONTEXTS];
static bool used[PKI_NCCL_CONTEXTS];
static bool gone[PKI_NCCL_CONTEXTS]; /* before this round looked into the pool */

/* One that was never named is called by its id. */
static pk_comm *make_comm(const pki_nccl_context *c)
{
    char name[PKI_NCCL_NAME + 8];
    if (c->name[0])
        snprintf(name, sizeof name, "%s", c->name);
    else
        snprintf(name, sizeof name, "nccl %016llx", (unsigned long long)c->id);
    return pk_comm_create("NCCL", name, c->id, c->rank, c->ranks);
}

static void destroy(pki_nccl_communicator *t)
{
    if (t && !t->destroyed)
        pk_comm_destroy(t->comm);
    if (t)
        t->destroyed = true;
}

/* An event of a new communicator is seen after the ends of those that were finalized before it was
 * made, so whether one of them is the same one made anew does not depend on where rounds fall. What
 * is still to be emitted of the old one goes under the name that both have. */
static void destroy_finalized(void)
{
    for (uint32_t i = 0; i < PKI_NCCL_CONTEXTS; i++) {
        const pki_nccl_context *c = known[i] ? pki_nccl_context_at(i) : NULL;
        if (c && c->handle == known[i]->context && pki_load(&c->state) == PKI_NCCL_CONTEXT_GONE)
            destroy(known[i]);
    }
}

static pki_nccl_communicator *make(pki_nccl_communicator *t, const pki_nccl_context *c)
{
    t = t ? t : malloc(sizeof *t);
    if (!t)
        return NULL;
    memset(t, 0, sizeof *t);
    t->context = c->handle;
    t->comm = make_comm(c);
    return t;
}

static pki_nccl_communicator *pki_nccl_communicator_of(uint32_t context)
{
    uint32_t i = pki_nccl_context_index(context);
    const pki_nccl_context *c = pki_nccl_context_at(i);
    if (!c || c->handle != context ||
        pki_load_acquire(&c->described) != 2) /* pairs with its description */
        return NULL;
    if (!known[i] || known[i]->context != context) {
        destroy(known[i]);
        destroy_finalized();
        known[i] = make(known[i], c);
    }
    return known[i];
}

/* The communicator of an event; NULL: it is nobody's any more. */
/* it has events in this round */
static void pki_nccl_communicator_use(uint32_t context)
{
    used[pki_nccl_context_index(context)] = true;
}

static void pki_nccl_communicators_check(void)
{
    for (uint32_t i = 0; i < PKI_NCCL_CONTEXTS; i++) {
        const pki_nccl_context *c = pki_nccl_context_at(i);
        gone[i] = c && pki_load(&c->state) == PKI_NCCL_CONTEXT_GONE;
    }
}

static bool pki_nccl_communicator_is_gone(uint32_t context)
{
    uint32_t i = pki_nccl_context_index(context);
    const pki_nccl_context *c = pki_nccl_context_at(i);
    return !c || c->handle != context || gone[i];
}

static bool pki_nccl_communicator_spans_nodes(uint32_t context)
{
    const pki_nccl_context *c = pki_nccl_context_at(pki_nccl_context_index(context));
    return c && c->nodes > 1;
}

static void drop(uint32_t i)
{
    destroy(known[i]);
    free(known[i]);
    known[i] = NULL;
}

/* those that are gone and have none */
static void pki_nccl_communicators_clean(void)
{
    for (uint32_t i = 0; i < PKI_NCCL_CONTEXTS; i++) {
        if (gone[i] && !used[i]) {
            drop(i);
            pki_nccl_context_free(i);
        }
        used[i] = false;
    }
}

/* Which are gone, before the pool is gathered: all that one had is in the pool by then. One that
 * goes later may have had events since that this round does not know; it goes in the next one. */
/* tracks are those of the session that begins */
static void pki_nccl_communicators_start(void)
{
    for (uint32_t i = 0; i < PKI_NCCL_CONTEXTS; i++)
        if (known[i])
            *known[i] = (pki_nccl_communicator){.context = known[i]->context,
                                                .comm = known[i]->comm,
                                                .destroyed = known[i]->destroyed};
}

static void pki_nccl_communicators_after_fork(void)
{
    memset(known, 0, sizeof known);
    memset(used, 0, sizeof used);
    memset(gone, 0, sizeof gone);
}

/* ---- what NCCL reports of a task's children ---- */

#define TASKS (PKI_NCCL_COLL | PKI_NCCL_P2P | PKI_NCCL_CE_COLL)

/* The network's operations with their steps, and kernels by channel. Each adds what it did to its
 * parent, and its place is free. */

static void mark_started(pki_nccl_node *n)
{
    const pki_nccl_communicator *t = pki_nccl_communicator_of(n->context);
    if (t && n->queued && !n->started)
        pki_comm_begun(t->comm, n->sequence);
    n->started = true;
}

/* A handle of another process, or one that is not a task's, has no node here. */
static pki_nccl_node *parent_of(const pki_nccl_node *n, uint32_t types)
{
    if (n->flags & PKI_NCCL_FOREIGN)
        return NULL;
    /* Perhaps before its own turn: the pool is looked through while it changes. */
    pki_nccl_node *p = pki_nccl_node_make(n->parent);
    return p && (p->type & types) && p->context == n->context ? p : NULL;
}

static void net_ends(pki_nccl_node *n)
{
    pki_nccl_node *step = parent_of(n, PKI_NCCL_PROXY_STEP);
    if (step)
        step->net_events++;
}

static void add_steps(pki_nccl_node *to, const pki_nccl_node *from)
{
    to->steps += from->steps;
    to->bytes += from->bytes;
    to->net_events += from->net_events;
    for (int i = 0; i < PKI_NCCL_WAITS; i++)
        to->waits[i] += from->waits[i];
}

static void step_ends(pki_nccl_node *n)
{
    pki_nccl_event *e = pki_nccl_event_of(n->handle);
    pki_nccl_node *operation = parent_of(n, PKI_NCCL_PROXY_OP);
    pki_nccl_leave_state(e, n->stop);
    n->steps = 1;
    n->bytes = pki_load(&e->moved);
    for (int i = 0; i < PKI_NCCL_WAITS; i++)
        n->waits[i] = pki_load(&e->waits[i]);
    if (operation)
        add_steps(operation, n);
}

static void proxy_ends(pki_nccl_node *n)
{
    const pki_nccl_event *e = pki_nccl_event_of(n->handle);
    pki_nccl_node *task = parent_of(n, TASKS);
    pki_nccl_communicator *t = pki_nccl_communicator_of(n->context);
    n->bytes = n->bytes ? n->bytes : pki_load(&e->moved);
    if (t)
        pki_nccl_emit_proxy(t, e, n->bytes);
    if (!task)
        return;
    task->proxies++;
    task->proxy_end = PKI_MAX(task->proxy_end, n->stop);
    add_steps(task, n);
}

static void kernel_ends(pki_nccl_node *n)
{
    const pki_nccl_event *e = pki_nccl_event_of(n->handle);
    pki_nccl_node *task = parent_of(n, TASKS);
    pki_nccl_communicator *t = pki_nccl_communicator_of(n->context);
    uint64_t first = e->timer, last = pki_load(&e->stop_timer);
    if (t)
        pki_nccl_emit_kernel(t, e);
    if (!task)
        return;
    task->kernel_start = task->kernels ? PKI_MIN(task->kernel_start, n->start) : n->start;
    task->kernel_end = PKI_MAX(task->kernel_end, n->stop);
    task->kernels++;
    if (!first || last < first)
        return;
    task->gpu_first = task->gpu_first ? PKI_MIN(task->gpu_first, first) : first;
    task->gpu_last = PKI_MAX(task->gpu_last, last);
}

/* In every round, so that its parent knows. */
static void pki_nccl_child_seen(pki_nccl_node *n, bool open)
{
    pki_nccl_node *p = parent_of(n, n->type == PKI_NCCL_NET          ? PKI_NCCL_PROXY_STEP
                                    : n->type == PKI_NCCL_PROXY_STEP ? PKI_NCCL_PROXY_OP
                                                                     : TASKS);
    pki_nccl_communicator *t = pki_nccl_communicator_of(n->context);
    if (t && n->type == PKI_NCCL_PROXY_OP)
        t->proxies = true;
    if (t && n->type == PKI_NCCL_KERNEL_CH)
        t->kernels = true;
    if (!p)
        return;
    p->open += open;
    if (p->type & TASKS)
        mark_started(p);
}

/* False: it is no child. */
static bool pki_nccl_child_ends(pki_nccl_node *n)
{
    switch (n->type) {
    case PKI_NCCL_NET:
        net_ends(n);
        return true;
    case PKI_NCCL_PROXY_STEP:
        step_ends(n);
        return true;
    case PKI_NCCL_PROXY_OP:
        proxy_ends(n);
        return true;
    case PKI_NCCL_KERNEL_CH:
        kernel_ends(n);
        return true;
    default:
        return false;
    }
}

/* ---- which event belongs to which, and when an operation is over ---- */

/* A collective comes in pieces: the call (version 5 on), the task that NCCL made of it, and its
 * children on the proxy's thread: operations of the network with their steps, kernels by channel.
 * The task's own end is not the operation's: it has only been handed over by then, and children may
 * still come. So a task waits until it has no open child and none has come for a while; how long
 * depends on what its communicator has had so far. A call without a task is an operation by itself
 * (symmetric kernels, copy engines); a captured one is none: each replay makes tasks with that same
 * call as their parent, however long it is gone. If the network has no part in it, NCCL makes the
 * tasks once instead, amid the capture: the call's group is open then, and nothing runs. */

#define MS 1000000u
#define CALL_ALONE (1000u * MS)      /* a call's task may be waiting for its stream */
#define PROXY_LINGERS (200u * MS)    /* a task's first operation of the network */
#define NEXT_LINGERS (20u * MS)      /* from one child to the next */
#define KERNEL_LINGERS (10000u * MS) /* a kernel behind much other work */
#define CROWDED (PKI_NCCL_PLACES / 4 * 3)

#define CALLS (PKI_NCCL_COLL_API | PKI_NCCL_P2P_API)

static struct {
    uint64_t now; /* ns */
    bool last, crowded;
} turn;

static uint64_t ns(uint64_t ticks)
{
    return pki_activity_ns_of_ticks(ticks);
}

static bool waited(uint64_t since_ticks, uint64_t long_enough)
{
    return turn.last || turn.crowded || turn.now >= ns(since_ticks) + long_enough;
}

/* ---- beginnings ---- */

static void queue(pki_nccl_node *n)
{
    const pki_nccl_communicator *t = pki_nccl_communicator_of(n->context);
    if (!t)
        return;
    n->payload = pki_comm_enqueue(t->comm, op_of(n->op), type_of(n->element), n->peer, n->region,
                                  &n->sequence);
    n->queued = true;
}

static void inherit(pki_nccl_node *n, pki_nccl_node *call)
{
    bool captured = (call->flags & PKI_NCCL_CAPTURED) != 0;
    n->call = call->handle;
    n->flags |= captured ? PKI_NCCL_CAPTURED : 0;
    if (captured)
        return;
    n->region = call->region;
    if (call->taken)
        return;
    call->taken = true;
    n->call_start = call->start;
    n->call_stop = call->stop;
    n->payload = call->payload;
    n->sequence = call->sequence;
    n->queued = call->queued;
}

static void begin(pki_nccl_node *n);

/* Its call, perhaps before its own turn: the pool is looked through while it changes. */
static pki_nccl_node *call_of(const pki_nccl_node *n)
{
    pki_nccl_node *call = pki_nccl_node_make(n->parent);
    if (!call || !(call->type & CALLS) || call->context != n->context)
        return NULL;
    begin(call);
    return call;
}

/* Is this task no operation? Its call has been emitted by itself already, or is being captured. */
static bool is_none(const pki_nccl_node *n, const pki_nccl_node *call)
{
    if (call->flags & PKI_NCCL_CAPTURED)
        return pki_nccl_was_open(call->parent, n->start);
    return call->over && !call->taken;
}

static void begin_task(pki_nccl_node *n)
{
    pki_nccl_node *call = call_of(n);
    if (call) {
        n->over = is_none(n, call);
        inherit(n, call);
    }
    if (!n->queued && !n->over)
        queue(n);
}

static void begin(pki_nccl_node *n)
{
    if (n->met)
        return;
    n->met = true;
    if (n->type & TASKS)
        begin_task(n);
    else if ((n->type & CALLS) && !(n->flags & PKI_NCCL_CAPTURED))
        queue(n);
}

/* ---- ends ---- */

static pki_nccl_timed timed_by(const pki_nccl_node *n)
{
    return n->kernels ? PKI_NCCL_BY_KERNEL : n->proxies ? PKI_NCCL_BY_PROXY : PKI_NCCL_BY_HOST;
}

static uint64_t last_of(const pki_nccl_node *n)
{
    uint64_t last = PKI_MAX(n->stop, n->proxy_end);
    return PKI_MAX(last, n->kernel_end);
}

/* The GPU's timer says how long, the host's clock when. */
static void put_times(const pki_nccl_node *n, pki_nccl_operation *o)
{
    uint64_t begun = n->call_start ? n->call_start : n->start;
    o->timed = timed_by(n);
    o->start = ns(begun);
    o->end = ns(last_of(n));
    uint64_t returned = n->call_start ? ns(n->call_stop) : ns(n->stop);
    o->exposed = returned > o->start ? returned - o->start : 0;
    if (o->timed != PKI_NCCL_BY_KERNEL)
        return;
    uint64_t duration = n->gpu_last > n->gpu_first ? n->gpu_last - n->gpu_first
                                                   : ns(n->kernel_end) - ns(n->kernel_start);
    o->end = ns(n->kernel_end);
    o->start = o->end > duration ? o->end - duration : 0;
}

/* As its call says it, if that is known: a task of AllGather or Broadcast counts bytes. */
static void put_what(const pki_nccl_node *n, pki_nccl_operation *o)
{
    const pki_nccl_node *call = n->call ? pki_nccl_node_of(n->call) : NULL;
    bool same = call && call->op == n->op;
    const pki_nccl_node *says = same ? call : n;
    o->what.op = (uint32_t)op_of(n->op);
    o->what.type = (uint32_t)type_of(says->element);
    o->what.count = says->count;
    o->what.peer = o->what.op == PK_COMM_OP_SEND_RECV ? -1 : n->peer; /* it has a root of 0 */
    o->what.sequence = n->sequence;
    o->call = call ? call->op : 0;
}

static void emit(pki_nccl_node *n, bool unfinished)
{
    pki_nccl_communicator *t = pki_nccl_communicator_of(n->context);
    n->over = true;
    if (!t)
        return;
    pki_nccl_operation o = {.node = n, .what = pki_operation_on(t->comm), .unfinished = unfinished};
    put_times(n, &o);
    put_what(n, &o);
    pki_nccl_emit_operation(t, &o);
    if (!n->queued)
        return;
    if (unfinished)
        pki_comm_abandon(t->comm);
    else
        pki_comm_complete(n->payload.what, n->payload.extra);
}

/* Kernels come when the GPU gets to them; how many there will be is known for collectives only. */
static bool kernels_are_in(const pki_nccl_node *n, const pki_nccl_communicator *t)
{
    uint32_t channels = pki_nccl_event_of(n->handle)->channels;
    uint32_t wanted = n->type == PKI_NCCL_COLL && channels ? channels : 1;
    if (!(pki_load(&pki_nccl_mask) & PKI_NCCL_KERNEL_CH) || n->type == PKI_NCCL_CE_COLL ||
        n->kernels >= wanted)
        return true;
    return waited(last_of(n), t && t->kernels ? KERNEL_LINGERS : CALL_ALONE);
}

static bool is_over(const pki_nccl_node *n)
{
    const pki_nccl_communicator *t = pki_nccl_communicator_of(n->context);
    bool network = (t && t->proxies) || pki_nccl_communicator_spans_nodes(n->context);
    if (turn.last || n->over)
        return true;
    if (n->open || !kernels_are_in(n, t))
        return false;
    return !network || waited(last_of(n), n->proxies ? NEXT_LINGERS : PROXY_LINGERS);
}

static bool call_is_over(pki_nccl_node *n)
{
    bool alone = !n->taken && !(n->flags & PKI_NCCL_CAPTURED);
    if (alone && !waited(n->stop, CALL_ALONE))
        return false;
    pki_nccl_emit_call(pki_nccl_event_of(n->handle));
    if (alone)
        emit(n, false);
    n->over = true;
    return true;
}

/* True: its place is free again. */
static bool ends(pki_nccl_node *n)
{
    switch (n->type) {
    case PKI_NCCL_COLL_API:
    case PKI_NCCL_P2P_API:
        return call_is_over(n);
    case PKI_NCCL_COLL:
    case PKI_NCCL_P2P:
    case PKI_NCCL_CE_COLL:
        if (!is_over(n))
            return false;
        if (!n->over)
            emit(n, n->open > 0);
        return true;
    default:
        pki_nccl_emit_call(pki_nccl_event_of(n->handle));
        return true;
    }
}

/* ---- a round ---- */

/* Children before parents. */
static unsigned level_of(uint32_t type)
{
    return type == PKI_NCCL_NET                              ? 0
           : type == PKI_NCCL_PROXY_STEP                     ? 1
           : type & (PKI_NCCL_PROXY_OP | PKI_NCCL_KERNEL_CH) ? 2
           : type & TASKS                                    ? 3
                                                             : 4;
}

static void begin_all(const pki_nccl_item *items, uint32_t count, bool calls)
{
    for (uint32_t i = 0; i < count; i++) {
        pki_nccl_node *n = pki_nccl_node_make(items[i].handle);
        if (((n->type & CALLS) != 0) != calls)
            continue;
        n->open = 0;
        if (items[i].stopped && !n->stop)
            n->stop = PKI_MAX(pki_load(&pki_nccl_event_of(n->handle)->stop), n->start);
        begin(n);
        pki_nccl_communicator_use(n->context);
    }
}

/* What is open when the session ends, or its communicator is gone, will not be emitted. */
static void abandon(pki_nccl_node *n)
{
    n->stop = PKI_MAX(pki_activity_ticks(), n->start);
    if ((n->type & TASKS) && !n->over)
        emit(n, true);
    n->over = true;
    pki_nccl_retire(n->handle);
}

static void visit(const pki_nccl_item *item, pki_nccl_node *n)
{
    if (level_of(n->type) < 3)
        pki_nccl_child_seen(n, !item->stopped);
    if (item->stopped && (pki_nccl_child_ends(n) || ends(n)))
        pki_nccl_free(n->handle);
    else if (!item->stopped && (turn.last || pki_nccl_communicator_is_gone(n->context)))
        abandon(n);
}

void pki_nccl_assemble_round(bool last)
{
    uint32_t count;
    pki_nccl_communicators_check();
    const pki_nccl_item *items = pki_nccl_list_events(&count);
    if (items && !has_nodes())
        count = 0;
    turn.now = ns(pki_activity_ticks());
    turn.last = last;
    turn.crowded = count > CROWDED;
    begin_all(items, count, true);
    begin_all(items, count, false);
    for (unsigned level = 0; level < 5; level++)
        for (uint32_t i = 0; i < count; i++) {
            pki_nccl_node *n = pki_nccl_node_of(items[i].handle);
            if (level_of(n->type) == level)
                visit(&items[i], n);
        }
    pki_nccl_communicators_clean();
}

void pki_nccl_assemble_start(void)
{
    pki_nccl_nodes_start();
    pki_nccl_communicators_start();
}

void pki_nccl_assemble_after_fork(void)
{
    pki_nccl_nodes_after_fork();
    pki_nccl_communicators_after_fork();
}
