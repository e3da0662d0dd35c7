/* lib/backend/nvtx/emit.c - our regions, as ranges of the NVTX domain "perfkit".
 *
 * A user of NVTX has function pointers that a tool fills in. These here are ours, so it is known
 * what the tool listens to, and nothing is called that it does not. Regions have a registered
 * string each, the colour of their kind, and the kind as category. What pk_region_add counted is a
 * payload of the range's end where the tool takes that, else a mark before it.
 */
#include "backend/nvtx/nvtx.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/names.h"

#define FUNCTIONS 16 /* more than any module has */
#define MODULES NVTX_CB_MODULE_SIZE
#define SLOTS 63

typedef void (*any_function)(void);

static any_function functions[MODULES][FUNCTIONS];
static NvtxFunctionPointer *tables[MODULES][FUNCTIONS + 1];
static intptr_t slots[SLOTS];

/* Of the tool; NULL where it does not listen. */
static nvtxDomainRangePushEx_impl_fntype push;
static nvtxDomainRangePop_impl_fntype pop;
static nvtxDomainMarkEx_impl_fntype put_mark;
static int (*pop_payload)(nvtxDomainHandle_t, const nvtxPayloadData_t *, size_t);

static nvtxDomainHandle_t domain;
static uint64_t schema;
static nvtxStringHandle_t names[PKI_NAMES_MAX]; /* by id; pages that no name needs stay untouched */
static uint8_t registered[PKI_NAMES_MAX];       /* 0, 1: being registered, 2: done */
static nvtxDomainRegisterStringA_impl_fntype register_string;
static bool attached;

static _Thread_local uint32_t open_ranges;
static _Thread_local bool inside; /* a tool may use perfkit itself */

/* ---- what a tool asks of us ---- */

static unsigned size_of(NvtxCallbackModule module)
{
    static const uint8_t sizes[MODULES] = {[NVTX_CB_MODULE_CORE] = NVTX_CBID_CORE_SIZE,
                                           [NVTX_CB_MODULE_CUDA] = NVTX_CBID_CUDA_SIZE,
                                           [NVTX_CB_MODULE_OPENCL] = NVTX_CBID_OPENCL_SIZE,
                                           [NVTX_CB_MODULE_CUDART] = NVTX_CBID_CUDART_SIZE,
                                           [NVTX_CB_MODULE_CORE2] = NVTX_CBID_CORE2_SIZE,
                                           [NVTX_CB_MODULE_SYNC] = NVTX_CBID_SYNC_SIZE};
    return (unsigned)module < MODULES ? sizes[module] : 0;
}

static int module_table(NvtxCallbackModule module, NvtxFunctionTable *table, unsigned *size)
{
    unsigned n = size_of(module);
    for (unsigned i = 1; i < n && i < FUNCTIONS; i++)
        tables[module][i] = &functions[module][i];
    if (size)
        *size = n;
    if (table)
        *table = n ? tables[module] : NULL;
    return n > 0;
}

static void ignore_version(uint32_t version)
{
    (void)version;
}

static const void *export_table(uint32_t id)
{
    static const NvtxExportTableCallbacks callbacks = {sizeof callbacks, module_table};
    static const NvtxExportTableVersionInfo version = {sizeof version, NVTX_VERSION, 0,
                                                       ignore_version};
    return id == NVTX_ETID_CALLBACKS     ? (const void *)&callbacks
           : id == NVTX_ETID_VERSIONINFO ? (const void *)&version
                                         : NULL;
}

static void attach_extension(const pki_nvtx_tool *tool)
{
    nvtxExtModuleSegment_t segment = {0, SLOTS, slots};
    nvtxExtModuleInfo_t module = {NVTX_VERSION,
                                  sizeof module,
                                  NVTX_EXT_PAYLOAD_MODULEID,
                                  NVTX_EXT_PAYLOAD_COMPATID,
                                  1,
                                  &segment,
                                  NULL,
                                  pki_nvtx_types};
    if (!tool->init_extension || tool->init_extension(&module) == 0)
        memset(slots, 0, sizeof slots);
}

/* ---- what we say once ---- */

#define TOOL(module, id, type) ((type)functions[module][id])

static void fill_functions(void)
{
    push = TOOL(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx,
                nvtxDomainRangePushEx_impl_fntype);
    pop =
        TOOL(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, nvtxDomainRangePop_impl_fntype);
    put_mark =
        TOOL(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainMarkEx, nvtxDomainMarkEx_impl_fntype);
    register_string = TOOL(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA,
                           nvtxDomainRegisterStringA_impl_fntype);
    memcpy(&pop_payload, &slots[NVTX3EXT_CBID_nvtxRangePopPayload], sizeof pop_payload);
}

static void introduce_kinds(void)
{
    static const char *const kinds[] = {"other", "compute", "data", "comm", "io", "wait"};
    nvtxDomainNameCategoryA_impl_fntype name =
        TOOL(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainNameCategoryA,
             nvtxDomainNameCategoryA_impl_fntype);
    for (uint32_t kind = PK_COMPUTE; name && kind <= PK_WAIT; kind++)
        name(domain, kind, kinds[kind]);
}

