/* Categories, and the numbers that come with a range or a mark. */
#include "user.h"

static void categories(void **state)
{
    (void)state;
    nvtxEventAttributes_t a = says("copy");
    a.category = 7;
    nvtxDomainRangePushEx(lib, &a);
    nvtxDomainRangePop(lib);
    nvtxDomainNameCategoryA(lib, 7, "Bytes moved");
    a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    a.payload.ullValue = 4096;
    nvtxDomainRangePushEx(lib, &a);
    nvtxDomainRangePop(lib);
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = nvtxDomainRegisterStringA(lib, "copy");
    nvtxDomainRangePushEx(lib, &a);
    nvtxDomainRangePop(lib);
    json_t *d = stop();
    assert_int_equal(number(d, "lib/copy[category 7]", "category"), 7);
    assert_int_equal(count_events(d, "X", "lib/copy[Bytes moved]"), 2);
    assert_int_equal(number(d, "lib/copy[Bytes moved]", "category"), 7);
    assert_int_equal(number(d, "lib/copy[Bytes moved]", "bytes"), 4096);
    json_decref(d);
}

static void payloads(void **state)
{
    (void)state;
    nvtxEventAttributes_t a = says("signed");
    a.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    a.payload.llValue = -5;
    nvtxRangePushEx(&a);
    nvtxRangePop();
    a.message.ascii = "small";
    a.payloadType = NVTX_PAYLOAD_TYPE_INT32;
    a.payload.iValue = -6;
    nvtxRangePushEx(&a);
    nvtxRangePop();
    a.message.ascii = "real";
    a.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
    a.payload.fValue = 0.5f;
    nvtxRangePushEx(&a);
    nvtxRangePop();
    a.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    a.payload.dValue = 2.5;
    a.message.ascii = "a mark";
    nvtxMarkEx(&a);
    nvtxDomainMarkEx(lib, &a);
    nvtxMarkA("bare");
    json_t *d = stop();
    assert_int_equal(number(d, "signed", "payload"), -5);
    assert_int_equal(number(d, "small", "payload"), -6);
    const json_t *args = member(find_event(d, "real"), "args");
    assert_true(json_real_value(member(args, "payload")) == 0.5);
    args = member(find_event(d, "lib/a mark"), "args");
    assert_true(json_real_value(member(args, "payload")) == 2.5);
    assert_int_equal(count_events(d, "i", NULL), 3);
    json_decref(d);
}

typedef struct message {
    uint64_t id;
    uint64_t bytes;
    uint32_t operation;
} message;

static uint64_t make_schema(uint64_t id)
{
    const nvtxPayloadSchemaEntry_t entries[] = {
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "communicator"},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "Message size [bytes]", .offset = 8},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT32, .name = "operation", .offset = 16}};
    nvtxPayloadSchemaAttr_t attr = {.entries = entries, .numEntries = 3, .schemaId = id};
    attr.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     (id ? NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID : 0);
    return nvtxPayloadSchemaRegister(lib, &attr);
}

static void schemas(void **state)
{
    (void)state;
    uint64_t fixed = make_schema(NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5);
    uint64_t made = make_schema(0);
    assert_int_equal(fixed, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5);
    assert_true(made >= NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START);
    message m = {1, 512, 3};
    nvtxPayloadData_t data = {fixed, sizeof m, &m};
    nvtxEventAttributes_t a = says("reduce");
    a.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    a.reserved0 = 1;
    a.payload.ullValue = (uint64_t)(uintptr_t)&data;
    nvtxDomainRangePushEx(lib, &a);
    nvtxDomainRangePop(lib);
    a.message.ascii = "cut";
    data = (nvtxPayloadData_t){made, 12, &m}; /* ends within the bytes */
    nvtxDomainRangePushEx(lib, &a);
    data = (nvtxPayloadData_t){made, sizeof m, &m};
    assert_int_equal(nvtxRangePopPayload(lib, &data, 1), 0);
    json_t *d = stop();
    assert_int_equal(number(d, "lib/reduce", "bytes"), 512);
    assert_int_equal(number(d, "lib/cut", "bytes"), 512); /* the pop's */
    json_decref(d);
}

typedef struct report {
    const char *text;
    int32_t flops;
} report;

static void payload_events(void **state)
{
    const nvtxPayloadSchemaEntry_t entries[] = {
        {.flags = NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, .type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_INT32, .name = "MFLOPs"}};
    nvtxPayloadSchemaAttr_t attr = {.entries = entries, .numEntries = 2};
    const char plain[] = "a payload that is a text";
    uint32_t seven = 7;
    (void)state;
    attr.fieldMask =
        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
    report r = {"reported", 33};
    nvtxPayloadData_t data = {nvtxPayloadSchemaRegister(lib, &attr), sizeof r, &r};
    assert_true(nvtxDomainIsEnabled(lib));
    assert_int_equal(nvtxRangePushPayload(lib, &data, 1), 0);
    assert_int_equal(nvtxRangePopPayload(lib, NULL, 0), 0);
    nvtxRangeId_t id = nvtxRangeStartPayload(lib, &data, 1);
    nvtxRangeEndPayload(lib, id, NULL, 0);
    nvtxPayloadData_t text[] = {{NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, sizeof plain, plain},
                                {NVTX_PAYLOAD_ENTRY_TYPE_UINT32, sizeof seven, &seven}};
    nvtxMarkPayload(lib, text, 2);
    nvtxMarkPayload(lib, NULL, 3);
    json_t *d = stop();
    assert_int_equal(count_events(d, "X", "lib/reported"), 2);
    assert_int_equal(number(d, "lib/reported", "flops"), 33);
    assert_int_equal(number(d, "lib/a payload that is a text", "payload"), 7);
    assert_int_equal(count_events(d, "i", "lib/(unnamed)"), 1);
    json_decref(d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        with_ranges(categories),
        with_ranges(payloads),
        with_ranges(schemas),
        with_ranges(payload_events),
    };
    take_arguments(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
