/* Ranges of threads and their names: push, pop, domains, registered and wide text. */
#include "user.h"

#include <wchar.h>

static void status(void **state)
{
    pk_backend_info info = {.size = sizeof info};
    (void)state;
    nvtxMarkA("hello");
    assert_int_equal(pk_backend_status("nvtx", &info), PK_OK);
    assert_int_equal(info.live, 1);
    assert_string_equal(info.version, "3");
    if (!strstr(info.reason, "consuming the ranges of 1 user of NVTX"))
        fail_msg("%s", info.reason);
}

static void push_and_pop(void **state)
{
    (void)state;
    assert_int_equal(nvtxRangePushA("outer"), 0);
    assert_int_equal(nvtxRangePushA("inner"), 1);
    assert_int_equal(nvtxRangePop(), 1);
    push(lib, "work");
    assert_int_equal(nvtxDomainRangePop(lib), 0);
    assert_int_equal(nvtxRangePop(), 0);
    assert_true(nvtxRangePop() < 0);
    json_t *d = stop();
    assert_int_equal(count_events(d, "X", "outer"), 1);
    assert_int_equal(count_events(d, "X", "inner"), 1);
    assert_int_equal(count_events(d, "X", "lib/work"), 1);
    assert_int_equal(calls("lib/work"), 1);
    assert_int_equal(counts().begun, 3);
    assert_int_equal(counts().unbalanced + counts().stray_ends, 0);
    json_decref(d);
}

static void messages(void **state)
{
    char changing[32];
    (void)state;
    nvtxEventAttributes_t a = says(NULL);
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = nvtxDomainRegisterStringA(lib, "registered");
    nvtxDomainRangePushEx(lib, &a);
    nvtxDomainRangePop(lib);
    a.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    a.message.unicode = L"w\u00EFde \u65E5 \U0001F600";
    nvtxDomainRangePushEx(lib, &a);
    nvtxDomainRangePop(lib);
    nvtxRangePushW(L"default wide");
    nvtxRangePop();
    for (int i = 0; i < 6; i++) { /* the same address, another text */
        snprintf(changing, sizeof changing, "message %d", i % 3);
        nvtxRangePushA(changing);
        nvtxRangePop();
    }
    nvtxRangePushA("a message that is longer than what a thread remembers of one, by some words");
    nvtxRangePop();
    json_t *d = stop();
    assert_int_equal(count_events(d, "X", "lib/registered"), 1);
    assert_int_equal(count_events(d, "X",
                                  "lib/w\xC3\xAF"
                                  "de \xE6\x97\xA5 \xF0\x9F\x98\x80"),
                     1);
    assert_int_equal(count_events(d, "X", "default wide"), 1);
    for (int i = 0; i < 3; i++) {
        snprintf(changing, sizeof changing, "message %d", i);
        assert_int_equal(count_events(d, "X", changing), 2);
    }
    json_decref(d);
}

static void hostile(void **state)
{
    nvtxEventAttributes_t none = {.size = 0};
    nvtxPayloadSchemaAttr_t attr = {.fieldMask = 0};
    (void)state;
    nvtxRangePushEx(NULL);
    nvtxRangePushEx(&none);
    nvtxRangePushA(NULL);
    nvtxDomainRangePop(lib);
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangePop();
    nvtxNameCategoryA(3, NULL);
    nvtxDomainRegisterStringA(lib, NULL);
    nvtxDomainResourceCreate(lib, NULL);
    nvtxDomainDestroy(lib);
    assert_int_equal(nvtxPayloadSchemaRegister(lib, &attr), 0);
    assert_int_equal(nvtxPayloadSchemaRegister(lib, NULL), 0);
    json_t *d = stop();
    assert_int_equal(count_events(d, "X", "(unnamed)"), 3);
    json_decref(d);
}

static void two_domains_that_cross(void **state)
{
    (void)state;
    push(NULL, "again");
    push(lib, "first");
    push(NULL, "again");
    nvtxDomainRangePop(lib); /* closes the inner "again", too */
    nvtxRangePop();          /* which must not close the outer one */
    push(NULL, "within");
    nvtxRangePop();
    nvtxRangePop();
    json_t *d = stop();
    assert_int_equal(count_events(d, "X", "again"), 2);
    assert_int_equal(counts().unbalanced, 1);
    assert_int_equal(counts().stray_ends, 0);
    json_t *within = (json_t *)(uintptr_t)find_event(d, "within");
    assert_null(json_object_get(within, "args"));
    json_decref(d);
}

/* A region of the program's own closes what is open inside it; the pop finds that. */
static void closed_by_a_region(void **state)
{
    static pk_region ours = PK_REGION("ours");
    (void)state;
    nvtxRangePushA("again");
    pk_region_begin(&ours);
    nvtxRangePushA("again");
    pk_region_end(&ours);
    assert_int_equal(nvtxRangePop(), 1); /* which must not close the outer one */
    nvtxRangePushA("within");
    nvtxRangePop();
    assert_int_equal(nvtxRangePop(), 0);
    json_t *d = stop();
    assert_int_equal(count_events(d, "X", "again"), 2);
    assert_null(json_object_get(find_event(d, "within"), "args"));
    assert_int_equal(counts().unbalanced, 1);
    assert_int_equal(counts().stray_ends, 0);
    json_decref(d);
}

static void deep(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++)
        nvtxRangePushA("deep");
    for (int i = 0; i < 200; i++)
        nvtxRangePop();
    nvtxRangePushA("afterwards");
    nvtxRangePop();
    json_t *d = stop();
    assert_int_equal(counts().begun, 201);
    assert_int_equal(counts().recorded, 65);
    assert_int_equal(counts().dropped, 136);
    assert_int_equal(count_events(d, "X", "afterwards"), 1);
    json_decref(d);
}

static void our_own_domain(void **state)
{
    (void)state;
    nvtxDomainHandle_t ours = nvtxDomainCreateA("perfkit");
    nvtxEventAttributes_t a = says("echo");
    assert_true(nvtxDomainRangePushEx(ours, &a) < 0);
    nvtxDomainMarkEx(ours, &a);
    assert_int_equal(nvtxDomainRangeStartEx(ours, &a), 0);
    assert_true(nvtxDomainRangePop(ours) < 0);
    assert_false(nvtxDomainIsEnabled(ours));
    json_t *d = stop();
    assert_int_equal(counts().begun + counts().points, 0);
    json_decref(d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        with_ranges(status),         with_ranges(push_and_pop),           with_ranges(messages),
        with_ranges(hostile),        with_ranges(two_domains_that_cross), with_ranges(deep),
        with_ranges(our_own_domain), with_ranges(closed_by_a_region),
    };
    take_arguments(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
