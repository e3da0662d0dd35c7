#include "nvtx_user.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

static nvtxDomainHandle_t domain;
static nvtxEventAttributes_t plain, registered, with_category, with_payload, with_schema;
static uint64_t schema, message[2] = {1, 4096};
static nvtxPayloadData_t data;

static nvtxEventAttributes_t says(const char *text)
{
    nvtxEventAttributes_t a = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = text;
    return a;
}

static void make_schema(void)
{
    const nvtxPayloadSchemaEntry_t entries[] = {
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "communicator"},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "bytes", .offset = 8}};
    nvtxPayloadSchemaAttr_t attr = {.entries = entries, .numEntries = 2};
    attr.fieldMask =
        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
    schema = nvtxPayloadSchemaRegister(domain, &attr);
}

static void first_call(void)
{
    domain = nvtxDomainCreateA("bench");
    plain = registered = with_category = with_payload = with_schema = says("forward");
    registered.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    registered.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    with_category.category = 3;
    with_payload.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    with_payload.payload.ullValue = 7;
    make_schema();
    data = (nvtxPayloadData_t){schema, sizeof message, message};
    with_schema.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    with_schema.reserved0 = 1;
    with_schema.payload.ullValue = (uint64_t)(uintptr_t)&data;
}

static void text(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        nvtxRangePushA("forward");
        nvtxRangePop();
    }
}

static void pairs(const nvtxEventAttributes_t *attr, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        nvtxDomainRangePushEx(domain, attr);
        nvtxDomainRangePop(domain);
    }
}

static void in_domain(uint64_t n)
{
    pairs(&plain, n);
}

static void run_registered(uint64_t n)
{
    pairs(&registered, n);
}

static void category(uint64_t n)
{
    pairs(&with_category, n);
}

static void payload(uint64_t n)
{
    pairs(&with_payload, n);
}

static void run_schema(uint64_t n)
{
    pairs(&with_schema, n);
}

/* One address, another text each time: nothing that could be remembered. */
static void changing(uint64_t n)
{
    char name[] = "message 0";
    for (uint64_t i = 0; i < n; i++) {
        name[sizeof name - 2] = (char)('0' + i % 10);
        nvtxRangePushA(name);
        nvtxRangePop();
    }
}

static void ids(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        nvtxRangeEnd(nvtxRangeStartA("forward"));
}

static void mark(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        nvtxMarkA("forward");
}

extern const bench_nvtx_user bench_nvtx;
__attribute__((visibility("default"))) const bench_nvtx_user bench_nvtx = {
    first_call, text, in_domain, run_registered, category, payload, run_schema,
    changing,   ids,  mark};
