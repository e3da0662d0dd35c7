/* lib/comm/plugin/callbacks.c - what NCCL calls and is asked for, its communicators, and where its
 * events wait for the collector */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "comm/plugin/plugin.h"
#include "core/thread.h"

/* ---- which events NCCL is asked for ---- */

pki_nccl_contexts pki_nccl_comms;

/* It has one mask for the process, which it hands out at each communicator's init and reads as a
 * group begins; so it can be turned off between sessions, as long as there is a communicator:
 * without one NCCL may have been unloaded. */

/* All but what costs by the byte. */
#define ALWAYS                                                                                     \
    (PKI_NCCL_GROUP | PKI_NCCL_COLL | PKI_NCCL_P2P | PKI_NCCL_PROXY_OP | PKI_NCCL_GROUP_API |      \
     PKI_NCCL_COLL_API | PKI_NCCL_P2P_API | PKI_NCCL_LAUNCH | PKI_NCCL_CE_COLL)
#define STEPS (PKI_NCCL_PROXY_STEP | PKI_NCCL_PROXY_CTRL | PKI_NCCL_NET)

int pki_nccl_mask = ALWAYS;
static int *its_mask;
static bool on;

static bool is_set(const char *name)
{
    const char *text = secure_getenv(name);
    return text && strcmp(text, "1") == 0;
}

/* What the environment asks for (PK_NCCL_KERNEL_CH, PK_NCCL_PROXY_STEPS). */
static void choose(void)
{
    int mask = ALWAYS;
    mask |= is_set("PK_NCCL_KERNEL_CH") ? PKI_NCCL_KERNEL_CH : 0;
    mask |= is_set("PK_NCCL_PROXY_STEPS") ? STEPS : 0;
    pki_store(&pki_nccl_mask, mask);
}

static void mask_at(int *mask)
{
    if (!mask)
        return;
    pki_store(&its_mask, mask);
    pki_store(mask, pki_load(&on) ? pki_load(&pki_nccl_mask) : 0);
}

void pki_nccl_ask(bool now_on)
{
    int *mask = pki_load(&its_mask);
    if (now_on)
        choose();
    pki_store(&on, now_on);
    if (mask && pki_load(&pki_nccl_comms.live) > 0)
        pki_store(mask, now_on ? pki_load(&pki_nccl_mask) : 0);
}

/* ---- NCCL's communicators, as its profiler interface describes them ---- */

static pki_nccl_context comms[PKI_NCCL_CONTEXTS];

/* Never 0, and never the same again before 2^22 others have been there. */
static uint32_t next_context(const pki_nccl_context *c, uint32_t index)
{
    uint32_t n = (c->handle & ~(PKI_NCCL_CONTEXTS - 1u)) + PKI_NCCL_CONTEXTS;
    return (n ? n : PKI_NCCL_CONTEXTS) | index;
}

