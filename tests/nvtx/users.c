/* Users of NVTX like any other, whose ranges perfkit consumes: threads' and the process's, with
 * payloads, and from libraries that come and go. */
#include "user.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <wchar.h>

/* ---- ranges of threads and their names ---- */

/* Push, pop, domains, registered and wide text. */

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

static int run_ranges(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        with_ranges(status),         with_ranges(push_and_pop),           with_ranges(messages),
        with_ranges(hostile),        with_ranges(two_domains_that_cross), with_ranges(deep),
        with_ranges(our_own_domain), with_ranges(closed_by_a_region),
    };
    take_arguments(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- categories, and the numbers that come with a range or a mark ---- */

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

static int run_payload(int argc, char **argv)
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

/* ---- lives ---- */

/* Ranges of the process, threads, sessions, forks. */

static void *end_it(void *id)
{
    nvtxRangeEnd(*(nvtxRangeId_t *)id);
    return NULL;
}

static void started_and_ended(void **state)
{
    pthread_t thread;
    (void)state;
    nvtxEventAttributes_t a = says("long");
    nvtxRangeId_t one = nvtxRangeStartA("one"), two = nvtxRangeStartA("two");
    nvtxRangeId_t three = nvtxDomainRangeStartEx(lib, &a);
    assert_true(one && two && three && one != two);
    nvtxRangeEnd(one);
    pthread_create(&thread, NULL, end_it, &two);
    pthread_join(thread, NULL);
    nvtxRangeEnd(two); /* once more: nothing */
    nvtxRangeEnd(0);
    nvtxRangeEnd(UINT64_MAX);
    nvtxRangeEnd(one + 1);
    nvtxRangeStartA("never ended");
    nvtxDomainRangeEnd(lib, three);
    json_t *d = stop();
    assert_int_equal(count_events(d, "X", "one"), 1);
    assert_int_equal(count_events(d, "X", "lib/long"), 1);
    assert_int_equal(number(d, "one", "thread"), syscall(SYS_gettid));
    assert_int_not_equal(number(d, "two", "ended by"), syscall(SYS_gettid));
    assert_int_equal(number(d, "never ended", "unbalanced"), 1);
    json_int_t track = json_integer_value(member(find_event(d, "one"), "tid"));
    assert_int_not_equal(track, json_integer_value(member(find_event(d, "two"), "tid")));
    assert_int_equal(calls("one"), 1);
    assert_int_equal(calls("lib/long"), 1);
    json_decref(d);
}

/* A text with a number: everything that an event is, in a payload. */
static void open_across_sessions(void **state)
{
    (void)state;
    nvtxRangePushA("of the first");
    nvtxRangeId_t id = nvtxRangeStartA("started in the first");
    json_t *d = stop();
    assert_int_equal(number(d, "of the first", "unbalanced"), 1);
    json_decref(d);
    nvtxRangePushA("of none");
    nvtxMarkA("of none");
    assert_int_equal(nvtxRangeStartA("of none"), 0);
    start();
    nvtxRangePushA("of the first"); /* the same name, in the second */
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangeEnd(id);
    d = stop();
    assert_int_equal(count_events(d, "X", NULL), 1);
    assert_int_equal(counts().stray_ends + counts().unbalanced + counts().dropped, 0);
    json_decref(d);
}

static void names_of_threads(void **state)
{
    (void)state;
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "the main one");
    nvtxRangePushA("x");
    nvtxRangePop();
    json_decref(stop());
    start(); /* it keeps its name */
    nvtxRangePushA("x");
    nvtxRangePop();
    json_t *d = stop();
    char *text = json_dumps(d, 0);
    assert_non_null(strstr(text, "the main one"));
    free(text);
    json_decref(d);
}

#define THREADS 6
static unsigned rounds;

static void *lives_use(void *argument)
{
    char name[32];
    uint64_t random = (uint64_t)(uintptr_t)argument;
    nvtxRangeId_t open[8] = {0};
    for (unsigned i = 0; i < rounds; i++) {
        snprintf(name, sizeof name, "t%u", (unsigned)(kit_random(&random) % 20));
        nvtxRangePushA(name);
        push(lib, "shared");
        nvtxRangeEnd(open[i % 8]);
        open[i % 8] = nvtxRangeStartA("crossing");
        nvtxMarkA("tick");
        nvtxDomainRangePop(lib);
        nvtxRangePop();
    }
    for (unsigned i = 0; i < 8; i++)
        nvtxRangeEnd(open[i]);
    return argument;
}

