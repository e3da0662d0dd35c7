/* lib/comm/plugin/callbacks.c - what NCCL calls. What an event of an unknown type says is not
 * looked at.
 */
#include "comm/plugin/callbacks.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "comm/plugin/plugin.h"
#include "comm/plugin/contexts.h"
#include "core/thread.h"

static _Thread_local uint32_t own_tid;

static PKI_NOINLINE uint32_t read_tid(void)
{
    own_tid = (uint32_t)syscall(SYS_gettid);
    return own_tid;
}

/* What all descriptions begin with. */
static pki_nccl_event *begin(uint64_t *handle, void *context, uint64_t type, void *parent)
{
    pki_nccl_event *e = pki_nccl_claim(handle);
    if (!e)
        return NULL;
    uint32_t tid = own_tid;
    e->start = pki_ticks(pki_nccl_open.monotonic);
    e->parent = (uint64_t)(uintptr_t)parent;
    e->group = e->count = e->sequence = e->timer = 0;
    e->type = (uint32_t)type;
    e->context = (uint32_t)(uintptr_t)context;
    e->region = pki_open_region(pki_self);
    e->thread = tid ? tid : read_tid();
    e->peer = -1;
    e->op = e->element = e->algorithm = e->protocol = e->channels = e->flags = 0;
    pki_store(&e->stop_timer, 0);
    pki_store(&e->moved, 0);
    pki_store(&e->state, 0);
    for (int i = 0; i < PKI_NCCL_WAITS; i++)
        pki_store(&e->waits[i], 0);
    return e;
}

static int publish(void **event, uint64_t handle)
{
    pki_nccl_publish(handle);
    *event = (void *)(uintptr_t)handle;
    return PKI_NCCL_SUCCESS;
}

static bool is_known(uint64_t type, uint64_t known, void *context)
{
    if ((type & known) && (type & (type - 1)) == 0 && context)
        return true;
    pki_fetch_add(&pki_nccl_lost.unknown, 1);
    return false;
}

/* ---- parts of a description ---- */

static void read_codes(pki_nccl_event *e, const char *func, const char *type)
{
    e->op = pki_nccl_code(PKI_NCCL_FUNCTION, func);
    e->element = pki_nccl_code(PKI_NCCL_ELEMENT, type);
}

static void read_coll(pki_nccl_event *e, const pki_nccl_coll_v4 *d)
{
    read_codes(e, d->func, d->type);
    e->sequence = d->sequence;
    e->count = d->count;
    e->peer = d->root;
    e->channels = d->channels;
    e->algorithm = pki_nccl_code(PKI_NCCL_ALGORITHM, d->algorithm);
    e->protocol = pki_nccl_code(PKI_NCCL_PROTOCOL, d->protocol);
}

static void read_p2p(pki_nccl_event *e, const pki_nccl_p2p_v4 *d)
{
    read_codes(e, d->func, d->type);
    e->count = d->count;
    e->peer = d->peer;
}

static void read_proxy(pki_nccl_event *e, const pki_nccl_proxy_op *d)
{
    e->peer = d->peer;
    e->channels = d->channel;
    e->count = d->steps > 0 ? (uint64_t)d->steps : 0;
    e->flags = d->sends ? PKI_NCCL_SENDS : 0;
    e->flags |= d->pid == pki_load(&pki_nccl_open.pid) ? 0 : PKI_NCCL_FOREIGN;
}

static void read_net(pki_nccl_event *e, const pki_nccl_net *d)
{
    e->sequence = (uint64_t)d->id;
}

static void read_api(pki_nccl_event *e, const char *func, const char *type, size_t count,
                     bool captured)
{
    read_codes(e, func, type);
    e->count = count;
    e->flags = captured ? PKI_NCCL_CAPTURED : 0;
}

/* ---- descriptions ---- */

static void read_kernel(pki_nccl_event *e, const pki_nccl_kernel_ch *d)
{
    e->channels = d->channel;
    e->timer = d->timer;
}

/* What every version reports, in places of its own. */
static void read_shared(pki_nccl_event *e, const pki_nccl_coll_v4 *coll, const pki_nccl_p2p_v4 *p2p,
                        const pki_nccl_proxy_op *proxy)
{
    if (e->type == PKI_NCCL_COLL)
        read_coll(e, coll);
    else if (e->type == PKI_NCCL_P2P)
        read_p2p(e, p2p);
    else if (e->type == PKI_NCCL_PROXY_OP)
        read_proxy(e, proxy);
}

/* Versions 2 and 3 name the communicator in each operation. */
static void describe_context(const pki_nccl_event *e, const char *const *name, const uint64_t *hash,
                             int32_t rank)
{
    bool named = e->type == PKI_NCCL_COLL || e->type == PKI_NCCL_P2P;
    const pki_nccl_context *c =
        named ? pki_nccl_context_at(pki_nccl_context_index(e->context)) : NULL;
    if (c && pki_load(&c->described) == 0)
        pki_nccl_context_describe(e->context, *name, *hash, rank, 0, 0);
}

