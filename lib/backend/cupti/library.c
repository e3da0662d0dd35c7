/* lib/backend/cupti/library.c - libcupti: found, with one user or several, and its buffers */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cupti/control.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/loader.h"

/* ---- the library where it has several users (CUDA 13.3, driver r610) ---- */

/* There each subscriber has buffers, kinds, a clock and external ids of its own, by calls that name
 * it; calls that do not are refused meanwhile, and whoever subscribes without allowing others is
 * alone. perfkit allows them where the library does. The functions in the table know then whose
 * they are, so nobody else has to.
 *
 * After NVIDIA's documentation of CUPTI 13.3 ("Multiple Subscribers"; what the attributes are
 * called, in the order of their numbers, is in the reference of the activity API): the header that
 * this is compiled with may be older. Not seen on a device. */

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
static const pki_dl_function several[] = {FUNCTIONS(ENTRY)};

CUpti_SubscriberHandle pki_cupti_one;

static table of_one;            /* of a subscriber */
static pki_cupti_table process; /* of the process */

static CUptiResult set(handle h, int attribute, size_t size, void *value)
{
    return of_one.SetAttribute(h, attribute, &size, value);
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
           of_one.GetAttribute(h, CLOCK, &size, &taken) == CUPTI_SUCCESS && taken == our_clock;
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
    return h ? of_one.SetAttribute(h, (int)attribute, size, value)
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
    return h ? of_one.RegisterCallbacks(h, request, complete)
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
    return h ? of_one.Enable(h, kind, NULL) : process.ActivityEnable(kind);
}

static CUptiResult CUPTIAPI disable(CUpti_ActivityKind kind)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? of_one.Disable(h, kind, NULL) : process.ActivityDisable(kind);
}

static CUptiResult CUPTIAPI enable_runtime(CUpti_CallbackId id, uint8_t on)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? of_one.EnableRuntimeApi(h, id, on) : process.ActivityEnableRuntimeApi(id, on);
}

static CUptiResult CUPTIAPI enable_driver(CUpti_CallbackId id, uint8_t on)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? of_one.EnableDriverApi(h, id, on) : process.ActivityEnableDriverApi(id, on);
}

/* -- records, and what calls are told with -- */

static CUptiResult CUPTIAPI next_record(uint8_t *data, size_t valid, CUpti_Activity **record)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? of_one.GetNextRecord(h, data, valid, record)
             : process.ActivityGetNextRecord(data, valid, record);
}

static CUptiResult CUPTIAPI dropped(CUcontext context, uint32_t stream, size_t *count)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? of_one.GetNumDroppedRecords(h, context, stream, count)
             : process.ActivityGetNumDroppedRecords(context, stream, count);
}

static CUptiResult CUPTIAPI push_id(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? of_one.PushExternalCorrelationId(h, kind, id)
             : process.ActivityPushExternalCorrelationId(kind, id);
}

static CUptiResult CUPTIAPI pop_id(CUpti_ExternalCorrelationKind kind, uint64_t *last)
{
    handle h = pki_load(&pki_cupti_one);
    return h ? of_one.PopExternalCorrelationId(h, kind, last)
             : process.ActivityPopExternalCorrelationId(kind, last);
}

/* Where the library has several users at a time: the table's functions are those of one of them
 * from then on, as long as there is a subscription (above). */
static void pki_cupti_several_find(void *library, pki_cupti_table *t)
{
    char missing[128];
    process = *t;
    if (!t->Subscribe_v2 || !t->ActivityEnableRuntimeApi || !t->ActivityEnableDriverApi ||
        !t->ActivityEnableAllSyncRecords ||
        !pki_dl_bind(library, several, PKI_COUNT_OF(several), &of_one, missing, sizeof missing))
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
    t->ActivityPushExternalCorrelationId = push_id;
    t->ActivityPopExternalCorrelationId = pop_id;
}

/* ---- libcupti's functions, found while the program runs ---- */

pki_cupti_table pki_cupti;
static uint32_t loaded_version;
static bool usable;
static char why_not[192];

#define FUNCTION(name) PKI_DL_FUNCTION(pki_cupti_table, name, "cupti" #name, false),
#define LATER_FUNCTION(name) PKI_DL_FUNCTION(pki_cupti_table, name, "cupti" #name, true),

static const pki_dl_function functions[] = {PKI_CUPTI_FUNCTIONS(FUNCTION, LATER_FUNCTION)};