static bool claim_context(pki_nccl_context *c)
{
    uint32_t none = PKI_NCCL_CONTEXT_FREE;
    return pki_load(&c->state) == none &&
           __atomic_compare_exchange_n(&c->state, &none, PKI_NCCL_CONTEXT_CLAIMED, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* All but the state, which others look at meanwhile. */
static void clear_context(pki_nccl_context *c, uint32_t context)
{
    c->handle = context;
    c->described = 0;
    c->rank = -1;
    c->ranks = c->nodes = 0;
    c->id = 0;
    memset(c->name, 0, sizeof c->name);
}

static uint32_t context_open(void)
{
    for (uint32_t i = 0; i < PKI_NCCL_CONTEXTS; i++) {
        pki_nccl_context *c = &comms[i];
        if (!claim_context(c))
            continue;
        uint32_t context = next_context(c, i);
        clear_context(c, context);
        pki_store_release(&c->state, PKI_NCCL_CONTEXT_LIVE); /* pairs with pki_nccl_context_at */
        if (pki_fetch_add(&pki_nccl_comms.live, 1) == 0)
            pki_bell_ring(&pki_collector_bell); /* which was idle */
        return context;
    }
    pki_fetch_add(&pki_nccl_comms.refused, 1);
    return 0;
}

pki_nccl_context *pki_nccl_context_at(uint32_t index)
{
    uint32_t state = pki_load_acquire(&comms[index].state); /* pairs with open, and with close */
    return state == PKI_NCCL_CONTEXT_LIVE || state == PKI_NCCL_CONTEXT_GONE ? &comms[index] : NULL;
}

static pki_nccl_context *find_context(uint32_t context)
{
    pki_nccl_context *c = context ? pki_nccl_context_at(pki_nccl_context_index(context)) : NULL;
    return c && c->handle == context && pki_load(&c->state) == PKI_NCCL_CONTEXT_LIVE ? c : NULL;
}

static void context_describe(uint32_t context, const char *name, uint64_t id, int32_t rank,
                             int32_t ranks, int32_t nodes)
{
    pki_nccl_context *c = find_context(context);
    uint32_t undescribed = 0;
    if (!c || !__atomic_compare_exchange_n(&c->described, &undescribed, 1, false, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED))
        return;
    size_t n = name ? strnlen(name, sizeof c->name - 1) : 0;
    memcpy(c->name, n ? name : "", n);
    c->id = id;
    c->rank = rank;
    c->ranks = ranks;
    c->nodes = nodes;
    pki_store_release(&c->described, 2); /* pairs with the collector's acquire */
}

static void context_close(uint32_t context)
{
    pki_nccl_context *c = find_context(context);
    uint32_t open = PKI_NCCL_CONTEXT_LIVE;
    if (c && __atomic_compare_exchange_n(&c->state, &open, PKI_NCCL_CONTEXT_GONE, false,
                                         __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        __atomic_sub_fetch(&pki_nccl_comms.live, 1, __ATOMIC_RELAXED);
}

/* ---- where NCCL's events wait for the collector ---- */

static inline void pki_nccl_publish(uint64_t handle)
{
    pki_store_release(&pki_nccl_the_pool()->heads[pki_nccl_place(handle)],
                      pki_nccl_head(handle, PKI_NCCL_OPEN));
}

/* Is the event of this handle open? NULL: it is not, or never was. */
static inline pki_nccl_event *pki_nccl_find(uint64_t handle)
{
    pki_nccl_pool *pool = pki_load_acquire(&pki_nccl_open.pool); /* pairs with its making */
    uint32_t place = pki_nccl_place(handle);
    bool open = pool && pki_load(&pool->heads[place]) == pki_nccl_head(handle, PKI_NCCL_OPEN);
    return open ? &pool->events[place] : NULL;
}

#define AHEAD 4 /* turns, in a pool larger than caches are */

pki_nccl_gate pki_nccl_open;
pki_nccl_losses pki_nccl_lost;

_Static_assert(PKI_NCCL_PLACES <= UINT16_MAX + 1, "a place is 16 bits");

/* Makes the pool if there is none; its pages are taken here, not in a callback. False without
 * memory. */
static bool make_pool(void)
{
    if (pki_load_acquire(&pki_nccl_open.pool)) /* pairs with the release below */
        return true;
    pki_nccl_pool *pool = NULL, *none = NULL;
    pki_store(&pki_nccl_open.pid, (int32_t)getpid());
    if (posix_memalign((void **)&pool, PKI_LINE, sizeof *pool) != 0)
        return false;
    memset(pool, 0, sizeof *pool);
    for (uint32_t i = 0; i < PKI_NCCL_PLACES; i++) {
        pool->heads[i] = pki_nccl_head(i, PKI_NCCL_FREE);
        pool->turns[i] = (uint16_t)i;
    }
    pool->given = PKI_NCCL_PLACES;
    if (!__atomic_compare_exchange_n(&pki_nccl_open.pool, &none, pool, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        free(pool);
    return true;
}

static pki_nccl_event *event_of(pki_nccl_pool *pool, uint64_t turn)
{
    return &pool->events[pki_load(pki_nccl_turn(pool, turn))];
}

/* A place, claimed, and its handle. NULL: the pool is full, which is counted. */
/* Who loses a turn to another thread looks again. */
static pki_nccl_event *pki_nccl_claim(uint64_t *handle)
{
    pki_nccl_pool *pool = pki_load_acquire(&pki_nccl_open.pool); /* pairs with its making */
    uint64_t turn = pool ? pki_load(&pool->taken) : 0;
    while (pool && turn != pki_load_acquire(&pool->given)) { /* pairs with release's release */
        uint32_t place = pki_load(pki_nccl_turn(pool, turn));
        if (!__atomic_compare_exchange_n(&pool->taken, &turn, turn + 1, false, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED))
            continue;
        *handle = (pki_load(&pool->heads[place]) >> 2) + PKI_NCCL_PLACES;
        __builtin_prefetch(event_of(pool, turn + AHEAD), 1);
        __builtin_prefetch((char *)event_of(pool, turn + AHEAD) + PKI_LINE, 1);
        return &pool->events[place];
    }
    pki_fetch_add(&pki_nccl_lost.dropped, 1);
    return NULL;
}

/* It has ended at this tick. False: somebody else has ended it. */
static bool pki_nccl_end(uint64_t handle, pki_nccl_event *event, uint64_t ticks)
{
    uint64_t open = pki_nccl_head(handle, PKI_NCCL_OPEN);
    uint64_t *head = &pki_nccl_the_pool()->heads[pki_nccl_place(handle)];
    pki_store(&event->stop, ticks);
    return __atomic_compare_exchange_n(head, &open, pki_nccl_head(handle, PKI_NCCL_STOPPED), false,
                                       __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* ---- what is in the pool: for the collector ---- */

/* Has this turn been taken, and which place is it? Whoever asks has seen all turns before it, and
 * not given back this one's: so it still stands where it stood.
 *
 * A turn's slot is written anew when as many places have come back as there were turns until then.
 */
static bool is_claimed(uint64_t turn, uint32_t *place)
{
    pki_nccl_pool *pool = pki_nccl_the_pool();
    *place = *pki_nccl_turn(pool, turn);
    return turn != pki_load(&pool->taken);
}

static struct memory {
    pki_nccl_item items[PKI_NCCL_PLACES];
    uint64_t out[PKI_NCCL_PLACES]; /* handles that have been given away, oldest first */
    uint32_t out_count;
    uint64_t turn; /* the first that has not been looked at */
} * kept;          /* for the process's life, from the first round with a pool on */

static bool has_memory(void)
{
    if (!kept)
        kept = calloc(1, sizeof *kept);
    return kept != NULL;
}

/* False: it has been freed since the last round. */
static bool add_if_live(uint64_t handle, uint32_t *count)
{
    uint64_t word = pki_nccl_word_at(pki_nccl_place(handle));
    bool there = word >> 2 == handle && (word & 3) != PKI_NCCL_FREE;
    if (there)
        kept->items[(*count)++] = (pki_nccl_item){handle, (word & 3) == PKI_NCCL_STOPPED};
    return there || word >> 2 < handle;
}

static void see_old(uint32_t *count)
{
    uint32_t still = 0;
    for (uint32_t i = 0; i < kept->out_count; i++)
        if (add_if_live(kept->out[i], count))
            kept->out[still++] = kept->out[i];
    kept->out_count = still;
}

/* Of one that is not published yet the place still says what the event before it was. */
static void see_new(uint32_t *count)
{
    uint32_t place;
    for (; is_claimed(kept->turn, &place); kept->turn++) {
        uint64_t word = pki_nccl_word_at(place);
        uint64_t unpublished = (word & 3) == PKI_NCCL_FREE ? PKI_NCCL_PLACES : 0;
        uint64_t handle = (word >> 2) + unpublished;
        kept->out[kept->out_count++] = handle;
        add_if_live(handle, count);
    }
}

const pki_nccl_item *pki_nccl_list_events(uint32_t *count)
{
    *count = 0;
    if (!pki_load_acquire(&pki_nccl_open.pool) || !has_memory()) /* pairs with its making */
        return NULL;
    see_old(count);
    see_new(count);
    return kept->items;
}

/* ---- an event of NCCL's, in numbers; what one of an unknown type says is not looked at ---- */

static _Thread_local uint32_t own_tid;

static PKI_NOINLINE uint32_t read_tid(void)
{
    own_tid = (uint32_t)syscall(SYS_gettid);
    return own_tid;
}

#define OPERATIONS (PKI_NCCL_COLL | PKI_NCCL_P2P | PKI_NCCL_CE_COLL)

/* What all descriptions begin with. */
static pki_nccl_event *begin(uint64_t *handle, void *context, uint64_t type, void *parent)
{
    pki_nccl_event *e = pki_nccl_claim(handle);
    if (!e) {
        pki_fetch_add(&pki_nccl_lost.operations, (type & OPERATIONS) != 0);
        return NULL;
    }
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
        context_describe(e->context, *name, *hash, rank, 0, 0);
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

static void forget_words(void)
{
    for (int i = 0; i < PKI_NCCL_SEEN; i++)
        pki_store(&pki_nccl_seen[i], 0);
}

/* Whether or not a session is open: the next one will want to know of it. */
static uint32_t open_comm(void **context, int *mask)
{
    uint32_t made = make_pool() ? context_open() : 0;
    *context = (void *)(uintptr_t)made;
    forget_words();
    mask_at(mask);
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
    context_describe(open_comm(context, mask), name, hash, rank, ranks, nodes);
    return PKI_NCCL_SUCCESS;
}

int pki_nccl_init_v5(void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                     int rank, pki_nccl_logger *log)
{
    return pki_nccl_init_v4(context, mask, name, id, nodes, ranks, rank, log);
}

int pki_nccl_finalize_comm(void *context)
{
    context_close((uint32_t)(uintptr_t)context);
    return PKI_NCCL_SUCCESS;
}

/* The child's NCCL, if it has one, starts anew; what the parent had open stays the parent's. */
void pki_nccl_callbacks_after_fork(void)
{
    pki_nccl_open.recording = 0;
    pki_nccl_open.pool = NULL;
    memset(&pki_nccl_lost, 0, sizeof pki_nccl_lost);
    own_tid = 0;
    kept = NULL;
    its_mask = NULL;
    on = false;
    for (uint32_t i = 0; i < PKI_NCCL_CONTEXTS; i++) /* used up: its NCCL may still hold one */
        comms[i].state = PKI_NCCL_CONTEXT_FREE;
    pki_nccl_comms = (pki_nccl_contexts){0, 0};
}
