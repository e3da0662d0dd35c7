/* lib/backend/nvtx/emit.c - our regions as ranges of the NVTX domain "perfkit" */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "backend/nvtx/nvtx.h"
#include "core/names.h"

/* ---- payload ---- */

/* ---- numbers ---- */

#define TYPE(type)                                                                                 \
    {                                                                                              \
        sizeof(type), _Alignof(type)                                                               \
    }

const nvtxPayloadEntryTypeInfo_t pki_nvtx_types[NVTX_PAYLOAD_ENTRY_TYPE_INFO_ARRAY_SIZE] = {
    {NVTX_PAYLOAD_ENTRY_TYPE_INFO_ARRAY_SIZE, sizeof(nvtxPayloadEntryTypeInfo_t)},
    TYPE(char),
    TYPE(unsigned char),
    TYPE(short),
    TYPE(unsigned short),
    TYPE(int),
    TYPE(unsigned int),
    TYPE(long),
    TYPE(unsigned long),
    TYPE(long long),
    TYPE(unsigned long long),
    TYPE(int8_t),
    TYPE(uint8_t),
    TYPE(int16_t),
    TYPE(uint16_t),
    TYPE(int32_t),
    TYPE(uint32_t),
    TYPE(int64_t),
    TYPE(uint64_t),
    TYPE(float),
    TYPE(double),
    TYPE(long double),
    TYPE(size_t),
    TYPE(void *),
    TYPE(wchar_t),
    {1, 1},
    {2, 2},
    {4, 4}};

static uint32_t bytes_of(uint64_t type)
{
    static const uint8_t others[] = {[NVTX_PAYLOAD_ENTRY_TYPE_BYTE] = 1,
                                     [NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32] = 4,
                                     [NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64] = 8,
                                     [NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY] = 4,
                                     [NVTX_PAYLOAD_ENTRY_TYPE_COLOR_ARGB] = 4,
                                     [NVTX_PAYLOAD_ENTRY_TYPE_SCOPE_ID] = 8,
                                     [NVTX_PAYLOAD_ENTRY_TYPE_PID_UINT32] = 4,
                                     [NVTX_PAYLOAD_ENTRY_TYPE_PID_UINT64] = 8,
                                     [NVTX_PAYLOAD_ENTRY_TYPE_TID_UINT32] = 4,
                                     [NVTX_PAYLOAD_ENTRY_TYPE_TID_UINT64] = 8,
                                     [NVTX_PAYLOAD_ENTRY_TYPE_CSTRING] = sizeof(char *),
                                     [NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8] = sizeof(char *),
                                     [NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE] =
                                         sizeof(void *)};
    if (type > 0 && type < NVTX_PAYLOAD_ENTRY_TYPE_INFO_ARRAY_SIZE)
        return pki_nvtx_types[type].size;
    return type < PKI_COUNT_OF(others) ? others[type] : 0;
}

static bool is_real(uint32_t type)
{
    return type == NVTX_PAYLOAD_ENTRY_TYPE_FLOAT || type == NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE ||
           type == NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32 || type == NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64;
}

static bool is_signed(uint32_t type)
{
    return type == NVTX_PAYLOAD_ENTRY_TYPE_SHORT || type == NVTX_PAYLOAD_ENTRY_TYPE_INT ||
           type == NVTX_PAYLOAD_ENTRY_TYPE_LONG || type == NVTX_PAYLOAD_ENTRY_TYPE_LONGLONG ||
           type == NVTX_PAYLOAD_ENTRY_TYPE_INT8 || type == NVTX_PAYLOAD_ENTRY_TYPE_INT16 ||
           type == NVTX_PAYLOAD_ENTRY_TYPE_INT32 || type == NVTX_PAYLOAD_ENTRY_TYPE_INT64;
}

static bool is_whole(uint32_t type)
{
    return (type >= NVTX_PAYLOAD_ENTRY_TYPE_SHORT && type <= NVTX_PAYLOAD_ENTRY_TYPE_UINT64) ||
           type == NVTX_PAYLOAD_ENTRY_TYPE_SIZE;
}

static bool is_text(uint32_t type)
{
    return type == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING || type == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8;
}