static void many_threads(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    rounds = kit_scaled(3000);
    for (uintptr_t i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, lives_use, (void *)(i + 1)) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL) == 0);
    json_decref(stop());
    pk_counts c = counts();
    assert_int_equal(c.begun, 2ull * THREADS * rounds);
    assert_int_equal(calls("lib/shared"), (uint64_t)THREADS * rounds);
    assert_int_equal(c.points + c.points_dropped, (uint64_t)THREADS * rounds);
    assert_int_equal(calls("crossing"), (uint64_t)THREADS * rounds);
    assert_int_equal(c.stray_ends + c.unbalanced, 0);
}

static void in_child(void *argument)
{
    (void)argument;
    nvtxRangePushA("off");
    nvtxRangePop();
    nvtxRangePop(); /* the parent's */
    nvtxRangeId_t id = nvtxRangeStartA("off");
    must(id == 0);
    start();
    nvtxRangePushA("the child's");
    nvtxRangeEnd(nvtxRangeStartA("the child's too"));
    nvtxDomainCreateA("the child's");
    nvtxRangePop();
    must(pk_stop() == PK_OK);
    pk_counts c = {.size = sizeof c};
    must(pk_get_counts(&c) == PK_OK);
    must_equal(c.begun, 1);
    must_equal(c.stray_ends, 0);
}

static void forked(void **state)
{
    (void)state;
    if (kit_sanitized("thread"))
        skip(); /* it allows no new thread in the child */
    nvtxRangePushA("around a fork");
    nvtxRangeId_t id = nvtxRangeStartA("range around a fork");
    assert_int_equal(kit_child(in_child, NULL, 240), 0);
    nvtxRangeEnd(id);
    nvtxRangePop();
    path = kit_path("nvtx.json");
    json_t *d = stop();
    assert_int_equal(count_events(d, "X", "around a fork"), 1);
    assert_int_equal(count_events(d, "X", "range around a fork"), 1);
    json_decref(d);
}

static int run_lives(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        with_ranges(started_and_ended),
        with_ranges(open_across_sessions),
        with_ranges(names_of_threads),
        with_ranges(many_threads),
        with_ranges(forked),
    };
    take_arguments(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- plugin ---- */

/* A library that uses NVTX comes and goes, with texts of its own, and leaves a range open: nothing
 * of it is touched once it is unmapped, and when it is back, the same names are the same regions.
 *
 * plugin SHIM MODULE */

#define ROUNDS 20

static void come_and_go(void **state)
{
    void (*use)(int);
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        void *library = dlopen(module, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            fail_msg("%s", dlerror());
        *(void **)&use = dlsym(library, "use_nvtx");
        assert_non_null(use);
        use(i == ROUNDS / 2);
        assert_int_equal(dlclose(library), 0);
        assert_null(dlopen(module, RTLD_NOW | RTLD_NOLOAD)); /* it really is gone */
        nvtxRangePushA("of the program");
        nvtxRangePop();
        assert_int_equal(pk_flush(), PK_OK);
    }
    json_t *d = stop();
    assert_int_equal(count_events(d, "X", "plugin/registered"), ROUNDS);
    assert_int_equal(count_events(d, "X", "a literal of the plug-in"), ROUNDS);
    assert_int_equal(count_events(d, "X", "a range of the plug-in"), ROUNDS);
    assert_int_equal(count_events(d, "X", "of the program"), ROUNDS);
    assert_int_equal(counts().unbalanced, 1);
    json_decref(d);
}

static int run_plugin(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {with_ranges(come_and_go)};
    take_arguments(argc, argv);
    if (!module)
        kit_skip("needs the paths of the shim (or \"\") and of a module");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* users NAME [SHIM [MODULE]] */
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } programs[] = {
        {"ranges", run_ranges},
        {"payload", run_payload},
        {"lives", run_lives},
        {"plugin", run_plugin},
    };
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(argv[1], programs[i].name) == 0)
            return programs[i].run(argc - 1, argv + 1);
    return 2;
}
