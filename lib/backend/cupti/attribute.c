#include "backend/cupti/attribute.h"

#include "backend/cupti/callers.h"
#include "backend/cupti/calls.h"
#include "backend/cupti/queries.h"
#include "core/innermost.h"
#include "core/names.h"
#include "core/thread.h"
#include "session/activity.h"

#define ID_BITS 16
#define TICK_BITS 48

_Static_assert(PKI_NAMES_MAX <= 1 << ID_BITS, "a name's id fits");

/* Odd while callbacks are to be used; grows with each switch, so that a thread knows what it has
 * left on its stack in an earlier time. */
static uint32_t epoch;

static bool noting; /* who allocates */

typedef struct mine {
    uint32_t epoch;
    uint32_t depth;  /* of calls that CUPTI called back for and that have not ended */
    uint32_t pushed; /* ids of ours on this thread's stack: 0 or 1 */
} mine;

static _Thread_local mine self;

/* 0: no region is open here. */
static uint64_t id_of_here(void)
{
    const pki_thread *t = pki_self;
    if (!pki_thread_is_joined(t) || pki_load(&t->ended))
        return 0;
    unsigned depth = pki_depth_in(pki_load(&t->state));
    if (depth == 0)
        return 0;
    const pki_frame *f = &t->frames[depth];
    return (uint64_t)(pki_load(&f->id) & PKI_FRAME_ID) | pki_load(&f->start) << ID_BITS;
}

static void pop(mine *m)
{
    if (m->pushed)
        pki_cupti.ActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, NULL);
    m->pushed = 0;
}

static void push(mine *m)
{
    uint64_t id = id_of_here();
    if (id && pki_cupti.ActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2,
                                                          id) == CUPTI_SUCCESS)
        m->pushed = 1;
}

/* A call of the runtime makes calls of the driver: only the outermost counts. An end whose
 * beginning was not told of is not ours. */
void CUPTIAPI pki_cupti_called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                               const void *data)
{
    const CUpti_CallbackData *call = data;
    uint32_t now = pki_load(&epoch);
    mine *m = &self;
    unsigned traits = pki_cupti_call_of(domain, id)->traits;
    (void)user;
    if (traits & PKI_CUPTI_ALLOCATES) {
        if (call->callbackSite == CUPTI_API_ENTER && pki_load(&noting))
            pki_cupti_caller_note(call->correlationId, pki_innermost_region());
        return;
    }
    if (!(now & 1) && !m->pushed)
        return;
    if (traits & PKI_CUPTI_ASKS) {
        pki_cupti_query_note(call->correlationId);
        return;
    }
    if (m->epoch != now) {
        pop(m);
        *m = (mine){.epoch = now};
    }
    if (!(now & 1))
        return;
    if (call->callbackSite == CUPTI_API_ENTER) {
        if (m->depth++ == 0)
            push(m);
    } else if (m->depth > 0 && --m->depth == 0) {
        pop(m);
    }
}

static unsigned enable(CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                       unsigned wanted, bool on)
{
    unsigned refused = 0;
    for (uint32_t id = 1; id < pki_cupti_calls_count(domain); id++)
        if (pki_cupti_call_of(domain, id)->traits & wanted)
            refused += pki_cupti.EnableCallback(on, subscriber, domain, id) != CUPTI_SUCCESS;
    return refused;
}

/* The runtime's questions are put by the driver's. */
static unsigned enable_all(CUpti_SubscriberHandle subscriber, bool on)
{
    unsigned wanted = PKI_CUPTI_LAUNCHES | PKI_CUPTI_WAITS;
    return enable(subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, wanted, on) +
           enable(subscriber, CUPTI_CB_DOMAIN_DRIVER_API, wanted | PKI_CUPTI_ASKS, on);
}

unsigned pki_cupti_attribute_on(CUpti_SubscriberHandle subscriber)
{
    if (!(pki_load(&epoch) & 1))
        pki_fetch_add(&epoch, 1u);
    return enable_all(subscriber, true);
}

void pki_cupti_attribute_drop(CUpti_SubscriberHandle subscriber)
{
    enable_all(subscriber, false);
}

unsigned pki_cupti_attribute_memory(CUpti_SubscriberHandle subscriber, bool on)
{
    pki_store(&noting, on);
    return enable(subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, PKI_CUPTI_ALLOCATES, on) +
           enable(subscriber, CUPTI_CB_DOMAIN_DRIVER_API, PKI_CUPTI_ALLOCATES, on);
}

void pki_cupti_attribute_off(void)
{
    if (pki_load(&epoch) & 1)
        pki_fetch_add(&epoch, 1u);
}

void pki_cupti_attribute_after_fork(void)
{
    pki_cupti_attribute_off();
    pki_store(&noting, false);
}

uint32_t pki_cupti_region_of(uint64_t id)
{
    return (uint32_t)(id & ((1u << ID_BITS) - 1));
}

/* When its region began: the lower bits of a tick that was not long ago, 26 hours at 3 GHz. */
static uint64_t began_of(uint64_t id)
{
    uint64_t now = pki_activity_ticks();
    uint64_t ago = (now - (id >> ID_BITS)) & (((uint64_t)1 << TICK_BITS) - 1);
    return pki_activity_ns_of_ticks(now - ago);
}

uint64_t pki_cupti_shown_id(uint64_t id)
{
    uint64_t us = began_of(id) / 1000;
    return pki_cupti_region_of(id) | (us & (((uint64_t)1 << (53 - ID_BITS)) - 1)) << ID_BITS;
}