static pki_nccl_coll_v4 coll_of_v2(const pki_nccl_coll_v2 *d)
{
    return (pki_nccl_coll_v4){.sequence = d->sequence,
                              .func = d->func,
                              .count = d->count,
                              .root = d->root,
                              .type = d->type,
                              .channels = d->channels,
                              .algorithm = d->algorithm,
                              .protocol = d->protocol};
}

static void read_v2(pki_nccl_event *e, const pki_nccl_description_v2 *d)
{
    if (e->type == PKI_NCCL_COLL) {
        pki_nccl_coll_v4 coll = coll_of_v2(&d->u.coll);
        read_coll(e, &coll);
    } else {
        read_shared(e, NULL, &d->u.p2p.v4, &d->u.proxy_op);
    }
    describe_context(e, &d->u.coll.name, &d->u.coll.hash, d->rank);
}

static void read_v3(pki_nccl_event *e, const pki_nccl_description_v3 *d)
{
    read_shared(e, &d->u.coll.v4, &d->u.p2p.v4, &d->u.proxy_op);
    if (e->type == PKI_NCCL_KERNEL_CH)
        e->channels = d->u.kernel_ch;
    else if (e->type == PKI_NCCL_NET)
        read_net(e, &d->u.net);
    describe_context(e, &d->u.coll.name, &d->u.coll.hash, d->rank);
}

static void read_v4(pki_nccl_event *e, const pki_nccl_description_v4 *d)
{
    read_shared(e, &d->u.coll, &d->u.p2p, &d->u.proxy_op);
    if (e->type == PKI_NCCL_KERNEL_CH)
        read_kernel(e, &d->u.kernel_ch);
    else if (e->type == PKI_NCCL_NET)
        read_net(e, &d->u.net);
}

static void read_task(pki_nccl_event *e, const pki_nccl_description_v6 *d)
{
    if (d->type == PKI_NCCL_COLL) {
        read_coll(e, &d->u.coll.v4);
        e->group = (uint64_t)(uintptr_t)d->u.coll.group;
    } else if (d->type == PKI_NCCL_P2P) {
        read_p2p(e, &d->u.p2p.v4);
        e->group = (uint64_t)(uintptr_t)d->u.p2p.group;
    } else {
        read_codes(e, d->u.ce.func, d->u.ce.type);
        e->sequence = d->u.ce.sequence;
        e->count = d->u.ce.count;
        e->peer = d->u.ce.root;
    }
}

static void read_v6(pki_nccl_event *e, const pki_nccl_description_v6 *d)
{
    switch (d->type) {
    case PKI_NCCL_COLL:
    case PKI_NCCL_P2P:
    case PKI_NCCL_CE_COLL:
        read_task(e, d);
        break;
    case PKI_NCCL_PROXY_OP:
        read_proxy(e, &d->u.proxy_op);
        break;
    case PKI_NCCL_KERNEL_CH:
        read_kernel(e, &d->u.kernel_ch);
        break;
    case PKI_NCCL_NET:
        read_net(e, &d->u.net);
        break;
    case PKI_NCCL_COLL_API:
        read_api(e, d->u.coll_api.func, d->u.coll_api.type, d->u.coll_api.count,
                 d->u.coll_api.captured);
        e->peer = d->u.coll_api.root;
        break;
    case PKI_NCCL_P2P_API:
        read_api(e, d->u.p2p_api.func, d->u.p2p_api.type, d->u.p2p_api.count,
                 d->u.p2p_api.captured);
        break;
    default:
        break;
    }
}

/* Version 5 is the beginning of version 6: what it does not know is not read. */
static void read_v5(pki_nccl_event *e, const pki_nccl_description_v5 *d)
{
    read_v6(e, (const pki_nccl_description_v6 *)(const void *)d);
}

/* ---- what NCCL calls ---- */

#define TYPES_V2                                                                                   \
    (PKI_NCCL_GROUP | PKI_NCCL_COLL | PKI_NCCL_P2P | PKI_NCCL_PROXY_OP | PKI_NCCL_PROXY_STEP |     \
     PKI_NCCL_PROXY_CTRL)
#define TYPES_V3 (TYPES_V2 | PKI_NCCL_KERNEL_CH | PKI_NCCL_NET)
#define TYPES_V4 TYPES_V3
#define TYPES_V5                                                                                   \
    (TYPES_V4 | PKI_NCCL_GROUP_API | PKI_NCCL_COLL_API | PKI_NCCL_P2P_API | PKI_NCCL_LAUNCH)
#define TYPES_V6 (TYPES_V5 | PKI_NCCL_CE_COLL)

static bool wanted(void *context, uint64_t type, uint64_t known)
{
    return pki_load_acquire(&pki_nccl_open.recording) && /* pairs with the release of a start */
           is_known(type, known, context);
}

