#include "backend/cupti/control.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cupti/join.h"
#include "backend/cupti/memory.h"
#include "backend/cupti/records.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/loader.h"
#include "base/log.h"

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
static uint64_t refused;
static PKI_ALIGNED uint8_t scrap[PKI_LINE]; /* eight bytes of it, for everybody: nothing fits */

/* All that exist, by their place. What CUPTI gives back may be another tool's, and is not looked at
 * before it has been found here. */
static pki_cupti_buffer *ours[PKI_CUPTI_BUFFERS_MOST];
/* Since when CUPTI has it, ns, an even number; odd: it has come back, and is about to be in
 * `filled`; 0: CUPTI does not have it. */
static uint64_t asked[PKI_CUPTI_BUFFERS_MOST];
static uint32_t places;  /* behind the last that has ever been used */
static uint64_t moves;   /* buffers asked for, had or not, and given back */
static uint64_t foreign; /* given back, and not ours */
static bool ended;       /* nobody reads them any more */

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
    bool wanted = !pki_load(&ended);
    pki_cupti_buffer *b = wanted ? acquire_free() : NULL;
    if (!b && wanted)
        b = make();
    if (b) /* before it holds anything: see oldest_asked */
        pki_store_release(&asked[b->place], PKI_MAX(pki_monotonic_ns() & ~(uint64_t)1, 2u));
    else
        pki_fetch_add(&refused, (uint64_t)1);
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
        pki_fetch_add(&foreign, (uint64_t)1);
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

/* In `asked` until it lies in `filled`, so that whoever finds it in neither has read it. */
static uint64_t oldest_asked(void)
{
    uint64_t oldest = UINT64_MAX;
    for (uint32_t i = 0; i < pki_load(&places); i++) {
        uint64_t since = pki_load_acquire(&asked[i]); /* pairs with the release of a 0 */
        oldest = since && since < oldest ? since : oldest;
    }
    return oldest;
}

/* How often buffers have been asked for and given back, and how many CUPTI has. */
static uint64_t pki_cupti_buffers_moves(uint32_t *held)
{
    *held = 0;
    for (uint32_t i = 0; i < pki_load(&places); i++)
        *held += pki_load(&asked[i]) != 0;
    return pki_load(&moves);
}

uint64_t pki_cupti_buffers_foreign(void)
{
    return pki_load(&foreign);
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

void pki_cupti_buffers_end(bool yes)
{
    pki_store(&ended, yes);
}

uint64_t pki_cupti_buffers_refused(void)
{
    return pki_load(&refused);
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

/* ---- taking CUPTI, switching it on, off, and giving it back ---- */

static CUpti_SubscriberHandle subscriber; /* NULL: not taken */
static bool recording;
uint32_t pki_cupti_recording;
static bool of_memory; /* what is allocated is recorded, too, or alone */
static bool memory_kinds_on;
static bool has_our_clock; /* once per process: to register it again damages a record */
static bool taken_before_fork;
static uint64_t dropped;

/* KERNEL (3) would run kernels one after the other. */
static const struct kind {
    CUpti_ActivityKind kind;
    bool needed;
} kinds[] = {
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, false},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, true},
    {CUPTI_ACTIVITY_KIND_MEMCPY, false},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, false},
    {CUPTI_ACTIVITY_KIND_MEMSET, false},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, false},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, false},
    {CUPTI_ACTIVITY_KIND_RUNTIME, true},
};

/* For two users: the pools' use in the trace, and the account of what is allocated. */
static const CUpti_ActivityKind memory_kinds[] = {CUPTI_ACTIVITY_KIND_MEMORY2,
                                                  CUPTI_ACTIVITY_KIND_MEMORY_POOL};

static uint64_t CUPTIAPI our_clock(void)
{
    return pki_monotonic_ns();
}

static bool failed(const char *what, CUptiResult result, char *reason, size_t size)
{
    if (result == CUPTI_SUCCESS)
        return false;
    snprintf(reason, size, "%s: %s", what, pki_cupti_result_text(result));
    return true;
}

static bool is_held_by_other(CUptiResult result)
{
    return result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ||
           result == CUPTI_ERROR_MAX_LIMIT_REACHED;
}