static void set_real(pki_work *work, double value)
{
    memcpy(&work->payload, &value, sizeof value);
    work->payload_type = PKI_PAYLOAD_REAL;
}

/* Of 1, 2, 4 or 8 bytes. */
static uint64_t read_whole(const void *at, uint32_t bytes, bool with_sign)
{
    union {
        uint8_t one;
        uint16_t two;
        uint32_t four;
        uint64_t eight;
    } u = {.eight = 0};
    memcpy(&u, at, bytes);
    uint64_t value = bytes == 1 ? u.one : bytes == 2 ? u.two : bytes == 4 ? u.four : u.eight;
    unsigned above = 64 - 8 * bytes;
    return with_sign ? (uint64_t)((int64_t)(value << above) >> above) : value;
}

static void read_number(const void *at, uint32_t type, uint32_t bytes, pki_work *work)
{
    float single;
    double real;
    if (is_real(type) && bytes == sizeof single) {
        memcpy(&single, at, sizeof single);
        set_real(work, (double)single);
    } else if (is_real(type)) {
        memcpy(&real, at, sizeof real);
        set_real(work, real);
    } else if (is_whole(type)) {
        work->payload = read_whole(at, bytes, is_signed(type));
        work->payload_type = is_signed(type) ? PKI_PAYLOAD_SIGNED : PKI_PAYLOAD_UNSIGNED;
    }
}

/* ---- schemas ---- */

/* An entry at that offset; its bytes, 0 if nobody knows. */
static uint32_t entry_bytes(const nvtxPayloadSchemaEntry_t *e)
{
    bool fixed_text = is_text((uint32_t)e->type) && e->arrayOrUnionDetail && !e->flags;
    if (fixed_text)
        return e->arrayOrUnionDetail < 65536 ? (uint32_t)e->arrayOrUnionDetail : 0;
    if (e->flags & NVTX_PAYLOAD_ENTRY_FLAG_POINTER)
        return sizeof(void *);
    bool array = (e->flags & (NVTX_PAYLOAD_ENTRY_FLAG_IS_ARRAY |
                              NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_PAYLOAD_INDEX)) != 0;
    return array ? 0 : bytes_of(e->type);
}

static void note_entry(pki_nvtx_schema *s, const nvtxPayloadSchemaEntry_t *e, uint32_t offset,
                       uint32_t bytes, bool alone)
{
    uint32_t type = (uint32_t)e->type;
    bool plain = !(e->flags & ~(uint64_t)(NVTX_PAYLOAD_ENTRY_FLAG_HIDE | (3 << 10)));
    bool embedded = is_text(type) && e->arrayOrUnionDetail;
    const pki_nvtx_field field = {offset, bytes, type, embedded};
    if ((e->flags & (3 << 10)) == NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE)
        s->message = field;
    else if (!plain || !(is_whole(type) || is_real(type)))
        return;
    else if (!s->moved.bytes && is_whole(type) && pki_nvtx_contains(e->name, "byte"))
        s->moved = field;
    else if (!s->flops.bytes && is_whole(type) && pki_nvtx_contains(e->name, "flop"))
        s->flops = field;
    else if (alone)
        s->other = field;
}

static uint32_t aligned(uint32_t offset, uint32_t bytes, size_t pack)
{
    size_t by = bytes > 8 || (bytes & (bytes - 1)) ? 1 : bytes;
    by = pack && pack < by ? pack : by;
    return (uint32_t)((offset + by - 1) / by * by);
}

/* Where an entry's place is not given, it follows from those before; behind one whose size nobody
 * knows, nothing more is read. */
static void note_entries(pki_nvtx_schema *s, const nvtxPayloadSchemaAttr_t *attr)
{
    bool packed = attr->fieldMask & NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ALIGNMENT;
    uint32_t next = 0;
    for (size_t i = 0; i < attr->numEntries; i++) {
        const nvtxPayloadSchemaEntry_t *e = &attr->entries[i];
        uint32_t bytes = entry_bytes(e);
        if (!bytes || e->offset > UINT16_MAX || next > UINT16_MAX)
            return;
        next = e->offset ? (uint32_t)e->offset : aligned(next, bytes, packed ? attr->packAlign : 0);
        note_entry(s, e, next, bytes, attr->numEntries == 1);
        next += bytes;
    }
}

