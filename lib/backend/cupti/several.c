/* lib/backend/cupti/several.c - CUPTI with several users (CUDA 13.3, driver r610)
 *
 * There each subscriber has buffers, kinds, a clock and external ids of its own, by calls that name
 * it; calls that do not are refused meanwhile, and whoever subscribes without allowing others is
 * alone. perfkit allows them where the library does. The functions in the table know then whose
 * they are, so nobody else has to.
 *
 * After NVIDIA's documentation of CUPTI 13.3 ("Multiple Subscribers"; what the attributes are
 * called, in the order of their numbers, is in the reference of the activity API): the header that
 * this is compiled with may be older. Not seen on a device.
 */
#include <stddef.h>
#include <stdint.h>

#include "backend/cupti/control.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/loader.h"

enum {
    ALL_WAITS = 16,    /* ..._ENABLE_ALL_SYNC_RECORDS, uint8_t */
    WHOLE_GRAPHS = 20, /* ..._ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE, uint8_t; for all subscribers */
    THREAD_IDS = 21,   /* ..._THREAD_ID_TYPE */
    CLOCK = 22         /* ..._TIMESTAMP_CALLBACK */
};

/* CUpti_SubscriberParams. */
typedef struct params {
    size_t size;
    const char *name;
    char *old_name;
    size_t old_size;
    uint8_t several;
    uint8_t padding[7];
} params;

typedef CUpti_SubscriberHandle handle;
typedef void requested(uint8_t **data, size_t *size, size_t *records_most, void *info);
typedef void completed(uint8_t *data, size_t size, size_t valid, void *info);

#define FUNCTIONS(F)                                                                               \
    F(SetAttribute, (handle, int attribute, size_t *size, void *value))                            \
    F(GetAttribute, (handle, int attribute, size_t *size, void *value))                            \
    F(RegisterCallbacks, (handle, requested *, completed *))                                       \
    F(Enable, (handle, CUpti_ActivityKind, void *config))                                          \
    F(Disable, (handle, CUpti_ActivityKind, void *config))                                         \
    F(EnableRuntimeApi, (handle, CUpti_CallbackId, uint8_t on))                                    \
    F(EnableDriverApi, (handle, CUpti_CallbackId, uint8_t on))                                     \
    F(GetNextRecord, (handle, uint8_t * data, size_t valid, CUpti_Activity **))                    \
    F(GetNumDroppedRecords, (handle, CUcontext, uint32_t stream, size_t *))                        \
    F(PushExternalCorrelationId, (handle, CUpti_ExternalCorrelationKind, uint64_t))                \
    F(PopExternalCorrelationId, (handle, CUpti_ExternalCorrelationKind, uint64_t *))

#define MEMBER(name, parameters) CUptiResult(CUPTIAPI *name) parameters;
typedef struct table {
    FUNCTIONS(MEMBER)
} table;

#define ENTRY(name, parameters) PKI_DL_FUNCTION(table, name, "cuptiActivity" #name "_v2", false),
static const pki_dl_function functions[] = {FUNCTIONS(ENTRY)};

CUpti_SubscriberHandle pki_cupti_one;

static table ours;              /* of a subscriber */
static pki_cupti_table process; /* of the process */

static CUptiResult set(handle h, int attribute, size_t size, void *value)
{
    return ours.SetAttribute(h, attribute, &size, value);
}

static uint64_t CUPTIAPI our_clock(void)
{
    return pki_monotonic_ns();
}

/* -- taking it -- */

/* And it says so: the attribute's number is what it is taken for. */
static bool takes_clock(handle h)
{
    CUpti_TimestampCallbackFunc clock = our_clock, taken = NULL;
    size_t size = sizeof taken;
    return set(h, CLOCK, sizeof clock, &clock) == CUPTI_SUCCESS &&
           ours.GetAttribute(h, CLOCK, &size, &taken) == CUPTI_SUCCESS && taken == our_clock;
}

/* Alone, with the process's calls, if the others are refused, or the clock is. */
static CUptiResult CUPTIAPI subscribe(handle *out, CUpti_CallbackFunc called, void *user,
                                      CUpti_SubscriberParams *alone)
{
    params p = {.size = sizeof p,
                .name = alone->subscriberName,
                .old_name = alone->oldSubscriberName,
                .old_size = alone->oldSubscriberSize,
                .several = 1};
    CUptiResult result = process.Subscribe_v2(out, called, user, (void *)&p);
    if (result == CUPTI_SUCCESS && !takes_clock(*out)) {
        process.Unsubscribe(*out);
        result = CUPTI_ERROR_NOT_SUPPORTED;
    }
    if (result != CUPTI_SUCCESS)
        return process.Subscribe_v2(out, called, user, alone);
    pki_store(&pki_cupti_one, *out);
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI unsubscribe(handle h)
{
    pki_store(&pki_cupti_one, NULL);
    return process.Unsubscribe(h);
}

/* -- what is set -- */

static CUptiResult CUPTIAPI set_attribute(CUpti_ActivityAttribute attribute, size_t *size,
                                          void *value)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? ours.SetAttribute(h, (int)attribute, size, value)
             : process.ActivitySetAttribute(attribute, size, value);
}