/* The newer call names whoever has it. */
static CUptiResult subscribe(char *holder, size_t size)
{
    CUpti_SubscriberParams params;
    holder[0] = 0;
    if (!pki_cupti.Subscribe_v2)
        return pki_cupti.Subscribe(&subscriber, pki_cupti_called, NULL);
    memset(&params, 0, sizeof params);
    params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    params.subscriberName = "perfkit";
    params.oldSubscriberName = holder;
    params.oldSubscriberSize = size;
    return pki_cupti.Subscribe_v2(&subscriber, pki_cupti_called, NULL, &params);
}

static bool acquire_subscriber(char *reason, size_t size)
{
    char holder[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN + 1];
    CUptiResult result = subscribe(holder, sizeof holder - 1);
    holder[sizeof holder - 1] = 0;
    if (result == CUPTI_SUCCESS && subscriber)
        return true;
    subscriber = NULL;
    if (is_held_by_other(result) && holder[0])
        snprintf(reason, size, "another tool in this process uses CUPTI: %s", holder);
    else
        failed("cuptiSubscribe", result, reason, size);
    return false;
}

static void set_attribute(CUpti_ActivityAttribute attribute, uint8_t value)
{
    size_t size = sizeof value;
    if (pki_cupti.ActivitySetAttribute(attribute, &size, &value) != CUPTI_SUCCESS)
        pki_log(PK_LOG_DEBUG, "cupti: attribute %d cannot be set", (int)attribute);
}

/* Questions about what is not done yet would come as waits; where they do, join.h tells. */
static void disable_query_records(void)
{
    if (!pki_cupti.ActivityEnableAllSyncRecords ||
        pki_cupti.ActivityEnableAllSyncRecords(0) != CUPTI_SUCCESS)
        pki_log(PK_LOG_DEBUG, "cupti: each question about an event makes a record");
}

/* Another tool has had the buffers, and some of ours are with it: what does not come back now never
 * will, and its memory is left alone. */
static void give_up_missing(void)
{
    const uint64_t now = pki_monotonic_ns();
    if (oldest_asked() == UINT64_MAX)
        return;
    pki_cupti_flush(true);
    for (uint32_t i = 0; i < pki_load(&places); i++)
        if (pki_load(&asked[i]) < now)
            pki_store(&asked[i], (uint64_t)0);
}

/* Buffers are zeroed by us, off the program's threads, and each thread fills its own. */
static bool prepare(char *reason, size_t size)
{
    set_attribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 1);
    set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 1);
    if (pki_cupti.SetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) != CUPTI_SUCCESS)
        pki_log(PK_LOG_WARNING, "cupti: CUDA calls carry pthread's ids, not the system's");
    if (failed("cuptiActivityRegisterCallbacks",
               pki_cupti.ActivityRegisterCallbacks(pki_cupti_buffer_requested,
                                                   pki_cupti_buffer_completed),
               reason, size))
        return false;
    if (!has_our_clock &&
        failed("cuptiActivityRegisterTimestampCallback",
               pki_cupti.ActivityRegisterTimestampCallback(our_clock), reason, size))
        return false;
    has_our_clock = has_our_clock || !pki_load(&pki_cupti_one); /* else for as long as it is one */
    disable_query_records();
    give_up_missing();
    return true;
}

/* Only calls that launch: all others of the driver are made by the runtime, or by us. Before CUDA
 * 12.5 all or none, and the reader passes over the rest. */
static void enable_driver(bool on)
{
    CUpti_CallbackDomain domain = CUPTI_CB_DOMAIN_DRIVER_API;
    if (!pki_cupti.ActivityEnableDriverApi) {
        (on ? pki_cupti.ActivityEnable : pki_cupti.ActivityDisable)(CUPTI_ACTIVITY_KIND_DRIVER);
        return;
    }
    for (uint32_t id = 1; id < pki_cupti_calls_count(domain); id++)
        if (pki_cupti_call_of(domain, id)->traits & PKI_CUPTI_LAUNCHES)
            pki_cupti.ActivityEnableDriverApi(id, on);
}

static void silence_runtime(void)
{
    CUpti_CallbackDomain domain = CUPTI_CB_DOMAIN_RUNTIME_API;
    for (uint32_t id = 1; pki_cupti.ActivityEnableRuntimeApi && id < pki_cupti_calls_count(domain);
         id++)
        if (pki_cupti_call_of(domain, id)->traits & PKI_CUPTI_QUIET)
            pki_cupti.ActivityEnableRuntimeApi(id, 0);
}

