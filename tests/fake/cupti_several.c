/* Several subscribers, as CUPTI has them since CUDA 13.3: calls that name who makes them. perfkit
 * (by its name) is the one whose state is fake_inside; one other tool beside it gets a copy of each
 * record of the kinds that it has enabled, in a buffer of its own. */
#include "cupti_state.h"

#include <string.h>

enum { GRAPHS = 20, THREADS = 21, CLOCK = 22 };

typedef struct params {
    size_t size;
    const char *name;
    char *old_name;
    size_t old_size;
    uint8_t several;
} params;

typedef void requested(uint8_t **data, size_t *size, size_t *most, void *info);
typedef void completed(uint8_t *data, size_t size, size_t valid, void *info);

static struct {
    bool there;
    requested *request;
    completed *complete;
    uint64_t enabled;
} other;

static requested *our_request;
static completed *our_complete;

static CUpti_SubscriberHandle handle_of(void *state)
{
    return state;
}

static bool is_ours(CUpti_SubscriberHandle h)
{
    if (h != handle_of(&fake_inside) && h != handle_of(&other))
        fake_misused("a call for a subscriber that there is not");
    return h == handle_of(&fake_inside);
}

void fake_several_reset(void)
{
    memset(&other, 0, sizeof other);
}

/* 39: the request cannot be fulfilled, or somebody wants it alone. */
CUptiResult fake_subscribe_one(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback, void *user,
                               const void *given, bool *handled)
{
    const params *p = given;
    bool several = p->size > offsetof(params, several) && p->several;
    bool ours = p->name && strcmp(p->name, "perfkit") == 0;
    *handled = several || other.there || fake_get(fake_inside.several);
    if (!*handled)
        return CUPTI_SUCCESS;
    fake_note(several ? "subscribe_one" : "subscribe_alone", -1);
    bool alone = fake_get(fake_inside.callback) && !fake_get(fake_inside.several);
    if (!several || !fake.several || alone)
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    *out = ours ? handle_of(&fake_inside) : handle_of(&other);
    if (ours) {
        fake_inside.user = user;
        fake_set(fake_inside.several, true);
        __atomic_store_n(&fake_inside.callback, callback, __ATOMIC_RELEASE);
    } else {
        fake_set(other.there, true);
    }
    return CUPTI_SUCCESS;
}

/* False: it is the first one's. */
bool fake_unsubscribe_other(CUpti_SubscriberHandle h)
{
    if (h != handle_of(&other))
        return false;
    fake_several_reset();
    return true;
}

bool fake_other_wants(CUpti_ActivityKind kind)
{
    return fake_get(other.enabled) >> kind & 1;
}

void fake_tell_other(const CUpti_Activity *record, size_t bytes)
{
    uint8_t *data = NULL;
    size_t size = 0, most = 0;
    if (!fake_other_wants(record->kind))
        return;
    other.request(&data, &size, &most, NULL);
    if (data && size >= bytes)
        memcpy(data, record, bytes);
    other.complete(data, size, data && size >= bytes ? bytes : 0, NULL);
}

static void request(uint8_t **data, size_t *size, size_t *most)
{
    our_request(data, size, most, NULL);
}

static void complete(CUcontext context, uint32_t stream, uint8_t *data, size_t size, size_t valid)
{
    (void)context, (void)stream;
    our_complete(data, size, valid, NULL);
}

/* The process's call, which is refused elsewhere. */
#define AS_ONE(call)                                                                               \
    fake_as_one = true;                                                                            \
    CUptiResult result = call;                                                                     \
    fake_as_one = false;                                                                           \
    return result

CUptiResult cuptiActivitySetAttribute_v2(CUpti_SubscriberHandle h, int attribute, size_t *size,
                                         void *value);
CUptiResult cuptiActivitySetAttribute_v2(CUpti_SubscriberHandle h, int attribute, size_t *size,
                                         void *value)
{
    if (!is_ours(h))
        return CUPTI_SUCCESS;
    if (attribute == GRAPHS && (fake.enabled || fake_get(other.enabled)))
        return CUPTI_ERROR_NOT_SUPPORTED; /* it has been settled */
    if (attribute == CLOCK) {
        fake_note("clock_of_one", -1);
        if (*size != sizeof fake_inside.clock || fake.register_clock)
            return CUPTI_ERROR_INVALID_PARAMETER;
        CUpti_TimestampCallbackFunc clock;
        memcpy(&clock, value, sizeof clock);
        fake_set(fake_inside.clock, clock);
        return CUPTI_SUCCESS;
    }
    if (attribute > GRAPHS - 10) {
        fake_note("attribute", attribute);
        return *size == (attribute == THREADS ? 4 : 1) ? CUPTI_SUCCESS
                                                       : CUPTI_ERROR_INVALID_PARAMETER;
    }
    AS_ONE(cuptiActivitySetAttribute((CUpti_ActivityAttribute)attribute, size, value));
}

CUptiResult cuptiActivityGetAttribute_v2(CUpti_SubscriberHandle h, int attribute, size_t *size,
                                         void *value);
