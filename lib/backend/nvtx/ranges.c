/* lib/backend/nvtx/ranges.c - what users of NVTX call, and what is known of a thread that does */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

#include "backend/nvtx/nvtx.h"
#include "base/tuning.h"
#include "core/names.h"
#include "core/join.h"
#include "core/registry.h"

/* Which ranges it has open, and which regions its messages were.
 *
 * A message is looked up by the address of its text in a small table per thread, and compared,
 * since the same address may hold another text tomorrow. What is not there takes the way of
 * pk_region_named: a hash, and no lock for a known name. */

#define PKI_NVTX_OPEN_MOST 128
#define PKI_NVTX_REMEMBERED 64 /* messages; a power of two */
#define PKI_NVTX_TEXT_BYTES 96

typedef struct pki_nvtx_remembered {
    uintptr_t message; /* an address; a registered string's is odd, and has no text */
    const pki_nvtx_domain *domain;
    pk_region *region;
    uint32_t category;
    pki_nvtx_meaning meaning;
    char text[PKI_NVTX_TEXT_BYTES];
} pki_nvtx_remembered;

_Static_assert(sizeof(pki_nvtx_remembered) == 128, "found by shifting");

typedef struct pki_nvtx_open {
    const pki_nvtx_domain *domain;
    pk_region *region; /* NULL: not recorded, or closed by what was around it */
    uint32_t offset;   /* of its frame */
    uint32_t session;  /* the registry's serial */
    int level;
} pki_nvtx_open;

typedef struct pki_nvtx_user {
    uint64_t knows; /* the last `wanted` that the thread has met; nobody's: none */
    unsigned open;
    unsigned over; /* ranges for which there was no room */
    char name[64];
    pki_nvtx_open ranges[PKI_NVTX_OPEN_MOST];
    pki_nvtx_remembered messages[PKI_NVTX_REMEMBERED];
} pki_nvtx_user;

static pk_region *pki_nvtx_look_up(pki_nvtx_user *user, const void *message,
                                   const pki_nvtx_domain *domain, uint32_t category,
                                   bool registered, pki_nvtx_meaning *meaning);
static pk_region *pki_nvtx_other_region(const pki_nvtx_domain *domain,
                                        const nvtxEventAttributes_t *attr,
                                        pki_nvtx_meaning *meaning);

/* ---- does a session want other people's ranges? ---- */

pki_nvtx_use pki_nvtx_users;

static bool pki_nvtx_consuming(void)
{
    return pki_load(&pki_nvtx_users.wanted) != 0;
}

/* ---- what is known of a thread that uses NVTX ---- */

static inline pki_nvtx_remembered *pki_nvtx_slot_of(pki_nvtx_user *u, uintptr_t message,
                                                    const pki_nvtx_domain *domain,
                                                    uint32_t category)
{
    uint64_t bits = (uint64_t)message ^ (uint64_t)(uintptr_t)domain >> 4 ^ category;
    return &u->messages[(bits * 0x9E3779B97F4A7C15u) >> 58 & (PKI_NVTX_REMEMBERED - 1)];
}

static inline uintptr_t pki_nvtx_address_of(const void *message, bool registered)
{
    return (uintptr_t)message | registered;
}

static inline bool pki_nvtx_is_it(const pki_nvtx_remembered *r, const void *message,
                                  const pki_nvtx_domain *domain, uint32_t category, bool registered)
{
    return r->message == pki_nvtx_address_of(message, registered) && r->domain == domain &&
           r->category == category && (registered || strcmp(message, r->text) == 0);
}