/* The answer is that of the first kind, without which the other one is of little use. */
static CUptiResult enable_memory_kinds(void)
{
    CUptiResult first = CUPTI_SUCCESS;
    for (size_t i = 0; i < PKI_COUNT_OF(memory_kinds) && !memory_kinds_on; i++) {
        CUptiResult result = pki_cupti.ActivityEnable(memory_kinds[i]);
        first = i ? first : result;
        if (result != CUPTI_SUCCESS)
            pki_log(PK_LOG_INFO, "cupti: no records of kind %d: %s", (int)memory_kinds[i],
                    pki_cupti_result_text(result));
    }
    memory_kinds_on = true;
    return first;
}

static void disable_memory_kinds(void)
{
    for (size_t i = PKI_COUNT_OF(memory_kinds); i-- > 0 && memory_kinds_on;)
        pki_cupti.ActivityDisable(memory_kinds[i]);
    memory_kinds_on = false;
}

static bool enable(bool graph_nodes, char *reason, size_t size)
{
    if (!graph_nodes && pki_cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) != CUPTI_SUCCESS)
        pki_log(PK_LOG_INFO, "cupti: graphs are recorded node by node");
    for (size_t i = 0; i < PKI_COUNT_OF(kinds); i++) {
        CUptiResult result = pki_cupti.ActivityEnable(kinds[i].kind);
        if (kinds[i].needed && failed("cuptiActivityEnable", result, reason, size))
            return false;
        if (result != CUPTI_SUCCESS)
            pki_log(PK_LOG_INFO, "cupti: no records of kind %d: %s", (int)kinds[i].kind,
                    pki_cupti_result_text(result));
    }
    if (pki_cupti_events_wanted() &&
        pki_cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_CUDA_EVENT) != CUPTI_SUCCESS)
        pki_log(PK_LOG_WARNING, "cupti: no records of events: waits do not say what for");
    enable_memory_kinds();
    enable_driver(true);
    silence_runtime();
    return true;
}

static bool is_there(char *reason, size_t size)
{
    if (taken_before_fork) {
        snprintf(reason, size, "this process was forked while CUPTI was in use");
        return false;
    }
    if (!pki_driver_live(reason, size) || !pki_cupti_load(reason, size))
        return false;
    if (pki_cupti_calls_learn())
        return true;
    snprintf(reason, size, "no memory for the names of CUDA's calls");
    return false;
}

static void release_subscriber(void)
{
    if (recording || of_memory)
        return;
    pki_cupti.Unsubscribe(subscriber);
    subscriber = NULL;
}

/* Takes it, unless the other user has. */
static bool ensure_subscriber(char *reason, size_t size)
{
    if (subscriber)
        return true;
    if (!is_there(reason, size) || !acquire_subscriber(reason, size))
        return false;
    if (prepare(reason, size))
        return true;
    release_subscriber();
    return false;
}

static void warn_of_refused(unsigned calls)
{
    if (calls)
        pki_log(PK_LOG_WARNING, "cupti: %u calls cannot be tied to regions", calls);
}

/* Callbacks are on before: what a thread has left of an earlier time is off its stack then. */
static bool record(bool graph_nodes, char *reason, size_t size)
{
    static uint32_t times;
    recording = true;
    warn_of_refused(pki_cupti_attribute(subscriber, true));
    if (enable(graph_nodes, reason, size)) {
        pki_store_release(&pki_cupti_recording, ++times); /* pairs with the acquire in count_call */
        return true;
    }
    pki_cupti_close();
    return false;
}

bool pki_cupti_open(bool graph_nodes, char *reason, size_t size)
{
    if (!ensure_subscriber(reason, size))
        return false;
    return record(graph_nodes, reason, size);
}

bool pki_cupti_resume(bool graph_nodes, char *reason, size_t size)
{
    return record(graph_nodes, reason, size);
}

bool pki_cupti_memory_on(char *reason, size_t size)
{
    if (!ensure_subscriber(reason, size))
        return false;
    of_memory = true;
    warn_of_refused(pki_cupti_attribute_memory(subscriber, true));
    if (!failed("cuptiActivityEnable of memory's records", enable_memory_kinds(), reason, size))
        return true;
    pki_cupti_memory_off();
    return false;
}

void pki_cupti_memory_off(void)
{
    if (!subscriber || !of_memory)
        return;
    of_memory = false;
    pki_cupti_attribute_memory(subscriber, false);
    if (!recording)
        disable_memory_kinds();
    pki_cupti_flush(true);
    release_subscriber();
}