uint64_t pki_nvtx_register_schema(nvtxDomainHandle_t handle, const nvtxPayloadSchemaAttr_t *attr)
{
    static uint64_t made;
    pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    const uint64_t needed =
        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
    if (!attr || (attr->fieldMask & needed) != needed || !attr->entries)
        return 0;
    int saved = errno;
    pki_nvtx_schema s = {.id = 0};
    bool given = (attr->fieldMask & NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID) && attr->schemaId;
    s.id = given ? attr->schemaId
                 : NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START + pki_fetch_add(&made, (uint64_t)1);
    if (!pki_nvtx_schema_of(domain, s.id)) {
        note_entries(&s, attr);
        pki_nvtx_add_schema(domain, &s);
    }
    errno = saved;
    return s.id;
}

/* ---- payloads ---- */

static const void *field_at(const pki_nvtx_field *f, const nvtxPayloadData_t *data)
{
    bool there = f->bytes && data->size >= (size_t)f->offset + f->bytes;
    return there ? (const char *)data->payload + f->offset : NULL;
}

static uint64_t read_amount(const pki_nvtx_field *f, const nvtxPayloadData_t *data)
{
    const void *at = field_at(f, data);
    return at ? read_whole(at, f->bytes, false) : 0;
}

static void read_payload(const pki_nvtx_domain *domain, const nvtxPayloadData_t *data,
                         pki_work *work)
{
    const pki_nvtx_schema *s = pki_nvtx_schema_of(domain, data->schemaId);
    if (!s) {
        uint32_t bytes = bytes_of(data->schemaId);
        if (bytes && data->size >= bytes)
            read_number(data->payload, (uint32_t)data->schemaId, bytes, work);
        return;
    }
    work->bytes += read_amount(&s->moved, data);
    work->flops += read_amount(&s->flops, data);
    const void *other = field_at(&s->other, data);
    if (other)
        read_number(other, s->other.type, s->other.bytes, work);
}

void pki_nvtx_read_payloads(const pki_nvtx_domain *domain, const nvtxPayloadData_t *data, size_t n,
                            pki_work *work)
{
    for (size_t i = 0; data && i < n; i++)
        if (data[i].payload)
            read_payload(domain, &data[i], work);
}

/* A text lies there itself, or its address does. */
static pk_region *region_of_text(const pki_nvtx_domain *domain, const void *at, uint32_t bytes,
                                 bool embedded)
{
    char message[PKI_NAME_BYTES + 1];
    const char *text = at;
    pki_nvtx_meaning meaning;
    size_t most = bytes;
    if (!embedded) {
        memcpy(&text, at, sizeof text);
        most = PKI_NAME_BYTES;
    }
    if (text)
        snprintf(message, sizeof message, "%.*s", (int)PKI_MIN(most, (size_t)PKI_NAME_BYTES), text);
    return pki_nvtx_region(domain, text ? message : NULL, 0, &meaning);
}

static pk_region *region_of_payload(const pki_nvtx_domain *domain, const nvtxPayloadData_t *data)
{
    const pki_nvtx_schema *s = pki_nvtx_schema_of(domain, data->schemaId);
    const void *at = s ? field_at(&s->message, data) : NULL;
    nvtxStringHandle_t handle;
    pki_nvtx_meaning meaning;
    if (!s && is_text((uint32_t)data->schemaId)) /* the payload is the text */
        return region_of_text(domain, data->payload,
                              (uint32_t)PKI_MIN(data->size, (size_t)PKI_NAME_BYTES), true);
    if (at && is_text(s->message.type))
        return region_of_text(domain, at, s->message.bytes, s->message.embedded);
    if (!at || s->message.type != NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE)
        return NULL;
    memcpy(&handle, at, sizeof handle);
    return pki_nvtx_registered(domain, handle, 0, &meaning);
}

pk_region *pki_nvtx_payload_region(const pki_nvtx_domain *domain, const nvtxPayloadData_t *data,
                                   size_t n)
{
    pki_nvtx_meaning meaning;
    pk_region *region = NULL;
    for (size_t i = 0; data && i < n && !region; i++)
        if (data[i].payload)
            region = region_of_payload(domain, &data[i]);
    return region ? region : pki_nvtx_region(domain, NULL, 0, &meaning);
}