/* u may be NULL. */
static inline pk_region *pki_nvtx_region_of(pki_nvtx_user *u, const pki_nvtx_domain *domain,
                                            const void *message, bool registered, uint32_t category,
                                            pki_nvtx_meaning *meaning)
{
    *meaning = PKI_NVTX_NUMBER;
    if (registered && !category && message)
        return (pk_region *)(uintptr_t)message;
    if (PKI_UNLIKELY(!u || !message))
        return pki_nvtx_look_up(u, message, domain, category, registered, meaning);
    const pki_nvtx_remembered *r =
        pki_nvtx_slot_of(u, pki_nvtx_address_of(message, registered), domain, category);
    if (PKI_UNLIKELY(!pki_nvtx_is_it(r, message, domain, category, registered)))
        return pki_nvtx_look_up(u, message, domain, category, registered, meaning);
    *meaning = r->meaning;
    return r->region;
}

static inline pk_region *pki_nvtx_region_in(pki_nvtx_user *u, const pki_nvtx_domain *domain,
                                            const nvtxEventAttributes_t *attr,
                                            pki_nvtx_meaning *meaning)
{
    bool registered = attr && attr->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
    if (PKI_UNLIKELY(!attr || attr->size < sizeof *attr ||
                     (!registered && attr->messageType != NVTX_MESSAGE_TYPE_ASCII)))
        return pki_nvtx_other_region(domain, attr, meaning);
    return pki_nvtx_region_of(u, domain, attr->message.ascii, registered, attr->category, meaning);
}

static inline bool pki_nvtx_has_payload(const nvtxEventAttributes_t *attr)
{
    return attr && attr->size >= sizeof *attr && attr->payloadType;
}

#define REMAKES_AT_EXIT 3 /* thread-exit destructors may still use NVTX; not for ever */

static pki_nvtx_user nobody = {.knows = UINT64_MAX};
static _Thread_local pki_nvtx_user *pki_nvtx_self = &nobody;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;
static _Thread_local unsigned remakes;

static void forget(void *memory)
{
    pki_nvtx_self = &nobody;
    remakes++;
    free(memory);
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, forget) == 0;
}

/* ---- the calling thread ---- */

static PKI_COLD pki_nvtx_user *make_user(void)
{
    int saved = errno;
    pki_nvtx_user *u = NULL;
    pthread_once(&once, make_key);
    if (key_made && remakes < REMAKES_AT_EXIT)
        u = calloc(1, sizeof *u);
    if (u && pthread_setspecific(key, u) != 0) {
        free(u);
        u = NULL;
    }
    pki_nvtx_self = u ? u : &nobody;
    errno = saved;
    return u;
}

/* The calling thread's; NULL without memory. */
static pki_nvtx_user *pki_nvtx_find_user(void)
{
    return PKI_LIKELY(pki_nvtx_self != &nobody) ? pki_nvtx_self : make_user();
}

/* A session has begun since, or regions of messages may have other names than those remembered. */
static PKI_COLD void pki_nvtx_catch_up(pki_nvtx_user *u)
{
    uint64_t now =
        pki_load_acquire(&pki_nvtx_users.wanted); /* pairs with the release in count_category */
    memset(u->messages, 0, sizeof u->messages);
    if (u->knows >> 32 != now >> 32 && u->name[0])
        pk_thread_set_name(u->name);
    u->knows = now;
}

/* Names the thread of that system's id; for the calling one the name holds for all sessions. */
static void pki_nvtx_name_thread(uint32_t tid, const char *name)
{
    int saved = errno;
    pki_nvtx_user *u = tid == (uint32_t)syscall(SYS_gettid) ? pki_nvtx_find_user() : NULL;
    if (u) {
        snprintf(u->name, sizeof u->name, "%.*s", (int)sizeof u->name - 1, name);
        if (pki_nvtx_consuming())
            pk_thread_set_name(u->name);
    } else if (pki_nvtx_consuming()) {
        pki_thread_name_of(tid, name);
    }
    errno = saved;
}

/* The region of a message, and it is remembered if user is not NULL. */
/* ---- messages ---- */

