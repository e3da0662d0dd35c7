/* lib/backend/nvtx/nvtx.h - what the files of the NVTX backend share.
 *
 * NVTX is a header without a library: whoever uses it looks, at its first call, for a tool named by
 * NVTX_INJECTION64_PATH, and the tool fills in function pointers. perfkit is on either side:
 *
 *     nvtx/attach.c   the backend; whose the tool is, and our regions as ranges for it: a small
 * user of NVTX, of our own: the functions in the headers would put their symbols into our archive;
 * how others are made to find us; ranges of the process (start, end), which become activities
 *     nvtx/ranges.c   what users of NVTX call, and what is known of each thread: its ranges (push,
 *                     pop) and marks become regions
 *     nvtx/domains.c  domains, categories and names of regions; what payloads say
 *     nvtx/entry.c    the symbols that users of NVTX look for
 *     shim/           the same symbols in a library of their own, for programs with a static
 * perfkit
 */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <pk/region.h>

#include "backend/shim/pkshim.h"
#include "base/atomic.h"
#include "core/thread.h"
#include "session/backend.h"

#define PKI_NVTX_VARIABLE "NVTX_INJECTION64_PATH"
#define PKI_NVTX_OUR_DOMAIN "perfkit"

/* ---- does a session want other people's ranges? ---- */

/* Here, so that no table of the loader's is between: what a range's begin and end read. */
#define PKI_NVTX_NEAR __attribute__((visibility("hidden")))

typedef struct pki_nvtx_use {
    /* The session that wants ranges, by its registry's serial (high half), and how many categories
     * have been named by then; 0: no session does. */
    uint64_t wanted;
    uint32_t categories; /* that have been named, ever */
    unsigned attached;   /* users of NVTX that have found us */
    bool welcome;        /* those who come from here on, in this process, session or not */
} pki_nvtx_use;

extern PKI_NVTX_NEAR pki_nvtx_use pki_nvtx_users;

/* Among those who add domains, what is in them, and cells for ranges of the process. */
extern pthread_mutex_t pki_nvtx_lock;

static inline uint32_t pki_nvtx_session_now(void)
{
    return (uint32_t)(pki_load(&pki_nvtx_users.wanted) >> 32);
}

/* ---- domains, and the names of regions (nvtx/domains.c) ---- */

/* An entry of a payload that means something to a report: where it lies in the bytes. */
typedef struct pki_nvtx_field {
    uint32_t offset, bytes; /* bytes 0: there is none */
    uint32_t type;          /* NVTX_PAYLOAD_ENTRY_TYPE_* */
    uint32_t embedded;      /* of a text: it lies there itself, not its address */
} pki_nvtx_field;

typedef struct pki_nvtx_schema {
    uint64_t id;
    pki_nvtx_field moved, flops, message, other;
    struct pki_nvtx_schema *next;
} pki_nvtx_schema;

/* What a plain number that comes with a range says. */
typedef enum pki_nvtx_meaning { PKI_NVTX_NUMBER, PKI_NVTX_BYTES, PKI_NVTX_FLOPS } pki_nvtx_meaning;

typedef struct pki_nvtx_category {
    uint32_t id;
    pki_nvtx_meaning meaning;
    struct pki_nvtx_category *next;
    char name[];
} pki_nvtx_category;

/* Kept for the process's life; lists only grow, at their heads, with a release. */
typedef struct pki_nvtx_domain {
    const char *name; /* "": the default domain */
    bool ours;        /* not to be recorded: some perfkit's */
    pk_kind kind;
    pki_nvtx_category *categories;
    pki_nvtx_schema *schemas;
    struct pki_nvtx_domain *next;
} pki_nvtx_domain;

pki_nvtx_domain *pki_nvtx_domain_create(const char *name);

extern PKI_NVTX_NEAR pki_nvtx_domain pki_nvtx_default_domain;

static inline pki_nvtx_domain *pki_nvtx_domain_of(nvtxDomainHandle_t handle)
{
    return handle ? (pki_nvtx_domain *)handle : &pki_nvtx_default_domain;
}

void pki_nvtx_name_category(pki_nvtx_domain *domain, uint32_t id, const char *name);

/* The region of a message in a domain. A category, unless 0, is part of the name and an argument in
 * the trace. */
pk_region *pki_nvtx_region(const pki_nvtx_domain *domain, const char *message, uint32_t category,
                           pki_nvtx_meaning *meaning);

/* The same for a message that has been registered: its handle is the region without a category. */
pk_region *pki_nvtx_registered(const pki_nvtx_domain *domain, nvtxStringHandle_t handle,
                               uint32_t category, pki_nvtx_meaning *meaning);

/* As UTF-8, whatever the locale; cut to fit. */
void pki_nvtx_narrow(char *out, size_t size, const wchar_t *wide);

/* ---- what comes with a range ---- */

/* Sizes of C's types, in the order of NVTX_PAYLOAD_ENTRY_TYPE_*; the first is the list's own. */
extern const nvtxPayloadEntryTypeInfo_t pki_nvtx_types[NVTX_PAYLOAD_ENTRY_TYPE_INFO_ARRAY_SIZE];

/* What an event says, from wherever it says it. */
typedef struct pki_nvtx_event {
    pk_region *region;
    pki_work work;
} pki_nvtx_event;

uint64_t pki_nvtx_register_schema(nvtxDomainHandle_t handle, const nvtxPayloadSchemaAttr_t *attr);

/* Adds what n payloads say to work. */
void pki_nvtx_read_payloads(const pki_nvtx_domain *domain, const nvtxPayloadData_t *data, size_t n,
                            pki_work *work);

/* The message that one of them holds, as a region. */
pk_region *pki_nvtx_payload_region(const pki_nvtx_domain *domain, const nvtxPayloadData_t *data,
                                   size_t n);

/* A plain number, or payloads, in an event's attributes. */
void pki_nvtx_read_attributes(const pki_nvtx_domain *domain, const nvtxEventAttributes_t *attr,
                              pki_nvtx_meaning meaning, pki_work *work);

/* ---- ranges of the process (nvtx/attach.c) ---- */

/* 0: the range is not recorded. */
uint64_t pki_nvtx_range_start(const pki_nvtx_event *event);
void pki_nvtx_range_end(uint64_t id, const pki_work *more);

/* ---- users of NVTX (nvtx/ranges.c) ---- */

/* What the entry points do: 0 if nobody wants to hear of ranges. */
int pki_nvtx_attach(NvtxGetExportTableFunc_t get);
int pki_nvtx_attach_extension(nvtxExtModuleInfo_t *module);