void pki_cupti_quiet(void)
{
    if (!recording)
        return;
    recording = false;
    pki_store(&pki_cupti_recording, 0u);
    enable_driver(false);
    pki_cupti.ActivityDisable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    if (pki_cupti_events_wanted())
        pki_cupti.ActivityDisable(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
    for (size_t i = PKI_COUNT_OF(kinds); i-- > 0;)
        pki_cupti.ActivityDisable(kinds[i].kind);
    if (!of_memory)
        disable_memory_kinds();
    pki_cupti_attribute_off();
}

/* What there was, and when: `moves` and `calls` are read behind `ns`. */
typedef struct moment {
    uint64_t ns, calls, moves;
} moment;

static moment flushed; /* the last flush */
static moment known;   /* all that was launched by then has gone into our buffers */

static moment moment_now(void)
{
    uint32_t held;
    uint64_t ns = pki_monotonic_ns(); /* first: a launch that is not counted yet begins later */
    uint64_t calls = pki_cupti_launches().begun;
    return (moment){ns, calls, pki_cupti_buffers_moves(&held)};
}

/* A buffer that moves is asked of us, or given to us: until then nobody else had them. */
static void note_moves(moment before)
{
    moment after = moment_now();
    if (after.moves != before.moves || before.calls == known.calls)
        known = before;
    else if (before.moves != flushed.moves)
        known = flushed;
    flushed = before;
    flushed.moves = after.moves;
}

void pki_cupti_flush(bool forced)
{
    size_t more = 0;
    if (!subscriber)
        return;
    moment before = moment_now();
    pki_cupti.ActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
    if (pki_cupti.ActivityGetNumDroppedRecords(NULL, 0, &more) == CUPTI_SUCCESS)
        pki_fetch_add(&dropped, (uint64_t)more);
    note_moves(before);
    pki_cupti_buffers_walk();
}

uint64_t pki_cupti_all_until(bool *lost)
{
    uint64_t oldest = oldest_asked(); /* first: what came back meanwhile is walked */
    pki_cupti_buffers_walk();
    *lost = oldest < flushed.ns || pki_cupti_launches().recorded > known.calls;
    return oldest < UINT64_MAX || known.ns == flushed.ns ? oldest : known.ns;
}

void pki_cupti_close(void)
{
    if (!subscriber)
        return;
    pki_cupti_quiet();
    pki_cupti_flush(true);
    if (of_memory)
        pki_cupti_attribute(subscriber, false);
    release_subscriber();
}

/* ---- another tool that takes the buffers ---- */

/* A launch leaves the record of its call at least. */
#define CALLS_A_BUFFER (PKI_CUPTI_BUFFER_BYTES / sizeof(CUpti_ActivityAPI) + 1)

/* Each thread may be within one, which has left none yet: the first of a program takes seconds. */
#define CALLS_UNDER_WAY 64u

static struct {
    uint64_t moves, calls; /* when a buffer last moved */
    uint32_t flushes;      /* at which there were too many */
} seen;

static void see_moves(void)
{
    uint32_t held;
    seen.moves = pki_cupti_buffers_moves(&held);
    seen.calls = pki_cupti_launches().begun;
    seen.flushes = 0;
}

void pki_cupti_forget(void)
{
    pki_store(&dropped, (uint64_t)0);
    see_moves();
    flushed = known = moment_now();
}

bool pki_cupti_taken(void)
{
    uint32_t held;
    uint64_t calls = pki_cupti_launches().begun; /* first: who launches asks for a buffer */
    if (pki_cupti_buffers_moves(&held) != seen.moves) {
        see_moves();
        return false;
    }
    seen.flushes += calls - seen.calls > (uint64_t)held * CALLS_A_BUFFER + CALLS_UNDER_WAY;
    return seen.flushes >= 2;
}

void pki_cupti_abandon(void)
{
    pki_cupti_attribute_off();
    pki_cupti_attribute_memory(subscriber, false);
    pki_store(&pki_cupti_recording, 0u);
    recording = of_memory = memory_kinds_on = false;
    release_subscriber();
}

uint64_t pki_cupti_dropped(void)
{
    return pki_load(&dropped);
}

void pki_cupti_control_after_fork(void)
{
    taken_before_fork = taken_before_fork || subscriber || has_our_clock;
    pki_cupti_one = NULL;
    pki_cupti_recording = 0;
    subscriber = NULL;
    recording = of_memory = memory_kinds_on = false;
}