static PKI_COLD pk_region *pki_nvtx_look_up(pki_nvtx_user *u, const void *message,
                                            const pki_nvtx_domain *domain, uint32_t category,
                                            bool registered, pki_nvtx_meaning *meaning)
{
    pk_region *region =
        registered
            ? pki_nvtx_registered(domain, (nvtxStringHandle_t)(uintptr_t)message, category, meaning)
            : pki_nvtx_region(domain, message, category, meaning);
    size_t n = registered || !message ? 0 : strnlen(message, PKI_NVTX_TEXT_BYTES);
    if (!u || !message || n == PKI_NVTX_TEXT_BYTES)
        return region;
    pki_nvtx_remembered *r =
        pki_nvtx_slot_of(u, pki_nvtx_address_of(message, registered), domain, category);
    *r = (pki_nvtx_remembered){.message = pki_nvtx_address_of(message, registered),
                               .domain = domain,
                               .region = region,
                               .category = category,
                               .meaning = *meaning};
    if (n)
        memcpy(r->text, message, n);
    return region;
}

/* Of attributes whose message is no plain text and no registered one. */
static PKI_COLD pk_region *pki_nvtx_other_region(const pki_nvtx_domain *domain,
                                                 const nvtxEventAttributes_t *attr,
                                                 pki_nvtx_meaning *meaning)
{
    char text[PKI_NAME_BYTES + 1];
    if (!attr || attr->size < sizeof *attr)
        return pki_nvtx_region(domain, NULL, 0, meaning);
    if (attr->messageType != NVTX_MESSAGE_TYPE_UNICODE)
        return pki_nvtx_region(domain, NULL, attr->category, meaning);
    pki_nvtx_narrow(text, sizeof text, attr->message.unicode);
    return pki_nvtx_region(domain, text, attr->category, meaning);
}

static pki_nvtx_event pki_nvtx_event_of(const pki_nvtx_domain *domain,
                                        const nvtxEventAttributes_t *attr)
{
    pki_nvtx_meaning meaning;
    pki_nvtx_event event = {NULL, {0}};
    event.region = pki_nvtx_region_in(pki_nvtx_find_user(), domain, attr, &meaning);
    if (pki_nvtx_has_payload(attr))
        pki_nvtx_read_attributes(domain, attr, meaning, &event.work);
    return event;
}

/* The event of these attributes, through what the calling thread remembers of the last ones. */
static pki_nvtx_event pki_nvtx_event_of_text(const char *message)
{
    pki_nvtx_meaning meaning;
    pki_nvtx_event event = {NULL, {0}};
    event.region = pki_nvtx_region_of(pki_nvtx_find_user(), pki_nvtx_domain_of(NULL), message,
                                      false, 0, &meaning);
    return event;
}

/* ---- a thread's ranges, as NVTX's users call them ---- */

/* Each domain has a stack of its own on each thread; perfkit has one per thread. So what is open is
 * kept with its domain (above), also while no session is open, and a pop finds what it ends.
 * A range that is popped while another domain's is open inside it closes that one too, and its pop
 * then finds it closed. */

static PKI_COLD int level_below(const pki_nvtx_user *u, const pki_nvtx_domain *domain)
{
    for (unsigned i = u->open; i-- > 0;)
        if (u->ranges[i].domain == domain)
            return u->ranges[i].level;
    return -1;
}

static inline int level_of_next(const pki_nvtx_user *u, const pki_nvtx_domain *domain)
{
    if (u->open == 0)
        return 0;
    const pki_nvtx_open *top = &u->ranges[u->open - 1];
    if (PKI_LIKELY(top->domain == domain))
        return top->level + 1;
    return level_below(u, domain) + 1;
}

/* Member by member: what is read again soon, and in other sizes, must not be stored as a whole. */
static inline int open_one(pki_nvtx_user *u, const pki_nvtx_domain *domain, pk_region *region)
{
    int level = level_of_next(u, domain);
    pki_nvtx_open *r = &u->ranges[u->open++];
    r->domain = domain;
    r->level = level;
    r->session = pki_nvtx_session_now();
    r->region = region;
    if (PKI_UNLIKELY(!region))
        return level;
    if (PKI_UNLIKELY(pki_load(&pki_heard) != NULL))
        pki_load (&pki_heard)(region, NULL);
    pk_region_begin_on_(region);
    r->offset = (uint32_t)pki_load(&pki_self->state);
    return level;
}

