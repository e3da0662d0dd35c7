/* lib/backend/nvtx/ranges.c - what is known of a thread that uses NVTX: domains, and the ranges it
 * has open */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

#include "backend/nvtx/nvtx.h"
#include "base/clock.h"
#include "base/memory.h"
#include "core/join.h"
#include "core/names.h"
#include "core/registry.h"
#include "measure/fold/fold.h"
#include "out/emit.h"
#include "session/activity.h"
#include "session/session.h"

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
        pki_load_acquire(&pki_nvtx_wanted); /* pairs with the release in category_named */
    memset(u->messages, 0, sizeof u->messages);
    if (u->knows >> 32 != now >> 32 && u->name[0])
        pk_thread_set_name(u->name);
    u->knows = now;
}

void pki_nvtx_name_thread(uint32_t tid, const char *name)
{
    int saved = errno;
    pki_nvtx_user *u = tid == (uint32_t)syscall(SYS_gettid) ? pki_nvtx_find_user() : NULL;
    if (u) {
        snprintf(u->name, sizeof u->name, "%s", name);
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

pki_nvtx_event pki_nvtx_event_of(const pki_nvtx_domain *domain, const nvtxEventAttributes_t *attr)
{
    pki_nvtx_meaning meaning;
    pki_nvtx_event event = {NULL, {0}};
    event.region = pki_nvtx_region_in(pki_nvtx_find_user(), domain, attr, &meaning);
    if (pki_nvtx_has_payload(attr))
        pki_nvtx_read_attributes(domain, attr, meaning, &event.work);
    return event;
}

pki_nvtx_event pki_nvtx_event_of_text(const char *message)
{
    pki_nvtx_meaning meaning;
    pki_nvtx_event event = {NULL, {0}};
    event.region = pki_nvtx_region_of(pki_nvtx_find_user(), pki_nvtx_domain_of(NULL), message,
                                      false, 0, &meaning);
    return event;
}

/* ---- domain ---- */

#define DOMAINS_MAX 1024

static pthread_mutex_t domain_lock = PTHREAD_MUTEX_INITIALIZER; /* among those that add */
pki_nvtx_domain pki_nvtx_default_domain = {.name = ""};
static pki_nvtx_domain others = {.name = "(other domains)"};
static pki_nvtx_domain *all;
static unsigned count;

/* Libraries whose ranges are known to be something else than work. */
static pk_kind kind_of(const char *name)
{
    return strcmp(name, "NCCL") == 0 ? PK_COMM : PK_OTHER;
}

static pki_nvtx_domain *find(const char *name)
{
    pki_nvtx_domain *d = all;
    while (d && strcmp(d->name, name) != 0)
        d = d->next;
    return d;
}

static pki_nvtx_domain *make(const char *name)
{
    pki_nvtx_domain *d = count < DOMAINS_MAX ? calloc(1, sizeof *d + strlen(name) + 1) : NULL;
    if (!d)
        return &others;
    d->name = memcpy(d + 1, name, strlen(name) + 1);
    d->ours = strcmp(name, PKI_NVTX_OUR_DOMAIN) == 0;
    d->kind = kind_of(name);
    d->next = all;
    all = d;
    count++;
    return d;
}

pki_nvtx_domain *pki_nvtx_domain_create(const char *name)
{
    if (!name || !*name)
        return &pki_nvtx_default_domain;
    int saved = errno;
    pthread_mutex_lock(&domain_lock);
    pki_nvtx_domain *d = find(name);
    d = d ? d : make(name);
    pthread_mutex_unlock(&domain_lock);
    errno = saved;
    return d;
}

/* ---- categories ---- */

bool pki_nvtx_contains(const char *text, const char *word)
{
    for (; text && *text; text++) {
        size_t n = 0;
        while (word[n] && (text[n] | 0x20) == word[n])
            n++;
        if (!word[n])
            return true;
    }
    return false;
}

static pki_nvtx_meaning meaning_of(const char *name)
{
    return pki_nvtx_contains(name, "byte")   ? PKI_NVTX_BYTES
           : pki_nvtx_contains(name, "flop") ? PKI_NVTX_FLOPS
                                             : PKI_NVTX_NUMBER;
}

/* The last name counts. */
static const pki_nvtx_category *category_of(const pki_nvtx_domain *d, uint32_t id)
{
    const pki_nvtx_category *c =
        pki_load_acquire(&d->categories); /* pairs with the release in pki_nvtx_name_category */
    while (c && c->id != id)
        c = c->next;
    return c;
}

void pki_nvtx_name_category(pki_nvtx_domain *d, uint32_t id, const char *name)
{
    int saved = errno;
    size_t n = name ? strnlen(name, PKI_NAME_BYTES) : 0;
    const pki_nvtx_category *before = category_of(d, id);
    pki_nvtx_category *c = NULL;
    if (n && !(before && strncmp(before->name, name, n + 1) == 0))
        c = calloc(1, sizeof *c + n + 1);
    if (c) {
        memcpy(c->name, name, n);
        c->id = id;
        c->meaning = meaning_of(c->name);
        pthread_mutex_lock(&domain_lock);
        c->next = d->categories;
        pki_store_release(&d->categories, c);
        pthread_mutex_unlock(&domain_lock);
        pki_nvtx_category_named();
    }
    errno = saved;
}

/* ---- schemas ---- */

void pki_nvtx_add_schema(pki_nvtx_domain *d, const pki_nvtx_schema *schema)
{
    pki_nvtx_schema *copy = malloc(sizeof *copy);
    if (!copy)
        return;
    *copy = *schema;
    pthread_mutex_lock(&domain_lock);
    copy->next = d->schemas;
    pki_store_release(&d->schemas, copy);
    pthread_mutex_unlock(&domain_lock);
}

const pki_nvtx_schema *pki_nvtx_schema_of(const pki_nvtx_domain *d, uint64_t id)
{
    const pki_nvtx_schema *s =
        pki_load_acquire(&d->schemas); /* pairs with the release in pki_nvtx_add_schema */
    while (s && s->id != id)
        s = s->next;
    return s;
}

/* ---- names of regions ---- */

static pk_region *tagged(const pki_nvtx_domain *d, const char *message, uint32_t category,
                         pki_nvtx_meaning *meaning)
{
    char tail[PKI_NAME_BYTES / 2], name[PKI_NAME_BYTES + 1];
    const pki_nvtx_category *c = category_of(d, category);
    *meaning = c ? c->meaning : PKI_NVTX_NUMBER;
    if (c)
        snprintf(tail, sizeof tail, "[%s]", c->name);
    else
        snprintf(tail, sizeof tail, "[category %u]", category);
    int room = (int)(sizeof name - 1 - strlen(tail)); /* a long message is cut, not the category */
    int n = snprintf(name, sizeof name, "%s%s%s", d->name, *d->name ? "/" : "", message);
    snprintf(name + PKI_MIN(n, room), strlen(tail) + 1, "%s", tail);
    return pki_region_tagged(d->kind, name, "category", category);
}

pk_region *pki_nvtx_region(const pki_nvtx_domain *d, const char *message, uint32_t category,
                           pki_nvtx_meaning *meaning)
{
    char name[PKI_NAME_BYTES + 1];
    *meaning = PKI_NVTX_NUMBER;
    if (!message || !*message)
        message = "(unnamed)";
    if (category)
        return tagged(d, message, category, meaning);
    if (!*d->name)
        return pk_region_named_of(d->kind, message);
    snprintf(name, sizeof name, "%s/%s", d->name, message);
    return pk_region_named_of(d->kind, name);
}

pk_region *pki_nvtx_registered(const pki_nvtx_domain *d, nvtxStringHandle_t handle,
                               uint32_t category, pki_nvtx_meaning *meaning)
{
    pk_region *plain = (pk_region *)handle;
    *meaning = PKI_NVTX_NUMBER;
    if (!plain)
        return pki_nvtx_region(d, NULL, category, meaning);
    if (!category)
        return plain;
    size_t domain = strlen(d->name);
    bool has_domain =
        domain && strncmp(plain->name, d->name, domain) == 0 && plain->name[domain] == '/';
    return tagged(d, plain->name + (has_domain ? domain + 1 : 0), category, meaning);
}

/* ---- wide text ---- */

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; --i > 0; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)((0xF00u >> n) | c);
    return n;
}

