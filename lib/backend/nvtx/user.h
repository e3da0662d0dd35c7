/* lib/backend/nvtx/user.h - what is known of a thread that uses NVTX: which ranges it has open, and
 * which regions its messages were.
 *
 * A message is looked up by the address of its text in a small table per thread, and compared,
 * since the same address may hold another text tomorrow. What is not there takes the way of
 * pk_region_named: a hash, and no lock for a known name.
 */
#pragma once

#include <string.h>

#include "backend/nvtx/nvtx.h"

#define PKI_NVTX_OPEN_MOST 128
#define PKI_NVTX_REMEMBERED 64 /* messages; a power of two */
#define PKI_NVTX_TEXT_BYTES 96

typedef struct pki_nvtx_open {
    const pki_nvtx_domain *domain;
    pk_region *region; /* NULL: not recorded, or closed by what was around it */
    uint32_t offset;   /* of its frame */
    uint32_t session;  /* the registry's serial */
    int level;
} pki_nvtx_open;

typedef struct pki_nvtx_remembered {
    uintptr_t message; /* an address; a registered string's is odd, and has no text */
    const pki_nvtx_domain *domain;
    pk_region *region;
    uint32_t category;
    pki_nvtx_meaning meaning;
    char text[PKI_NVTX_TEXT_BYTES];
} pki_nvtx_remembered;

_Static_assert(sizeof(pki_nvtx_remembered) == 128, "found by shifting");

typedef struct pki_nvtx_user {
    uint64_t knows; /* the last `wanted` that the thread has met; nobody's: none */
    unsigned open;
    unsigned over; /* ranges for which there was no room */
    char name[64];
    pki_nvtx_open ranges[PKI_NVTX_OPEN_MOST];
    pki_nvtx_remembered messages[PKI_NVTX_REMEMBERED];
} pki_nvtx_user;

extern PKI_NVTX_NEAR _Thread_local pki_nvtx_user *pki_nvtx_self;

/* The calling thread's; NULL without memory. */
pki_nvtx_user *pki_nvtx_find_user(void);

/* A session has begun since, or regions of messages may have other names than those remembered. */
void pki_nvtx_catch_up(pki_nvtx_user *user);

/* The region of a message, and it is remembered if user is not NULL. */
pk_region *pki_nvtx_look_up(pki_nvtx_user *user, const void *message, const pki_nvtx_domain *domain,
                            uint32_t category, bool registered, pki_nvtx_meaning *meaning);

/* Of attributes whose message is no plain text and no registered one. */
pk_region *pki_nvtx_other_region(const pki_nvtx_domain *domain, const nvtxEventAttributes_t *attr,
                                 pki_nvtx_meaning *meaning);

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