static void add_work(pk_region *region, const pki_work *work)
{
    if (work->bytes || work->flops)
        pk_region_add_on_(region, work->bytes, work->flops);
    if (work->payload_type)
        pki_region_payload(region, (pki_payload_type)work->payload_type, work->payload);
}

/* event NULL: no session wants it. */
static PKI_COLD int pki_nvtx_push(pki_nvtx_domain *domain, const pki_nvtx_event *event)
{
    pki_nvtx_user *u = pki_nvtx_find_user();
    if (!u || u->open == PKI_NVTX_OPEN_MOST) {
        if (u)
            u->over++;
        if (event)
            pki_registry_refuse_region();
        return NVTX_NO_PUSH_POP_TRACKING;
    }
    if (event && u->knows != pki_load(&pki_nvtx_users.wanted))
        pki_nvtx_catch_up(u);
    int level = open_one(u, domain, event ? event->region : NULL);
    if (event)
        add_work(event->region, &event->work);
    return level;
}

/* Has this thread pushed before in the session, and is there room for one more? */
static inline bool is_ready(const pki_nvtx_user *u)
{
    return u->knows == pki_load(&pki_nvtx_users.wanted) && u->open < PKI_NVTX_OPEN_MOST;
}

static PKI_COLD int push_first(pki_nvtx_domain *domain, const nvtxEventAttributes_t *attr)
{
    if (domain->ours)
        return NVTX_NO_PUSH_POP_TRACKING;
    if (!pki_nvtx_consuming())
        return pki_nvtx_push(domain, NULL);
    pki_nvtx_event event = pki_nvtx_event_of(domain, attr);
    return pki_nvtx_push(domain, &event);
}

static PKI_COLD void add_attributes(const pki_nvtx_domain *domain, pk_region *region,
                                    const nvtxEventAttributes_t *attr, pki_nvtx_meaning meaning)
{
    pki_work work = {0};
    pki_nvtx_read_attributes(domain, attr, meaning, &work);
    add_work(region, &work);
}

static int pki_nvtx_push_ex(nvtxDomainHandle_t handle, const nvtxEventAttributes_t *attr)
{
    pki_nvtx_user *u = pki_nvtx_self;
    pki_nvtx_meaning meaning;
    pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    if (PKI_UNLIKELY(!is_ready(u) || domain->ours))
        return push_first(domain, attr);
    pk_region *region = pki_nvtx_region_in(u, domain, attr, &meaning);
    int level = open_one(u, domain, region);
    if (PKI_UNLIKELY(pki_nvtx_has_payload(attr)))
        add_attributes(domain, region, attr, meaning);
    return level;
}

static PKI_COLD int push_text_first(const char *message)
{
    if (!pki_nvtx_consuming())
        return pki_nvtx_push(pki_nvtx_domain_of(NULL), NULL);
    pki_nvtx_event event = pki_nvtx_event_of_text(message);
    return pki_nvtx_push(pki_nvtx_domain_of(NULL), &event);
}

static int pki_nvtx_push_text(const char *message)
{
    pki_nvtx_user *u = pki_nvtx_self;
    pki_nvtx_meaning meaning;
    const pki_nvtx_domain *domain = pki_nvtx_domain_of(NULL);
    if (PKI_UNLIKELY(!is_ready(u)))
        return push_text_first(message);
    return open_one(u, domain, pki_nvtx_region_of(u, domain, message, false, 0, &meaning));
}