/* What NVIDIA's release notes and other tools' users have met. */
static const pki_cupti_fault faults[] = {
    {0, PKI_CUPTI_11_6, true, false, "it is older than CUDA 11.6 and does not take our clock"},
    {PKI_CUPTI_13_0, PKI_CUPTI_13_0_U1, true, false,
     "that of CUDA 13.0 without update 1 can lock up when it is switched off"},
    {PKI_CUPTI_13_0_U1, PKI_CUPTI_13_1, false, true,
     "that of CUDA 13.0 update 1 has given no valid times after 25 million kernels of graphs: "
     "without cupti_graph_nodes a long run records graphs as wholes"},
    {PKI_CUPTI_13_1, PKI_CUPTI_13_1_U1, false, false,
     "that of CUDA 13.1 without update 1 ties graph launches to the wrong calls in a process's later "
     "sessions"},
    {PKI_CUPTI_13_1_U1, PKI_CUPTI_13_4_U1, false, true,
     "before that of CUDA 13.4 update 1 it can take ever more processor time in long runs: without "
     "cupti_graph_nodes it has less to tell"},
};

const pki_cupti_fault *pki_cupti_fault_of(uint32_t version)
{
    for (size_t i = 0; i < PKI_COUNT_OF(faults); i++)
        if (version >= faults[i].from && version < faults[i].until)
            return &faults[i];
    return NULL;
}

void pki_cupti_version_text(uint32_t version, char *text, size_t size)
{
    static const char *const old[] = {
        [17] = "11.6", [18] = "11.8", [19] = "12.0", [20] = "12.2",
        [21] = "12.3", [22] = "12.4", [23] = "12.5", [24] = "12.6",
        [25] = "12.6", [26] = "12.8", [27] = "12.9", [28] = "12.9 update 1"};
    if (version >= 10000)
        snprintf(text, size, "%u.%u (%u)", version / 10000, version / 100 % 100, version);
    else if (version < PKI_COUNT_OF(old) && old[version])
        snprintf(text, size, "%s (%u)", old[version], version);
    else
        snprintf(text, size, "%u", version);
}

/* By what it calls itself, for the loader, then where the toolkit puts it, then in Python's
 * packages: those of CUDA 13 share a folder. */
static void *open_library(void)
{
    static const char *const files[] = {"libcupti.so.13", "libcupti.so.12", NULL};
    static const char *const packages[] = {"cu13", "cuda_cupti", NULL};
    const char *given = secure_getenv("PK_CUPTI_LIBRARY");
    static const char *const names[] = {"libcupti.so.13",
                                        "libcupti.so.12",
                                        "libcupti.so",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                                        "/usr/local/cuda/lib64/libcupti.so",
                                        NULL};
    void *library = pki_dl_open("PK_CUPTI_LIBRARY", names, why_not, sizeof why_not);
    return library || (given && *given) ? library
                                        : pki_wheel_open(files, packages, why_not, sizeof why_not);
}

static void load(void)
{
    char text[32];
    void *library = open_library();
    if (!library || !pki_dl_bind(library, functions, PKI_COUNT_OF(functions), &pki_cupti, why_not,
                                 sizeof why_not))
        return;
    CUptiResult result = pki_cupti.GetVersion(&loaded_version);
    if (result != CUPTI_SUCCESS) {
        snprintf(why_not, sizeof why_not, "cuptiGetVersion: %s", pki_cupti_result_text(result));
        return;
    }
    if (loaded_version >= PKI_CUPTI_13_3)
        pki_cupti_several_find(library, &pki_cupti);
    const pki_cupti_fault *fault = pki_cupti_fault_of(loaded_version);
    pki_cupti_version_text(loaded_version, text, sizeof text);
    usable = !fault || !fault->refused;
    if (!usable)
        snprintf(why_not, sizeof why_not, "CUPTI %s: %s", text, fault->why);
}

bool pki_cupti_load(char *reason, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!usable)
        snprintf(reason, size, "%s", why_not);
    return usable;
}

uint32_t pki_cupti_version(void)
{
    return loaded_version;
}

const char *pki_cupti_result_text(CUptiResult result)
{
    const char *name = NULL;
    switch (result) {
    case CUPTI_ERROR_NOT_INITIALIZED:
        return "CUPTI does not start with this driver: it may be newer than the driver is (15)";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
        return "not on this virtual GPU: its host has to allow tracing (33, 40)";
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
        return "the driver lets only root trace (35): NVreg_RestrictProfilingToAdminUsers=0";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_MAX_LIMIT_REACHED:
        return "another tool in this process uses CUPTI (39, 12)";
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
        return "not in confidential computing mode (41)";
    case CUPTI_ERROR_UNKNOWN:
        return "CUPTI finds no working driver (999)";
    default:
        break;
    }
    if (!pki_cupti.GetResultString || pki_cupti.GetResultString(result, &name) != CUPTI_SUCCESS)
        name = NULL;
    return name ? name : "an error that CUPTI has no name for";
}