static void introduce_schema(void)
{
    static const nvtxPayloadSchemaEntry_t entries[] = {
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "bytes"},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "flops", .offset = sizeof(uint64_t)}};
    static const nvtxPayloadSchemaAttr_t attr = {
        .fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
        .name = "perfkit work",
        .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
        .entries = entries,
        .numEntries = PKI_COUNT_OF(entries),
        .payloadStaticSize = 2 * sizeof(uint64_t)};
    uint64_t (*add)(nvtxDomainHandle_t, const nvtxPayloadSchemaAttr_t *);
    memcpy(&add, &slots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister], sizeof add);
    schema = add ? add(domain, &attr) : 0;
}

static void introduce(void)
{
    nvtxDomainCreateA_impl_fntype create =
        TOOL(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, nvtxDomainCreateA_impl_fntype);
    domain = create ? create(PKI_NVTX_OUR_DOMAIN) : NULL;
    introduce_kinds();
    introduce_schema();
}

/* ---- regions ---- */

static nvtxStringHandle_t handle_of(const pki_name *name)
{
    uint8_t none = 0;
    if (PKI_LIKELY(pki_load_acquire(&registered[name->id]) == 2))
        return names[name->id];
    if (!register_string || !__atomic_compare_exchange_n(&registered[name->id], &none, 1, false,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return NULL; /* another thread is about to */
    names[name->id] = register_string(domain, name->name);
    pki_store_release(&registered[name->id], (uint8_t)2); /* pairs with the acquire above */
    return names[name->id];
}

static nvtxEventAttributes_t attributes_of(uint32_t id)
{
    static const uint32_t colours[] = {
        [PK_OTHER] = 0xFF9E9E9E, [PK_COMPUTE] = 0xFF43A047, [PK_DATA] = 0xFF1E88E5,
        [PK_COMM] = 0xFFFB8C00,  [PK_IO] = 0xFF8E24AA,      [PK_WAIT] = 0xFFE53935};
    const pki_name *name = pki_name_at(id);
    nvtxEventAttributes_t attr = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    uint32_t kind = name->kind <= PK_WAIT ? name->kind : PK_OTHER;
    attr.category = kind;
    attr.colorType = NVTX_COLOR_ARGB;
    attr.color = colours[kind];
    attr.message.registered = handle_of(name);
    attr.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    if (!attr.message.registered) {
        attr.messageType = NVTX_MESSAGE_TYPE_ASCII;
        attr.message.ascii = name->name;
    }
    return attr;
}

/* Regions that were open at pk_stop have had no end. */
static void close_left_open(unsigned depth)
{
    for (; depth == 0 && open_ranges > 0; open_ranges--)
        pop(domain);
}

static void begin(uint32_t id, unsigned depth)
{
    if (inside)
        return;
    int saved = errno;
    inside = true;
    close_left_open(depth);
    nvtxEventAttributes_t attr = attributes_of(id);
    push(domain, &attr);
    open_ranges++;
    inside = false;
    errno = saved;
}

/* True if that was the range's end, too. */
static bool end_with_payload(const pki_work *work)
{
    const uint64_t counts[2] = {work->bytes, work->flops};
    const nvtxPayloadData_t data = {schema, sizeof counts, counts};
    if (!pop_payload || !schema)
        return false;
    pop_payload(domain, &data, 1);
    return true;
}

static void mark_bytes(uint32_t id, const pki_work *work)
{
    nvtxEventAttributes_t attr = attributes_of(id);
    attr.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    attr.payload.ullValue = work->bytes;
    if (put_mark)
        put_mark(domain, &attr);
}

static void end(uint32_t id, const pki_work *work)
{
    if (inside || open_ranges == 0)
        return;
    int saved = errno;
    bool worked = work->bytes || work->flops;
    inside = true;
    bool ended = worked && end_with_payload(work);
    if (!ended && work->bytes)
        mark_bytes(id, work);
    if (!ended)
        pop(domain);
    open_ranges--;
    inside = false;
    errno = saved;
}

static void mark(uint32_t id)
{
    if (inside || !put_mark)
        return;
    int saved = errno;
    inside = true;
    nvtxEventAttributes_t attr = attributes_of(id);
    put_mark(domain, &attr);
    inside = false;
    errno = saved;
}

/* ---- the backend's part ---- */

pki_mirror pki_nvtx_mirror;

static bool attach(const pki_nvtx_tool *tool, char *reason, size_t size)
{
    if (tool->init(export_table) == 0) {
        memset(functions, 0, sizeof functions);
        snprintf(reason, size, "%.120s does not want to hear of ranges", tool->name);
        return false;
    }
    attach_extension(tool);
    fill_functions();
    if (!push || !pop) {
        snprintf(reason, size, "%.120s listens, but to no ranges of threads", tool->name);
        return false;
    }
    introduce();
    return true;
}

/* Once per process: a tool that has attached stays so. */
bool pki_nvtx_emit_start(char *reason, size_t size)
{
    static pki_nvtx_tool tool;
    static char refused[192];
    *reason = '\0';
    if (!attached && !tool.init && pki_nvtx_find_tool(&tool))
        attached = attach(&tool, refused, sizeof refused);
    pki_nvtx_mirror = attached ? (pki_mirror){begin, end, mark} : (pki_mirror){NULL, NULL, NULL};
    if (attached)
        snprintf(reason, size, "emitting regions to %.120s", tool.name);
    else if (tool.init)
        snprintf(reason, size, "%s", refused);
    else if (*tool.name)
        snprintf(reason, size, "%.120s is no tool that could be opened", tool.name);
    return attached;
}