/* Not if it has been closed already: a region of that name further out must stay open. */
static inline void end_range(const pki_nvtx_open *r, const pki_work *more)
{
    pk_region *region = r->region;
    if (PKI_UNLIKELY(!region || r->session != pki_nvtx_session_now() ||
                     (uint32_t)pki_load(&pki_self->state) < r->offset))
        return;
    if (more)
        add_work(region, more);
    pk_region_end_on_(region);
}

/* Ranges of other domains that are open inside the one at i end with it. */
static PKI_COLD int pop_below(pki_nvtx_user *u, const pki_nvtx_domain *domain, const pki_work *more)
{
    unsigned i = u->open;
    if (u->over) { /* which domain's it was, nobody knows */
        u->over--;
        return NVTX_NO_PUSH_POP_TRACKING;
    }
    while (i > 0 && u->ranges[i - 1].domain != domain)
        i--;
    if (i-- == 0)
        return -1; /* more pops than pushes */
    int level = u->ranges[i].level;
    end_range(&u->ranges[i], more);
    for (unsigned above = i + 1; above < u->open; above++)
        u->ranges[above].region = NULL;
    memmove(&u->ranges[i], &u->ranges[i + 1], (u->open - i - 1) * sizeof *u->ranges);
    u->open--;
    return level;
}

static inline int pop_from(const pki_nvtx_domain *domain, const pki_work *more)
{
    pki_nvtx_user *u = pki_nvtx_self;
    if (PKI_UNLIKELY(u->open == 0 || u->over))
        return pop_below(u, domain, more);
    const pki_nvtx_open *top = &u->ranges[u->open - 1];
    if (PKI_UNLIKELY(top->domain != domain))
        return pop_below(u, domain, more);
    u->open--;
    end_range(top, more);
    return top->level;
}

static int pki_nvtx_pop(nvtxDomainHandle_t handle)
{
    return pop_from(pki_nvtx_domain_of(handle), NULL);
}

/* What users of NVTX call most. */
static int pki_nvtx_pop_default(void)
{
    return pop_from(pki_nvtx_domain_of(NULL), NULL);
}

static int pki_nvtx_pop_with(const pki_nvtx_domain *domain, const pki_work *more)
{
    return pop_from(domain, more);
}

/* event NULL: no session wants it, but its pop will come. */
static void pki_nvtx_mark(const pki_nvtx_event *event)
{
    pki_nvtx_user *u = pki_nvtx_find_user();
    pki_work work = event->work;
    if (u && u->knows != pki_load(&pki_nvtx_users.wanted))
        pki_nvtx_catch_up(u);
    if (!work.payload_type && work.bytes) {
        work.payload = work.bytes;
        work.payload_type = PKI_PAYLOAD_UNSIGNED;
    }
    pki_mark_payload(event->region, (pki_payload_type)work.payload_type, work.payload);
}

/* ---- the functions that a user of NVTX calls from its first call on ---- */

/* Each library has its own copy of NVTX, and each asks by itself. What is filled in stays for the
 * process's life, so every function here first asks whether a session wants to know. */

static bool unwanted(const pki_nvtx_domain *domain)
{
    return domain->ours || !pki_nvtx_consuming();
}

/* ---- ranges of a thread, and marks ---- */

static void mark_ex(nvtxDomainHandle_t handle, const nvtxEventAttributes_t *attr)
{
    const pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    if (unwanted(domain))
        return;
    pki_nvtx_event event = pki_nvtx_event_of(domain, attr);
    pki_nvtx_mark(&event);
}

static int push_default(const nvtxEventAttributes_t *attr)
{
    return pki_nvtx_push_ex(NULL, attr);
}

static void mark_default(const nvtxEventAttributes_t *attr)
{
    mark_ex(NULL, attr);
}

static void mark_text(const char *message)
{
    if (!pki_nvtx_consuming())
        return;
    pki_nvtx_event event = pki_nvtx_event_of_text(message);
    pki_nvtx_mark(&event);
}

/* ---- ranges of the process ---- */

