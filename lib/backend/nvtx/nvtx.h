/* lib/backend/nvtx/nvtx.h - what the files of the NVTX backend share.
 *
 * NVTX is a header without a library: whoever uses it looks, at its first call, for a tool named by
 * NVTX_INJECTION64_PATH, and the tool fills in function pointers. perfkit is on either side:
 *
 *     nvtx/emit.c    our regions as ranges, for a tool that listens: a small user of NVTX, of our
 *                    own: the functions in the headers would put their symbols into our archive
 *     nvtx/attach.c  the backend; whose the tool is, how others are made to find us, and the
 *                    function pointers that we fill in
 *     nvtx/ranges.c  what is known of each thread; domains, categories and names of regions;
 *                    ranges of a thread (push, pop) and marks become regions, ranges of the process
 *                    (start, end) activities
 *     nvtx/wanted.c  whether a session wants other people's ranges
 *     nvtx/entry.c   the symbols that users of NVTX look for
 *     shim/          the same symbols in a library of their own, for programs with a static perfkit
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <pk/region.h>

#include "backend/nvtx/wanted.h"
#include "backend/shim/pkshim.h"
#include "core/thread.h"
#include "session/backend.h"

#define PKI_NVTX_VARIABLE "NVTX_INJECTION64_PATH"
#define PKI_NVTX_OUR_DOMAIN "perfkit"

/* ---- nvtx/tool.c ---- */

/* A library that NVTX_INJECTION64_PATH names and that is not perfkit, with its entry points; or one
 * that is linked into the program. Without an entry point the name is that of something else, or
 * empty if nothing is named. */
typedef struct pki_nvtx_tool {
    char name[PATH_MAX];
    NvtxInitializeInjectionNvtxFunc_t init;
    NvtxExtInitializeInjectionFunc_t init_extension;
} pki_nvtx_tool;

bool pki_nvtx_find_tool(pki_nvtx_tool *tool);

/* ---- nvtx/emit.c ---- */

extern pki_mirror pki_nvtx_mirror;

/* False, and why in words (of the tool that did not want to, or ""): nobody listens. */
bool pki_nvtx_emit_start(char *reason, size_t size);

/* ---- nvtx/ranges.c ---- */

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
void pki_nvtx_add_schema(pki_nvtx_domain *domain, const pki_nvtx_schema *schema);
const pki_nvtx_schema *pki_nvtx_schema_of(const pki_nvtx_domain *domain, uint64_t id);

/* The region of a message in a domain. A category, unless 0, is part of the name and an argument in
 * the trace. */
pk_region *pki_nvtx_region(const pki_nvtx_domain *domain, const char *message, uint32_t category,
                           pki_nvtx_meaning *meaning);

/* The same for a message that has been registered: its handle is the region without a category. */
pk_region *pki_nvtx_registered(const pki_nvtx_domain *domain, nvtxStringHandle_t handle,
                               uint32_t category, pki_nvtx_meaning *meaning);

/* Does the text contain the word, which is in small letters? */
bool pki_nvtx_contains(const char *text, const char *word);

/* As UTF-8, whatever the locale; cut to fit. */
void pki_nvtx_narrow(char *out, size_t size, const wchar_t *wide);

void pki_nvtx_domains_after_fork(void);

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

/* ---- nvtx/ranges.c ---- */

/* The event of these attributes, through what the calling thread remembers of the last ones. */
pki_nvtx_event pki_nvtx_event_of(const pki_nvtx_domain *domain, const nvtxEventAttributes_t *attr);
pki_nvtx_event pki_nvtx_event_of_text(const char *message);

/* Names the thread of that system's id; for the calling one the name holds for all sessions. */
void pki_nvtx_name_thread(uint32_t tid, const char *name);

/* ---- nvtx/ranges.c ---- */

/* What users of NVTX call most. */
int pki_nvtx_push_text(const char *message);
int pki_nvtx_push_ex(nvtxDomainHandle_t handle, const nvtxEventAttributes_t *attr);
int pki_nvtx_pop_default(void);
int pki_nvtx_pop(nvtxDomainHandle_t handle);

/* event NULL: no session wants it, but its pop will come. */
int pki_nvtx_push(pki_nvtx_domain *domain, const pki_nvtx_event *event);
int pki_nvtx_pop_with(const pki_nvtx_domain *domain, const pki_work *more);
void pki_nvtx_mark(const pki_nvtx_event *event);

/* ---- nvtx/ranges.c ---- */

/* 0: the range is not recorded. */
uint64_t pki_nvtx_range_start(const pki_nvtx_event *event);
void pki_nvtx_range_end(uint64_t id, const pki_work *more);

/* Hands over those that have ended; and those that have not, at a session's end. */
void pki_nvtx_ranges_collect(void);
void pki_nvtx_ranges_stop(void);
void pki_nvtx_ranges_after_fork(void);

/* ---- nvtx/attach.c ---- */

/* What the entry points do: 0 if nobody wants to hear of ranges. */
int pki_nvtx_attach(NvtxGetExportTableFunc_t get);
int pki_nvtx_attach_extension(nvtxExtModuleInfo_t *module);