CUptiResult cuptiActivityGetAttribute_v2(CUpti_SubscriberHandle h, int attribute, size_t *size,
                                         void *value)
{
    CUpti_TimestampCallbackFunc clock = fake.forgets_clock ? NULL : fake_get(fake_inside.clock);
    if (!is_ours(h) || attribute != CLOCK || *size != sizeof clock)
        return CUPTI_ERROR_INVALID_PARAMETER;
    memcpy(value, &clock, sizeof clock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks_v2(CUpti_SubscriberHandle h, requested *first,
                                              completed *second);
CUptiResult cuptiActivityRegisterCallbacks_v2(CUpti_SubscriberHandle h, requested *first,
                                              completed *second)
{
    if (!is_ours(h)) {
        other.request = first;
        other.complete = second;
        return CUPTI_SUCCESS;
    }
    our_request = first;
    our_complete = second;
    AS_ONE(cuptiActivityRegisterCallbacks(request, complete));
}

CUptiResult cuptiActivityEnable_v2(CUpti_SubscriberHandle h, CUpti_ActivityKind kind, void *config);
CUptiResult cuptiActivityEnable_v2(CUpti_SubscriberHandle h, CUpti_ActivityKind kind, void *config)
{
    if (!is_ours(h)) {
        __atomic_fetch_or(&other.enabled, (uint64_t)1 << kind, __ATOMIC_SEQ_CST);
        return CUPTI_SUCCESS;
    }
    AS_ONE(config ? CUPTI_ERROR_INVALID_PARAMETER : cuptiActivityEnable(kind));
}

CUptiResult cuptiActivityDisable_v2(CUpti_SubscriberHandle h, CUpti_ActivityKind kind,
                                    void *config);
CUptiResult cuptiActivityDisable_v2(CUpti_SubscriberHandle h, CUpti_ActivityKind kind, void *config)
{
    (void)config;
    if (!is_ours(h)) {
        __atomic_fetch_and(&other.enabled, ~((uint64_t)1 << kind), __ATOMIC_SEQ_CST);
        return CUPTI_SUCCESS;
    }
    AS_ONE(cuptiActivityDisable(kind));
}

CUptiResult cuptiActivityEnableRuntimeApi_v2(CUpti_SubscriberHandle h, CUpti_CallbackId id,
                                             uint8_t on);
CUptiResult cuptiActivityEnableRuntimeApi_v2(CUpti_SubscriberHandle h, CUpti_CallbackId id,
                                             uint8_t on)
{
    if (!is_ours(h))
        return CUPTI_SUCCESS;
    AS_ONE(cuptiActivityEnableRuntimeApi(id, on));
}

CUptiResult cuptiActivityEnableDriverApi_v2(CUpti_SubscriberHandle h, CUpti_CallbackId id,
                                            uint8_t on);
CUptiResult cuptiActivityEnableDriverApi_v2(CUpti_SubscriberHandle h, CUpti_CallbackId id,
                                            uint8_t on)
{
    if (!is_ours(h))
        return CUPTI_SUCCESS;
    AS_ONE(cuptiActivityEnableDriverApi(id, on));
}

CUptiResult cuptiActivityGetNextRecord_v2(CUpti_SubscriberHandle h, uint8_t *data, size_t valid,
                                          CUpti_Activity **record);
CUptiResult cuptiActivityGetNextRecord_v2(CUpti_SubscriberHandle h, uint8_t *data, size_t valid,
                                          CUpti_Activity **record)
{
    is_ours(h);
    AS_ONE(cuptiActivityGetNextRecord(data, valid, record));
}

CUptiResult cuptiActivityGetNumDroppedRecords_v2(CUpti_SubscriberHandle h, CUcontext context,
                                                 uint32_t stream, size_t *dropped);
CUptiResult cuptiActivityGetNumDroppedRecords_v2(CUpti_SubscriberHandle h, CUcontext context,
                                                 uint32_t stream, size_t *dropped)
{
    if (!is_ours(h))
        return CUPTI_SUCCESS;
    AS_ONE(cuptiActivityGetNumDroppedRecords(context, stream, dropped));
}

CUptiResult cuptiActivityPushExternalCorrelationId_v2(CUpti_SubscriberHandle h,
                                                      CUpti_ExternalCorrelationKind kind,
                                                      uint64_t id);
CUptiResult cuptiActivityPushExternalCorrelationId_v2(CUpti_SubscriberHandle h,
                                                      CUpti_ExternalCorrelationKind kind,
                                                      uint64_t id)
{
    if (!is_ours(h))
        return CUPTI_SUCCESS;
    AS_ONE(cuptiActivityPushExternalCorrelationId(kind, id));
}

CUptiResult cuptiActivityPopExternalCorrelationId_v2(CUpti_SubscriberHandle h,
                                                     CUpti_ExternalCorrelationKind kind,
                                                     uint64_t *last);
CUptiResult cuptiActivityPopExternalCorrelationId_v2(CUpti_SubscriberHandle h,
                                                     CUpti_ExternalCorrelationKind kind,
                                                     uint64_t *last)
{
    if (!is_ours(h))
        return CUPTI_SUCCESS;
    AS_ONE(cuptiActivityPopExternalCorrelationId(kind, last));
}