static nvtxRangeId_t start_ex(nvtxDomainHandle_t handle, const nvtxEventAttributes_t *attr)
{
    const pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    if (unwanted(domain))
        return 0;
    pki_nvtx_event event = pki_nvtx_event_of(domain, attr);
    return pki_nvtx_range_start(&event);
}

static void end_in(nvtxDomainHandle_t handle, nvtxRangeId_t id)
{
    (void)handle;
    pki_nvtx_range_end(id, NULL);
}

static nvtxRangeId_t start_default(const nvtxEventAttributes_t *attr)
{
    return start_ex(NULL, attr);
}

static nvtxRangeId_t start_text(const char *message)
{
    if (!pki_nvtx_consuming())
        return 0;
    pki_nvtx_event event = pki_nvtx_event_of_text(message);
    return pki_nvtx_range_start(&event);
}

static void end_default(nvtxRangeId_t id)
{
    pki_nvtx_range_end(id, NULL);
}

/* ---- names: kept whether or not a session is open ---- */

static nvtxDomainHandle_t create_domain(const char *name)
{
    return (nvtxDomainHandle_t)pki_nvtx_domain_create(name);
}

static nvtxStringHandle_t register_text(nvtxDomainHandle_t handle, const char *text)
{
    pki_nvtx_meaning meaning;
    return (nvtxStringHandle_t)pki_nvtx_region(pki_nvtx_domain_of(handle), text, 0, &meaning);
}

static void name_category_in(nvtxDomainHandle_t handle, uint32_t id, const char *name)
{
    pki_nvtx_name_category(pki_nvtx_domain_of(handle), id, name);
}

static void name_category(uint32_t id, const char *name)
{
    name_category_in(NULL, id, name);
}

static void name_thread(uint32_t tid, const char *name)
{
    if (name)
        pki_nvtx_name_thread(tid, name);
}

/* ---- the same for text that is wide ---- */

/* On the stack: an address that other texts will have, too, and each is looked up. */
#define WIDE(TYPE, NAME, PARAMS, DO)                                                               \
    static TYPE NAME##_wide PARAMS                                                                 \
    {                                                                                              \
        char text[PKI_NAME_BYTES + 1];                                                             \
        pki_nvtx_narrow(text, sizeof text, wide);                                                  \
        DO;                                                                                        \
    }

WIDE(int, push, (const wchar_t *wide), return pki_nvtx_push_text(text))
WIDE(void, mark, (const wchar_t *wide), mark_text(text))
WIDE(nvtxRangeId_t, start, (const wchar_t *wide), return start_text(text))
WIDE(nvtxDomainHandle_t, create_domain, (const wchar_t *wide), return create_domain(text))
WIDE(nvtxStringHandle_t, register, (nvtxDomainHandle_t handle, const wchar_t *wide),
     return register_text(handle, text))
WIDE(void, name_category_in, (nvtxDomainHandle_t handle, uint32_t id, const wchar_t *wide),
     name_category_in(handle, id, text))
WIDE(void, name_category, (uint32_t id, const wchar_t *wide), name_category(id, text))
WIDE(void, name_thread, (uint32_t tid, const wchar_t *wide), name_thread(tid, text))

/* ---- resources ---- */

static bool is_calling_thread(const nvtxResourceAttributes_t *attr)
{
    pthread_t self = pthread_self();
    return memcmp(&attr->identifier, &self, sizeof self) == 0;
}

/* Of all resources that may have a name, threads are those that a trace shows. */
static nvtxResourceHandle_t create_resource(nvtxDomainHandle_t handle,
                                            nvtxResourceAttributes_t *attr)
{
    char name[PKI_NAME_BYTES + 1] = "";
    (void)handle;
    if (!attr || attr->size < sizeof *attr)
        return NULL;
    if (attr->messageType == NVTX_MESSAGE_TYPE_ASCII && attr->message.ascii)
        strncpy(name, attr->message.ascii, sizeof name - 1);
    else if (attr->messageType == NVTX_MESSAGE_TYPE_UNICODE)
        pki_nvtx_narrow(name, sizeof name, attr->message.unicode);
    if (*name && attr->identifierType == NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE)
        pki_nvtx_name_thread((uint32_t)attr->identifier.ullValue, name);
    else if (*name && attr->identifierType == NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX &&
             is_calling_thread(attr))
        pki_nvtx_name_thread((uint32_t)syscall(SYS_gettid), name);
    return NULL;
}