/* ---- attributes ---- */

static void read_plain(const nvtxEventAttributes_t *attr, pki_nvtx_meaning meaning, pki_work *work)
{
    static const uint8_t types[] = {
        [NVTX_PAYLOAD_TYPE_UNSIGNED_INT64] = NVTX_PAYLOAD_ENTRY_TYPE_UINT64,
        [NVTX_PAYLOAD_TYPE_INT64] = NVTX_PAYLOAD_ENTRY_TYPE_INT64,
        [NVTX_PAYLOAD_TYPE_DOUBLE] = NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE,
        [NVTX_PAYLOAD_TYPE_UNSIGNED_INT32] = NVTX_PAYLOAD_ENTRY_TYPE_UINT32,
        [NVTX_PAYLOAD_TYPE_INT32] = NVTX_PAYLOAD_ENTRY_TYPE_INT32,
        [NVTX_PAYLOAD_TYPE_FLOAT] = NVTX_PAYLOAD_ENTRY_TYPE_FLOAT};
    pki_work number = {.payload_type = PKI_PAYLOAD_NONE};
    uint32_t plain = (uint32_t)attr->payloadType, type;
    type = plain < PKI_COUNT_OF(types) ? types[plain] : NVTX_PAYLOAD_ENTRY_TYPE_INVALID;
    if (type == NVTX_PAYLOAD_ENTRY_TYPE_INVALID)
        return;
    read_number(&attr->payload, type, bytes_of(type), &number);
    bool amount = number.payload_type == PKI_PAYLOAD_UNSIGNED ||
                  (number.payload_type == PKI_PAYLOAD_SIGNED && (int64_t)number.payload >= 0);
    if (amount && meaning == PKI_NVTX_BYTES) {
        work->bytes += number.payload;
    } else if (amount && meaning == PKI_NVTX_FLOPS) {
        work->flops += number.payload;
    } else {
        work->payload = number.payload;
        work->payload_type = number.payload_type;
    }
}

void pki_nvtx_read_attributes(const pki_nvtx_domain *domain, const nvtxEventAttributes_t *attr,
                              pki_nvtx_meaning meaning, pki_work *work)
{
    if (attr->payloadType != NVTX_PAYLOAD_TYPE_EXT)
        read_plain(attr, meaning, work);
    else if (attr->reserved0 > 0)
        pki_nvtx_read_payloads(domain, (const nvtxPayloadData_t *)(uintptr_t)attr->payload.ullValue,
                               (size_t)attr->reserved0, work);
}

/* ---- our regions, as ranges of the NVTX domain "perfkit" ---- */

/* A user of NVTX has function pointers that a tool fills in. These here are ours, so it is known
 * what the tool listens to, and nothing is called that it does not. Regions have a registered
 * string each, the colour of their kind, and the kind as category. What pk_region_add counted is a
 * payload of the range's end where the tool takes that, else a mark before it. */

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

static nvtxDomainHandle_t emit_domain;
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
        name(emit_domain, kind, kinds[kind]);
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
    schema = add ? add(emit_domain, &attr) : 0;
}

static void introduce(void)
{
    nvtxDomainCreateA_impl_fntype create =
        TOOL(NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, nvtxDomainCreateA_impl_fntype);
    emit_domain = create ? create(PKI_NVTX_OUR_DOMAIN) : NULL;
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
    names[name->id] = register_string(emit_domain, name->name);
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
        pop(emit_domain);
}

static void begin(uint32_t id, unsigned depth)
{
    if (inside)
        return;
    int saved = errno;
    inside = true;
    close_left_open(depth);
    nvtxEventAttributes_t attr = attributes_of(id);
    push(emit_domain, &attr);
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
    pop_payload(emit_domain, &data, 1);
    return true;
}

static void mark_bytes(uint32_t id, const pki_work *work)
{
    nvtxEventAttributes_t attr = attributes_of(id);
    attr.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    attr.payload.ullValue = work->bytes;
    if (put_mark)
        put_mark(emit_domain, &attr);
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
        pop(emit_domain);
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
    put_mark(emit_domain, &attr);
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