/* ---- the memory that CUPTI writes records into ---- */

#define PKI_CUPTI_BUFFERS_MOST 8192u

#define SLOTS 32

static pki_cupti_buffer *filled, *walked; /* the newest first */
static pki_cupti_buffer *free_ones[SLOTS];
pki_cupti_traffic pki_cupti_buffers;
static PKI_ALIGNED uint8_t scrap[PKI_LINE]; /* eight bytes of it, for everybody: nothing fits */

/* All that exist, by their place. What CUPTI gives back may be another tool's, and is not looked at
 * before it has been found here. */
static pki_cupti_buffer *ours[PKI_CUPTI_BUFFERS_MOST];
/* Since when CUPTI has it, ns, an even number; odd: it has come back, and is about to be in
 * `filled`; 0: CUPTI does not have it. */
static uint64_t asked[PKI_CUPTI_BUFFERS_MOST];
static uint32_t places; /* behind the last that has ever been used */
static uint64_t moves;  /* buffers asked for, had or not, and given back */

static pki_cupti_buffer *acquire_free(void)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        if (!pki_load(&free_ones[i]))
            continue;
        /* Pairs with the release in put_free: its bytes are zero. */
        pki_cupti_buffer *b = __atomic_exchange_n(&free_ones[i], NULL, __ATOMIC_ACQUIRE);
        if (b)
            return b;
    }
    return NULL;
}