/* ---- ranges whose attributes are a payload ---- */

static int push_payload(nvtxDomainHandle_t handle, const nvtxPayloadData_t *data, size_t n)
{
    pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    if (unwanted(domain))
        return domain->ours ? NVTX_NO_PUSH_POP_TRACKING : pki_nvtx_push(domain, NULL);
    pki_nvtx_event event = {pki_nvtx_payload_region(domain, data, n), {0}};
    pki_nvtx_read_payloads(domain, data, n, &event.work);
    return pki_nvtx_push(domain, &event);
}

static int pop_payload(nvtxDomainHandle_t handle, const nvtxPayloadData_t *data, size_t n)
{
    pki_work more = {0};
    pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    if (domain->ours)
        return NVTX_NO_PUSH_POP_TRACKING;
    pki_nvtx_read_payloads(domain, data, n, &more);
    return pki_nvtx_pop_with(domain, &more);
}

static void mark_payload(nvtxDomainHandle_t handle, const nvtxPayloadData_t *data, size_t n)
{
    const pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    if (unwanted(domain))
        return;
    pki_nvtx_event event = {pki_nvtx_payload_region(domain, data, n), {0}};
    pki_nvtx_read_payloads(domain, data, n, &event.work);
    pki_nvtx_mark(&event);
}

static nvtxRangeId_t start_payload(nvtxDomainHandle_t handle, const nvtxPayloadData_t *data,
                                   size_t n)
{
    const pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    if (unwanted(domain))
        return 0;
    pki_nvtx_event event = {pki_nvtx_payload_region(domain, data, n), {0}};
    pki_nvtx_read_payloads(domain, data, n, &event.work);
    return pki_nvtx_range_start(&event);
}

static void end_payload(nvtxDomainHandle_t handle, nvtxRangeId_t id, const nvtxPayloadData_t *data,
                        size_t n)
{
    pki_work more = {0};
    pki_nvtx_read_payloads(pki_nvtx_domain_of(handle), data, n, &more);
    pki_nvtx_range_end(id, &more);
}

static uint8_t is_enabled(nvtxDomainHandle_t handle)
{
    return !unwanted(pki_nvtx_domain_of(handle));
}

/* ---- filling in ---- */

typedef void (*any_function)(void);

#define AT(id, name) [id] = (any_function)(name)

static const any_function core[] = {AT(NVTX_CBID_CORE_MarkEx, mark_default),
                                    AT(NVTX_CBID_CORE_MarkA, mark_text),
                                    AT(NVTX_CBID_CORE_MarkW, mark_wide),
                                    AT(NVTX_CBID_CORE_RangeStartEx, start_default),
                                    AT(NVTX_CBID_CORE_RangeStartA, start_text),
                                    AT(NVTX_CBID_CORE_RangeStartW, start_wide),
                                    AT(NVTX_CBID_CORE_RangeEnd, end_default),
                                    AT(NVTX_CBID_CORE_RangePushEx, push_default),
                                    AT(NVTX_CBID_CORE_RangePushA, pki_nvtx_push_text),
                                    AT(NVTX_CBID_CORE_RangePushW, push_wide),
                                    AT(NVTX_CBID_CORE_RangePop, pki_nvtx_pop_default),
                                    AT(NVTX_CBID_CORE_NameCategoryA, name_category),
                                    AT(NVTX_CBID_CORE_NameCategoryW, name_category_wide),
                                    AT(NVTX_CBID_CORE_NameOsThreadA, name_thread),
                                    AT(NVTX_CBID_CORE_NameOsThreadW, name_thread_wide)};