void pki_nvtx_narrow(char *out, size_t size, const wchar_t *wide)
{
    size_t n = 0;
    for (; wide && *wide && n + 4 < size; wide++) {
        uint32_t c = (uint32_t)*wide;
        n += put_utf8(out + n, c > 0x10FFFF || (c >= 0xD800 && c < 0xE000) ? 0xFFFD : c);
    }
    out[n] = '\0';
}

void pki_nvtx_domains_after_fork(void)
{
    pthread_mutex_init(&domain_lock, NULL);
}

/* ---- a thread's ranges, as NVTX's users call them ---- */

/* Each domain has a stack of its own on each thread; perfkit has one per thread. So what is open is
 * kept with its domain (nvtx/user.h), also while no session is open, and a pop finds what it ends.
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
PKI_COLD int pki_nvtx_push(pki_nvtx_domain *domain, const pki_nvtx_event *event)
{
    pki_nvtx_user *u = pki_nvtx_find_user();
    if (!u || u->open == PKI_NVTX_OPEN_MOST) {
        if (u)
            u->over++;
        if (event)
            pki_registry_refuse_region();
        return NVTX_NO_PUSH_POP_TRACKING;
    }
    if (event && u->knows != pki_load(&pki_nvtx_wanted))
        pki_nvtx_catch_up(u);
    int level = open_one(u, domain, event ? event->region : NULL);
    if (event)
        add_work(event->region, &event->work);
    return level;
}

/* Has this thread pushed before in the session, and is there room for one more? */
static inline bool is_ready(const pki_nvtx_user *u)
{
    return u->knows == pki_load(&pki_nvtx_wanted) && u->open < PKI_NVTX_OPEN_MOST;
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

int pki_nvtx_push_ex(nvtxDomainHandle_t handle, const nvtxEventAttributes_t *attr)
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

int pki_nvtx_push_text(const char *message)
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

int pki_nvtx_pop(nvtxDomainHandle_t handle)
{
    return pop_from(pki_nvtx_domain_of(handle), NULL);
}

int pki_nvtx_pop_default(void)
{
    return pop_from(pki_nvtx_domain_of(NULL), NULL);
}

int pki_nvtx_pop_with(const pki_nvtx_domain *domain, const pki_work *more)
{
    return pop_from(domain, more);
}

void pki_nvtx_mark(const pki_nvtx_event *event)
{
    pki_nvtx_user *u = pki_nvtx_find_user();
    pki_work work = event->work;
    if (u && u->knows != pki_load(&pki_nvtx_wanted))
        pki_nvtx_catch_up(u);
    if (!work.payload_type && work.bytes) {
        work.payload = work.bytes;
        work.payload_type = PKI_PAYLOAD_UNSIGNED;
    }
    pki_mark_payload(event->region, (pki_payload_type)work.payload_type, work.payload);
}

/* ---- range ---- */

/* Ranges with an id, which may begin on one thread and end on another,
 * and overlap as they like.
 *
 * So they are no regions of a thread: they stand on tracks of their own, as many as are needed to
 * keep those that overlap apart, and count in the distribution of their name, but in no thread's
 * self times. An open range is a cell; its id is the cell's number and how often that has been
 * used, so an id that is ended twice, or never was one, finds nothing. Taking and giving back cells
 * is lock-free; memory for more is taken under a lock. */

#define CELLS 1024u /* in a block */
#define BLOCKS 64u
#define NOWHERE UINT32_MAX
#define LANES 64u
#define LANE_TID (1u << 29) /* no thread's: Linux ends at 2^22 */

enum { FREE, OPEN, ENDED };

typedef struct cell {
    uint64_t state; /* how often used << 2 | one of the above */
    uint32_t next;  /* free, or ended and to be handed over */
    uint32_t session;
    uint32_t region, begun_by, ended_by;
    uint32_t monotonic;
    uint64_t start, end;
    pki_work work;
} cell;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for growing */
static cell *blocks[BLOCKS];
static uint32_t block_count;
static pki_free_list free_cells; /* by cell + 1 */
static uint32_t ended_head = NOWHERE;
static uint64_t lane_end[LANES];

static cell *cell_at(uint32_t i)
{
    return &pki_load(&blocks[i / CELLS])[i % CELLS];
}

/* ---- cells ---- */

static uint32_t *link_of(void *none, uint32_t number)
{
    (void)none;
    return &cell_at(number - 1)->next;
}

static void release(uint32_t i)
{
    pki_free_list_push(&free_cells, link_of, NULL, i + 1);
}

/* NOWHERE: none is free. */
static uint32_t pop_free(void)
{
    return pki_free_list_pop(&free_cells, link_of, NULL) - 1;
}

static PKI_COLD bool grow(void)
{
    int saved = errno;
    pthread_mutex_lock(&lock);
    bool more = (uint32_t)pki_load(&free_cells) != 0; /* somebody else has */
    cell *cells = !more && block_count < BLOCKS ? calloc(CELLS, sizeof *cells) : NULL;
    if (cells) {
        uint32_t first = block_count * CELLS;
        pki_store(&blocks[block_count], cells);
        pki_store_release(&block_count, block_count + 1); /* pairs with the acquire in range_end */
        for (uint32_t i = CELLS; i-- > 0;)
            release(first + i);
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
    return more || cells;
}

static uint32_t claim(void)
{
    uint32_t i = pop_free();
    while (i == NOWHERE && grow())
        i = pop_free();
    return i;
}

/* ---- start and end ---- */

static uint32_t thread_id(void)
{
    return pki_thread_is_joined(pki_self) ? pki_self->tid : (uint32_t)syscall(SYS_gettid);
}

uint64_t pki_nvtx_range_start(const pki_nvtx_event *event)
{
    uint32_t i = claim();
    if (i == NOWHERE) {
        pki_registry_refuse_point();
        return 0;
    }
    cell *c = cell_at(i);
    uint64_t uses = (pki_load(&c->state) >> 2) + 1;
    c->session = pki_registry_serial();
    c->region = pki_region_id(event->region);
    c->begun_by = thread_id();
    pki_store(&c->monotonic, pki_the_session.config.monotonic);
    c->work = event->work;
    c->start = pki_ticks(c->monotonic);
    pki_store_release(&c->state, uses << 2 | OPEN); /* pairs with the acquire in close_cell */
    return (uint64_t)(i + 1) << 40 | (uses & (((uint64_t)1 << 40) - 1));
}

/* One of those who want to close it does. */
static bool close_cell(cell *c, uint64_t uses)
{
    uint64_t state = pki_load_acquire(&c->state);
    return (state & 3) == OPEN && state >> 2 == uses &&
           __atomic_compare_exchange_n(&c->state, &state, uses << 2 | ENDED, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void hand_over(uint32_t i)
{
    uint32_t head = pki_load(&ended_head);
    do {
        pki_store(&cell_at(i)->next, head);
    } while (
        !__atomic_compare_exchange_n(&ended_head, &head, i, false, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED)); /* pairs with the acquire in collect */
}

void pki_nvtx_range_end(uint64_t id, const pki_work *more)
{
    uint32_t i = (uint32_t)(id >> 40) - 1;
    uint64_t uses = id & (((uint64_t)1 << 40) - 1);
    if (id >> 40 == 0 || i / CELLS >= pki_load_acquire(&block_count))
        return;
    cell *c = cell_at(i);
    uint64_t now = pki_ticks(pki_load(&c->monotonic));
    if (!close_cell(c, uses))
        return;
    c->end = now;
    c->ended_by = thread_id();
    if (more && more->payload_type) {
        c->work.payload = more->payload;
        c->work.payload_type = more->payload_type;
    }
    c->work.bytes += more ? more->bytes : 0;
    c->work.flops += more ? more->flops : 0;
    hand_over(i);
}

/* ---- into the trace: under the drain lock ---- */

/* The first track that has nothing at that time or later; nor at the same, since viewers that add
 * up in floating point would see those overlap. */
static uint32_t lane_for(uint64_t start, uint64_t end)
{
    uint32_t lane = 0;
    while (lane < LANES && lane_end[lane] && lane_end[lane] >= start)
        lane++;
    if (lane == LANES)
        return 0;
    lane_end[lane] = end;
    char name[32];
    snprintf(name, sizeof name, lane ? "NVTX ranges %u" : "NVTX ranges", lane + 1);
    return pki_track_add(&(pki_track){.pid = pki_the_session.config.world.pid,
                                      .tid = LANE_TID + lane,
                                      .thread = name,
                                      .sort = PKI_BLOCKS_MAX + lane});
}

static size_t put_payload(const pki_work *work, pki_activity_arg *arg, char text[32])
{
    double real;
    if (!work->payload_type)
        return 0;
    *arg = (pki_activity_arg){"payload", NULL, (int64_t)work->payload};
    memcpy(&real, &work->payload, sizeof real);
    if (work->payload_type == PKI_PAYLOAD_REAL) {
        *pki_put_double(text, real) = '\0';
        arg->text = text;
    }
    return 1;
}

static void add_activity(const cell *c, bool unbalanced)
{
    char real[32];
    pki_activity_arg args[6];
    size_t n = put_payload(&c->work, args, real);
    const pki_name *name = pki_name_at(c->region);
    uint64_t start = pki_activity_ns_of_ticks(c->start), end = pki_activity_ns_of_ticks(c->end);
    if (name->key_length)
        args[n++] = (pki_activity_arg){name->key, NULL, name->value};
    if (c->work.flops)
        args[n++] = (pki_activity_arg){"flops", NULL, (int64_t)c->work.flops};
    args[n++] = (pki_activity_arg){"thread", NULL, c->begun_by};
    if (unbalanced)
        args[n++] = (pki_activity_arg){"unbalanced", NULL, 1};
    else if (c->ended_by != c->begun_by)
        args[n++] = (pki_activity_arg){"ended by", NULL, c->ended_by};
    pki_activity_add(&(pki_activity){.kind = PKI_ACTIVITY_RANGE,
                                     .track = lane_for(start, end),
                                     .name = name->name,
                                     .name_length = name->length,
                                     .start = start,
                                     .end = end,
                                     .device = PKI_NO_DEVICE,
                                     .bytes = c->work.bytes,
                                     .args = args,
                                     .arg_count = n});
}

static void record(const cell *c, bool unbalanced)
{
    if (c->session != pki_registry_serial())
        return; /* its session is over */
    uint64_t start = pki_activity_ns_of_ticks(c->start), end = pki_activity_ns_of_ticks(c->end);
    pki_fold_lock();
    pki_fold_range(pki_fold_now(), c->region, end > start ? end - start : 0, c->work.bytes,
                   c->work.flops);
    pki_fold_unlock();
    add_activity(c, unbalanced);
}

static void free_cell(uint32_t i)
{
    cell *c = cell_at(i);
    pki_store_release(&c->state, pki_load(&c->state) >> 2 << 2 | FREE);
    release(i);
}

/* The last that ended come first: turned round, so that each finds the tracks as they were. */
static uint32_t in_order(uint32_t list)
{
    uint32_t turned = NOWHERE;
    while (list != NOWHERE) {
        uint32_t next = pki_load(&cell_at(list)->next);
        pki_store(&cell_at(list)->next, turned);
        turned = list;
        list = next;
    }
    return turned;
}

void pki_nvtx_ranges_collect(void)
{
    uint32_t i = in_order(__atomic_exchange_n(&ended_head, NOWHERE, __ATOMIC_ACQUIRE));
    while (i != NOWHERE) {
        uint32_t next = pki_load(&cell_at(i)->next);
        record(cell_at(i), false);
        free_cell(i);
        i = next;
    }
}

void pki_nvtx_ranges_stop(void)
{
    pki_nvtx_ranges_collect();
    for (uint32_t i = 0; i < pki_load_acquire(&block_count) * CELLS; i++) {
        cell *c = cell_at(i);
        if (!close_cell(c, pki_load(&c->state) >> 2))
            continue;
        c->end = pki_ticks(c->monotonic);
        record(c, true);
        free_cell(i);
    }
    memset(lane_end, 0, sizeof lane_end);
}

/* Nobody is at a cell any more; what was open is the parent's. */
void pki_nvtx_ranges_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    free_cells = 0;
    ended_head = NOWHERE;
    for (uint32_t i = block_count * CELLS; i-- > 0;)
        free_cell(i);
    memset(lane_end, 0, sizeof lane_end);
}