static bool put_free(pki_cupti_buffer *b)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        pki_cupti_buffer *none = NULL;
        if (__atomic_compare_exchange_n(&free_ones[i], &none, b, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

static bool find_place(pki_cupti_buffer *b)
{
    for (uint32_t i = 0; i < PKI_CUPTI_BUFFERS_MOST; i++) {
        pki_cupti_buffer *none = NULL;
        if (pki_load(&ours[i]) || !__atomic_compare_exchange_n(&ours[i], &none, b, false,
                                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        b->place = i;
        uint32_t behind = pki_load(&places);
        while (behind <= i && !__atomic_compare_exchange_n(&places, &behind, i + 1, true,
                                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
        return true;
    }
    return false;
}

static pki_cupti_buffer *make(void)
{
    size_t bytes = sizeof(pki_cupti_buffer) + PKI_CUPTI_BUFFER_BYTES;
    pki_cupti_buffer *b = aligned_alloc(PKI_LINE, bytes);
    if (!b)
        return NULL;
    memset(b, 0, bytes);
    if (find_place(b))
        return b;
    free(b);
    return NULL;
}

void CUPTIAPI pki_cupti_buffer_requested(uint8_t **data, size_t *size, size_t *records_most)
{
    int saved = errno;
    bool wanted = !pki_load(&pki_cupti_buffers.ended);
    pki_cupti_buffer *b = wanted ? acquire_free() : NULL;
    if (!b && wanted)
        b = make();
    if (b) /* before it holds anything: see pki_cupti_buffers_oldest */
        pki_store_release(&asked[b->place], PKI_MAX(pki_monotonic_ns() & ~(uint64_t)1, 2u));
    else
        pki_fetch_add(&pki_cupti_buffers.refused, (uint64_t)1);
    pki_fetch_add(&moves, (uint64_t)1);
    *data = b ? b->data : scrap;
    *size = b ? PKI_CUPTI_BUFFER_BYTES : 8;
    *records_most = 0;
    errno = saved;
}

/* Its place in the table; PKI_CUPTI_BUFFERS_MOST: it is not ours. */
static uint32_t place_of(const uint8_t *data)
{
    for (uint32_t i = 0; i < pki_load(&places); i++) {
        const pki_cupti_buffer *b = pki_load(&ours[i]);
        if (b && b->data == data)
            return i;
    }
    return PKI_CUPTI_BUFFERS_MOST;
}

/* False: CUPTI does not have it. *odd: what it is marked with from here on. */
static bool take_back(uint32_t place, uint64_t *odd)
{
    uint64_t since = pki_load(&asked[place]);
    *odd = since | 1;
    return since && since != *odd &&
           __atomic_compare_exchange_n(&asked[place], &since, *odd, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

static void push(pki_cupti_buffer **list, pki_cupti_buffer *b)
{
    pki_cupti_buffer *head = pki_load(list);
    do
        b->next = head; /* the release pairs with the acquire in take_all */
    while (!__atomic_compare_exchange_n(list, &head, b, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void CUPTIAPI pki_cupti_buffer_completed(CUcontext context, uint32_t stream, uint8_t *data,
                                         size_t size, size_t valid)
{
    (void)context, (void)stream;
    if (!data || data == scrap)
        return;
    const uint32_t place = place_of(data);
    uint64_t odd;
    if (place == PKI_CUPTI_BUFFERS_MOST || !take_back(place, &odd)) {
        pki_fetch_add(&pki_cupti_buffers.foreign, (uint64_t)1);
        return;
    }
    pki_cupti_buffer *b = pki_load(&ours[place]);
    b->valid = PKI_MIN(valid, PKI_MIN(size, PKI_CUPTI_BUFFER_BYTES));
    push(&filled, b);
    /* It may have been read by now, and freed, or asked for again: then another time stands there.
     */
    __atomic_compare_exchange_n(&asked[place], &odd, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    pki_fetch_add(&moves, (uint64_t)1);
}

CUptiResult pki_cupti_buffers_register(void)
{
    return pki_cupti.ActivityRegisterCallbacks(pki_cupti_buffer_requested,
                                               pki_cupti_buffer_completed);
}

/* In `asked` until it lies in `filled`, so that whoever finds it in neither has read it. */
uint64_t pki_cupti_buffers_oldest(void)
{
    uint64_t oldest = UINT64_MAX;
    for (uint32_t i = 0; i < pki_load(&places); i++) {
        uint64_t since = pki_load_acquire(&asked[i]); /* pairs with the release of a 0 */
        oldest = since && since < oldest ? since : oldest;
    }
    return oldest;
}

uint64_t pki_cupti_buffers_moves(uint32_t *held)
{
    *held = 0;
    for (uint32_t i = 0; i < pki_load(&places); i++)
        *held += pki_load(&asked[i]) != 0;
    return pki_load(&moves);
}

void pki_cupti_buffers_give_up(uint64_t before)
{
    for (uint32_t i = 0; i < pki_load(&places); i++)
        if (pki_load(&asked[i]) < before)
            pki_store(&asked[i], (uint64_t)0);
}

/* The oldest first. As a whole, so nobody can put one back that another pusher still looks at. */
static pki_cupti_buffer *take_all(pki_cupti_buffer **list)
{
    /* Pairs with the release in push. */
    pki_cupti_buffer *newest = pki_exchange_acquire(list, NULL), *oldest = NULL;
    while (newest) {
        pki_cupti_buffer *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static void walk(pki_cupti_buffer *b)
{
    CUpti_Activity *record = NULL;
    CUptiResult result = b->valid ? CUPTI_SUCCESS : CUPTI_ERROR_MAX_LIMIT_REACHED;
    while (result == CUPTI_SUCCESS) {
        result = pki_cupti.ActivityGetNextRecord(b->data, b->valid, &record);
        size_t at = result == CUPTI_SUCCESS ? (size_t)((uint8_t *)record - b->data) / 8 : 0;
        if (result == CUPTI_SUCCESS)
            b->begins[at / 64] |= (uint64_t)1 << at % 64;
    }
    b->broken = result != CUPTI_ERROR_MAX_LIMIT_REACHED;
}

void pki_cupti_buffers_walk(void)
{
    for (pki_cupti_buffer *b = take_all(&filled), *next; b; b = next) {
        next = b->next;
        walk(b);
        push(&walked, b);
    }
}

pki_cupti_buffer *pki_cupti_buffers_drain(void)
{
    return take_all(&walked);
}

static void discard(pki_cupti_buffer *b)
{
    pki_store(&ours[b->place], NULL);
    free(b);
}

void pki_cupti_buffer_release(pki_cupti_buffer *b)
{
    memset(b->data, 0, b->valid);
    memset(b->begins, 0, sizeof b->begins);
    if (!put_free(b))
        discard(b);
}

void pki_cupti_buffers_trim(void)
{
    pki_cupti_buffer *b;
    while ((b = acquire_free()) != NULL)
        discard(b);
}

void pki_cupti_buffers_after_fork(void)
{
    filled = walked = NULL;
    memset(free_ones, 0, sizeof free_ones);
    memset(ours, 0, sizeof ours);
    memset(asked, 0, sizeof asked);
    places = 0;
}