static const any_function core2[] = {AT(NVTX_CBID_CORE2_DomainMarkEx, mark_ex),
                                     AT(NVTX_CBID_CORE2_DomainRangeStartEx, start_ex),
                                     AT(NVTX_CBID_CORE2_DomainRangeEnd, end_in),
                                     AT(NVTX_CBID_CORE2_DomainRangePushEx, pki_nvtx_push_ex),
                                     AT(NVTX_CBID_CORE2_DomainRangePop, pki_nvtx_pop),
                                     AT(NVTX_CBID_CORE2_DomainResourceCreate, create_resource),
                                     AT(NVTX_CBID_CORE2_DomainNameCategoryA, name_category_in),
                                     AT(NVTX_CBID_CORE2_DomainNameCategoryW, name_category_in_wide),
                                     AT(NVTX_CBID_CORE2_DomainRegisterStringA, register_text),
                                     AT(NVTX_CBID_CORE2_DomainRegisterStringW, register_wide),
                                     AT(NVTX_CBID_CORE2_DomainCreateA, create_domain),
                                     AT(NVTX_CBID_CORE2_DomainCreateW, create_domain_wide)};

static const any_function extension[] = {
    AT(NVTX3EXT_CBID_nvtxPayloadSchemaRegister, pki_nvtx_register_schema),
    AT(NVTX3EXT_CBID_nvtxMarkPayload, mark_payload),
    AT(NVTX3EXT_CBID_nvtxRangePushPayload, push_payload),
    AT(NVTX3EXT_CBID_nvtxRangePopPayload, pop_payload),
    AT(NVTX3EXT_CBID_nvtxRangeStartPayload, start_payload),
    AT(NVTX3EXT_CBID_nvtxRangeEndPayload, end_payload),
    AT(NVTX3EXT_CBID_nvtxDomainIsEnabled, is_enabled)};

static bool fill(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module,
                 const any_function *ours, size_t n)
{
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!callbacks->GetModuleFunctionTable(module, &table, &size) || !table)
        return false;
    for (size_t i = 0; i < n && i < size; i++)
        if (ours[i] && table[i])
            *table[i] = ours[i];
    return true;
}

/* The variable may come from outside, before anybody has called pk_start. */
static bool are_welcome(void)
{
    char text[8];
    return pki_load(&pki_nvtx_users.welcome) ||
           (pki_tuning_of_environment(PKI_TUNING_NVTX_CONSUME, text, sizeof text) &&
            strcmp(text, "1") == 0);
}

int pki_nvtx_attach(NvtxGetExportTableFunc_t get)
{
    const NvtxExportTableCallbacks *callbacks =
        get && are_welcome() ? get(NVTX_ETID_CALLBACKS) : NULL;
    if (!callbacks || callbacks->struct_size < sizeof *callbacks ||
        !fill(callbacks, NVTX_CB_MODULE_CORE, core, PKI_COUNT_OF(core)))
        return 0;
    fill(callbacks, NVTX_CB_MODULE_CORE2, core2, PKI_COUNT_OF(core2));
    pki_fetch_add(&pki_nvtx_users.attached, 1);
    return 1;
}

/* Those of a module that is not ours are told so: nothing of it is called then. */
int pki_nvtx_attach_extension(nvtxExtModuleInfo_t *module)
{
    if (!are_welcome() || !module || module->moduleId != NVTX_EXT_PAYLOAD_MODULEID ||
        module->segmentsCount == 0)
        return 0;
    const nvtxExtModuleSegment_t *segment = &module->segments[0];
    for (size_t i = 0; i < PKI_COUNT_OF(extension) && i < segment->slotCount; i++)
        if (extension[i])
            segment->functionSlots[i] = (intptr_t)extension[i];
    return 1;
}