static CUptiResult CUPTIAPI set_thread_ids(CUpti_ActivityThreadIdType type)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? set(h, THREAD_IDS, sizeof type, &type) : process.SetThreadIdType(type);
}

static CUptiResult CUPTIAPI set_all_waits(uint8_t on)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? set(h, ALL_WAITS, sizeof on, &on) : process.ActivityEnableAllSyncRecords(on);
}

/* It has it since it subscribed. */
static CUptiResult CUPTIAPI set_clock(CUpti_TimestampCallbackFunc clock)
{
    return pki_load(&pki_cupti_one) ? CUPTI_SUCCESS
                                    : process.ActivityRegisterTimestampCallback(clock);
}

static void CUPTIAPI request(uint8_t **data, size_t *size, size_t *records_most, void *info)
{
    (void)info;
    pki_cupti_buffer_requested(data, size, records_most);
}

static void CUPTIAPI complete(uint8_t *data, size_t size, size_t valid, void *info)
{
    (void)info;
    pki_cupti_buffer_completed(NULL, 0, data, size, valid);
}

static CUptiResult CUPTIAPI register_buffers(CUpti_BuffersCallbackRequestFunc first,
                                             CUpti_BuffersCallbackCompleteFunc second)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? ours.RegisterCallbacks(h, request, complete)
             : process.ActivityRegisterCallbacks(first, second);
}

/* -- kinds -- */

/* Graphs as wholes or node by node is for all of them: as whoever says so before anybody has
 * enabled anything. */
static CUptiResult CUPTIAPI enable(CUpti_ActivityKind kind)
{
    handle h = pki_load(&pki_cupti_one);
    uint8_t whole = 1;
    if (h && kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE)
        set(h, WHOLE_GRAPHS, sizeof whole, &whole);
    return h ? ours.Enable(h, kind, NULL) : process.ActivityEnable(kind);
}

static CUptiResult CUPTIAPI disable(CUpti_ActivityKind kind)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? ours.Disable(h, kind, NULL) : process.ActivityDisable(kind);
}

static CUptiResult CUPTIAPI enable_runtime(CUpti_CallbackId id, uint8_t on)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? ours.EnableRuntimeApi(h, id, on) : process.ActivityEnableRuntimeApi(id, on);
}

static CUptiResult CUPTIAPI enable_driver(CUpti_CallbackId id, uint8_t on)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? ours.EnableDriverApi(h, id, on) : process.ActivityEnableDriverApi(id, on);
}

/* -- records, and what calls are told with -- */

static CUptiResult CUPTIAPI next_record(uint8_t *data, size_t valid, CUpti_Activity **record)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? ours.GetNextRecord(h, data, valid, record)
             : process.ActivityGetNextRecord(data, valid, record);
}

static CUptiResult CUPTIAPI dropped(CUcontext context, uint32_t stream, size_t *count)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? ours.GetNumDroppedRecords(h, context, stream, count)
             : process.ActivityGetNumDroppedRecords(context, stream, count);
}

static CUptiResult CUPTIAPI push(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? ours.PushExternalCorrelationId(h, kind, id)
             : process.ActivityPushExternalCorrelationId(kind, id);
}

static CUptiResult CUPTIAPI pop(CUpti_ExternalCorrelationKind kind, uint64_t *last)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? ours.PopExternalCorrelationId(h, kind, last)
             : process.ActivityPopExternalCorrelationId(kind, last);
}

void pki_cupti_several_find(void *library, pki_cupti_table *t)
{
    char missing[128];
    process = *t;
    if (!t->Subscribe_v2 || !t->ActivityEnableRuntimeApi || !t->ActivityEnableDriverApi ||
        !t->ActivityEnableAllSyncRecords ||
        !pki_dl_bind(library, functions, PKI_COUNT_OF(functions), &ours, missing, sizeof missing))
        return;
    t->Subscribe_v2 = subscribe;
    t->Unsubscribe = unsubscribe;
    t->SetThreadIdType = set_thread_ids;
    t->ActivitySetAttribute = set_attribute;
    t->ActivityRegisterCallbacks = register_buffers;
    t->ActivityRegisterTimestampCallback = set_clock;
    t->ActivityEnable = enable;
    t->ActivityDisable = disable;
    t->ActivityEnableRuntimeApi = enable_runtime;
    t->ActivityEnableDriverApi = enable_driver;
    t->ActivityEnableAllSyncRecords = set_all_waits;
    t->ActivityGetNextRecord = next_record;
    t->ActivityGetNumDroppedRecords = dropped;
    t->ActivityPushExternalCorrelationId = push;
    t->ActivityPopExternalCorrelationId = pop;
}