#define START(V)                                                                                   \
    int pki_nccl_start_v##V(void *context, void **event, pki_nccl_description_v##V *d)             \
    {                                                                                              \
        uint64_t handle;                                                                           \
        *event = NULL;                                                                             \
        if (!wanted(context, d->type, TYPES_V##V))                                                 \
            return PKI_NCCL_SUCCESS;                                                               \
        pki_nccl_event *e = begin(&handle, context, d->type, d->parent);                           \
        if (!e)                                                                                    \
            return PKI_NCCL_SUCCESS;                                                               \
        read_v##V(e, d);                                                                           \
        return publish(event, handle);                                                             \
    }

PKI_NCCL_VERSIONS(START)

int pki_nccl_stop_event(void *event)
{
    uint64_t handle = (uint64_t)(uintptr_t)event;
    pki_nccl_event *e = pki_nccl_find(handle);
    if (!e || !pki_nccl_end(handle, e, pki_ticks(pki_nccl_open.monotonic)))
        pki_fetch_add(&pki_nccl_lost.stale, event != NULL);
    return PKI_NCCL_SUCCESS;
}

/* ---- states ---- */

static int wait_of(uint32_t state)
{
    switch (state) {
    case PKI_NCCL_SEND_GPU_WAIT:
    case PKI_NCCL_RECV_GPU_WAIT:
        return PKI_NCCL_FOR_GPU;
    case PKI_NCCL_SEND_PEER_WAIT:
        return PKI_NCCL_FOR_PEER;
    case PKI_NCCL_SEND_WAIT:
    case PKI_NCCL_RECV_WAIT:
    case PKI_NCCL_RECV_FLUSH_WAIT:
        return PKI_NCCL_FOR_NET;
    default:
        return -1;
    }
}

/* A state lasts until the next one, or until the event's end. */
void pki_nccl_leave_state(pki_nccl_event *e, uint64_t now)
{
    int wait = wait_of(pki_load(&e->state));
    uint64_t ticks = now - pki_load(&e->state_since);
    if (wait >= 0)
        pki_bump(&e->waits[wait], (uint32_t)PKI_MIN(ticks, (uint64_t)UINT32_MAX / 2));
}

static pki_nccl_event *change(void *event, int state)
{
    pki_nccl_event *e = pki_nccl_find((uint64_t)(uintptr_t)event);
    if (!e)
        return NULL;
    uint64_t now = pki_ticks(pki_nccl_open.monotonic);
    pki_nccl_leave_state(e, now);
    pki_store(&e->state_since, now);
    pki_store(&e->state, (uint32_t)state);
    return e;
}

/* Up to version 3 bytes are given for a whole operation, in states that later ones do not have. */
int pki_nccl_change_v2(void *event, int state, void *args)
{
    pki_nccl_event *e = change(event, state);
    if (e && args && e->type == PKI_NCCL_PROXY_OP && state < PKI_NCCL_SEND_GPU_WAIT)
        pki_store(&e->moved, ((const pki_nccl_state_v2 *)args)->proxy_op.bytes);
    return PKI_NCCL_SUCCESS;
}

int pki_nccl_change_v4(void *event, int state, void *args)
{
    const pki_nccl_state_v4 *with = args;
    pki_nccl_event *e = change(event, state);
    if (e && with && state == PKI_NCCL_KERNEL_STOP)
        pki_store(&e->stop_timer, with->timer);
    else if (e && with && e->type == PKI_NCCL_PROXY_STEP)
        pki_store(&e->moved, with->bytes);
    return PKI_NCCL_SUCCESS;
}

/* ---- communicators ---- */

/* Whether or not a session is open: the next one will want to know of it. */
static uint32_t open_comm(void **context, int *mask)
{
    uint32_t made = pki_nccl_pool_make() ? pki_nccl_context_open() : 0;
    *context = (void *)(uintptr_t)made;
    pki_nccl_codes_forget();
    pki_nccl_mask_at(mask);
    return made;
}

int pki_nccl_init_v2(void **context, int *mask)
{
    open_comm(context, mask);
    return PKI_NCCL_SUCCESS;
}

int pki_nccl_init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes,
                     int ranks, int rank, pki_nccl_logger *log)
{
    (void)log;
    pki_nccl_context_describe(open_comm(context, mask), name, hash, rank, ranks, nodes);
    return PKI_NCCL_SUCCESS;
}

int pki_nccl_init_v5(void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                     int rank, pki_nccl_logger *log)
{
    return pki_nccl_init_v4(context, mask, name, id, nodes, ranks, rank, log);
}

int pki_nccl_finalize_comm(void *context)
{
    pki_nccl_context_close((uint32_t)(uintptr_t)context);
    return PKI_NCCL_SUCCESS;
}

void pki_nccl_callbacks_after_fork(void)
{
    own_tid = 0;
}
