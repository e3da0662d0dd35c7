/* lib/backend/nvtx/domains.c - domains of NVTX, the names of regions in them, and what comes with a
 * range */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "backend/nvtx/nvtx.h"
#include "core/names.h"

/* ---- domain ---- */

#define DOMAINS_MAX 1024

pthread_mutex_t pki_nvtx_lock = PTHREAD_MUTEX_INITIALIZER;
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
    pthread_mutex_lock(&pki_nvtx_lock);
    pki_nvtx_domain *d = find(name);
    d = d ? d : make(name);
    pthread_mutex_unlock(&pki_nvtx_lock);
    errno = saved;
    return d;
}

/* ---- categories ---- */

/* Does the text contain the word, which is in small letters? */
static bool pki_nvtx_contains(const char *text, const char *word)
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

/* What threads remember of messages with categories may be wrong from here on. */
static void count_category(void)
{
    uint32_t named = pki_fetch_add(&pki_nvtx_users.categories, 1u) + 1;
    uint64_t now = pki_load(&pki_nvtx_users.wanted);
    while (now &&
           !__atomic_compare_exchange_n(&pki_nvtx_users.wanted, &now, now >> 32 << 32 | named,
                                        false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
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
        pthread_mutex_lock(&pki_nvtx_lock);
        c->next = d->categories;
        pki_store_release(&d->categories, c);
        pthread_mutex_unlock(&pki_nvtx_lock);
        count_category();
    }
    errno = saved;
}

/* ---- schemas ---- */

static void pki_nvtx_add_schema(pki_nvtx_domain *d, const pki_nvtx_schema *schema)
{
    pki_nvtx_schema *copy = malloc(sizeof *copy);
    if (!copy)
        return;
    *copy = *schema;
    pthread_mutex_lock(&pki_nvtx_lock);
    copy->next = d->schemas;
    pki_store_release(&d->schemas, copy);
    pthread_mutex_unlock(&pki_nvtx_lock);
}

static const pki_nvtx_schema *pki_nvtx_schema_of(const pki_nvtx_domain *d, uint64_t id)
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
    if (snprintf(name, sizeof name, "%s/%s", d->name, message) < 0) /* it is cut to fit */
        return NULL;
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

/* ---- payloads: numbers ---- */

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
    static const uint8_t sizes[] = {[NVTX_PAYLOAD_ENTRY_TYPE_BYTE] = 1,
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
    return type < PKI_COUNT_OF(sizes) ? sizes[type] : 0;
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
