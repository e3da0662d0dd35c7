#include "backend/nvtx/user.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/join.h"
#include "core/registry.h"

#define REMAKES_AT_EXIT 3 /* thread-exit destructors may still use NVTX; not for ever */

static pki_nvtx_user nobody = {.knows = UINT64_MAX};
_Thread_local pki_nvtx_user *pki_nvtx_self = &nobody;

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

pki_nvtx_user *pki_nvtx_find_user(void)
{
    return PKI_LIKELY(pki_nvtx_self != &nobody) ? pki_nvtx_self : make_user();
}

PKI_COLD void pki_nvtx_catch_up(pki_nvtx_user *u)
{
    uint64_t now =
        pki_load_acquire(&pki_nvtx_wanted); /* pairs with the release in category_named */
    memset(u->messages, 0, sizeof u->messages);
    if (u->knows >> 32 != now >> 32 && u->name[0])
        pk_thread_name(u->name);
    u->knows = now;
}

void pki_nvtx_name_thread(uint32_t tid, const char *name)
{
    int saved = errno;
    pki_nvtx_user *u = tid == (uint32_t)syscall(SYS_gettid) ? pki_nvtx_find_user() : NULL;
    if (u) {
        snprintf(u->name, sizeof u->name, "%s", name);
        if (pki_nvtx_consuming())
            pk_thread_name(u->name);
    } else if (pki_nvtx_consuming()) {
        pki_thread_name_of(tid, name);
    }
    errno = saved;
}

/* ---- messages ---- */

PKI_COLD pk_region *pki_nvtx_look_up(pki_nvtx_user *u, const void *message,
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

PKI_COLD pk_region *pki_nvtx_other_region(const pki_nvtx_domain *domain,
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
