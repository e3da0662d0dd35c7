/* The real libcupti and libcudart on a machine without a driver: what they say, and that perfkit is
 * not taken in by it. Each in a process of its own, since a process has one library. */
#include "scene.h"

#include <stdio.h>

#include "backend/cupti/records.h"
#include "base/loader.h"
#include "session/session.h"

static const char *double_path;
static const char *library_path; /* of the real one */

static const char *const places[] = {"libcupti.so.13",
                                     "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
                                     "/usr/local/cuda/lib64/libcupti.so.13"};
static const char *const runtimes[] = {"libcudart.so.13", "/usr/local/cuda/lib64/libcudart.so.13"};
static const char *const stubs[] = {"/usr/local/cuda/lib64/stubs/libcuda.so"};

static const char *open_first(const char *const paths[], size_t count, void **library)
{
    for (size_t i = 0; i < count; i++)
        if ((*library = dlopen(paths[i], RTLD_LAZY | RTLD_LOCAL)) != NULL)
            return paths[i];
    return NULL;
}

/* The scene's line that failed, 0 for none. */
static void expect_in_child(int (*scene)(void))
{
    int result = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(scene());
    assert_int_equal(waitpid(child, &result, 0), child);
    if (result && WIFEXITED(result) && WEXITSTATUS(result) == 77)
        skip();
    if (result)
        fail_msg("line %d", WIFEXITED(result) ? WEXITSTATUS(result) : -1);
}

#define must(holds)                                                                                \
    do                                                                                             \
        if (!(holds)) {                                                                            \
            fprintf(stderr, "%s\n", #holds);                                                       \
            return __LINE__ & 0xFF;                                                                \
        }                                                                                          \
    while (0)

/* ---- the library's own answers ---- */

static bool load_real(void)
{
    char reason[192];
    setenv("PK_CUPTI_LIBRARY", library_path, 1);
    return pki_cupti_load(reason, sizeof reason);
}

static void CUPTIAPI never(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                           const void *data)
{
    (void)user, (void)domain, (void)id, (void)data;
}

static int what_it_answers(void)
{
    CUpti_SubscriberHandle subscriber = NULL;
    uint8_t one = 1;
    size_t size = sizeof one, dropped = 0;
    must(load_real());
    must(pki_cupti_version() >= PKI_CUPTI_13_0_U1);
    must(pki_cupti.ActivityRegisterCallbacks(pki_cupti_buffer_requested,
                                             pki_cupti_buffer_completed) == CUPTI_SUCCESS); /* ! */
    must(pki_cupti.Subscribe(&subscriber, never, NULL) == CUPTI_ERROR_UNKNOWN);
    must(pki_cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME) == CUPTI_ERROR_UNKNOWN);
    must(pki_cupti.ActivityFlushAll(0) == CUPTI_ERROR_UNKNOWN);
    must(pki_cupti.SetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) == CUPTI_ERROR_UNKNOWN);
    must(pki_cupti.ActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size,
                                        &one) == CUPTI_ERROR_UNKNOWN);
    must(pki_cupti.ActivityGetNumDroppedRecords(NULL, 0, &dropped) == CUPTI_SUCCESS); /* ! */
    must(dropped == 0);
    must(pki_cupti.ActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, 1) ==
         CUPTI_ERROR_UNKNOWN);
    must(strstr(pki_cupti_result_text(CUPTI_ERROR_INVALID_KIND), "INVALID_KIND"));
    return 0;
}

static unsigned count_traits(CUpti_CallbackDomain domain, unsigned traits)
{
    unsigned count = 0;
    for (uint32_t id = 1; id < pki_cupti_calls_count(domain); id++)
        count += (pki_cupti_call_of(domain, id)->traits & traits) != 0;
    return count;
}

static int names_of_its_calls(void)
{
    static const struct {
        uint32_t id;
        const char *name;
        unsigned traits;
    } known[] = {
        {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, "cudaLaunchKernel", PKI_CUPTI_LAUNCHES},
        {CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_ptsz_v13000, "cudaLaunchKernel",
         PKI_CUPTI_LAUNCHES},
        {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060, "cudaLaunchKernelExC",
         PKI_CUPTI_LAUNCHES},
        {CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, "cudaMemcpyAsync", PKI_CUPTI_LAUNCHES},
        {CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, "cudaGraphLaunch", PKI_CUPTI_LAUNCHES},
        {CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020, "cudaStreamSynchronize",
         PKI_CUPTI_WAITS},
        {CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020, "cudaGetLastError", PKI_CUPTI_QUIET},
        {CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, "cudaMalloc", PKI_CUPTI_ALLOCATES}};
    must(load_real() && pki_cupti_calls_learn());
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const pki_cupti_call *call = pki_cupti_call_of(CUPTI_CB_DOMAIN_RUNTIME_API, known[i].id);
        must(strcmp(call->name, known[i].name) == 0 && call->traits == known[i].traits);
    }
    must(pki_cupti_calls_count(CUPTI_CB_DOMAIN_RUNTIME_API) > 500);
    must(pki_cupti_calls_count(CUPTI_CB_DOMAIN_DRIVER_API) > 800);
    must(count_traits(CUPTI_CB_DOMAIN_RUNTIME_API, PKI_CUPTI_LAUNCHES) >= 40);
    must(count_traits(CUPTI_CB_DOMAIN_DRIVER_API, PKI_CUPTI_LAUNCHES) >= 60);
    must(strcmp(pki_cupti_call_of(CUPTI_CB_DOMAIN_DRIVER_API, 100000)->name, "cu (unknown call)") ==
         0);
    return 0;
}

/* ---- its walk over records of the header's structs ---- */

static unsigned seen[PKI_CUPTI_POOL + 1];
static uint32_t last_correlation;

static void take(void *user, const pki_cupti_record *r)
{
    (void)user;
    seen[r->what]++;
    last_correlation = r->correlation;
}

static size_t put(uint8_t *data, size_t at, const void *record, size_t size)
{
    memcpy(data + at, record, size);
    return at + size;
}

static int records_as_it_walks_them(void)
{
    static pki_cupti_counts counts;
    size_t at = 0, most;
    uint8_t *data;
    uint64_t now = pki_monotonic_ns();
    must(load_real() && pk_start(pk_options(.backends = "none")) == PK_OK);
    now = pki_monotonic_ns();
    CUpti_ActivityKernel10 kernel = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                     .start = now,
                                     .end = now + 1,
                                     .correlationId = 1};
    CUpti_ActivityMemcpy6 copy = {
        .kind = CUPTI_ACTIVITY_KIND_MEMCPY, .start = now, .end = now, .correlationId = 2};
    CUpti_ActivityMemcpyPtoP4 between = {
        .kind = CUPTI_ACTIVITY_KIND_MEMCPY2, .start = now, .end = now, .correlationId = 3};
    CUpti_ActivityMemset4 set = {
        .kind = CUPTI_ACTIVITY_KIND_MEMSET, .start = now, .end = now, .correlationId = 4};
    CUpti_ActivityGraphTrace2 graph = {
        .kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE, .start = now, .end = now, .correlationId = 5};
    CUpti_ActivityAPI call = {
        .kind = CUPTI_ACTIVITY_KIND_RUNTIME, .start = now, .end = now, .correlationId = 6};
    CUpti_ActivitySynchronization2 wait = {
        .kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, .start = now, .end = now, .correlationId = 7};
    CUpti_ActivityOverhead3 overhead = {
        .kind = CUPTI_ACTIVITY_KIND_OVERHEAD, .start = now, .end = now};
    CUpti_ActivityExternalCorrelation external = {.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                  .externalKind =
                                                      CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2,
                                                  .correlationId = 8};
    CUpti_ActivityMemory4 memory = {.kind = CUPTI_ACTIVITY_KIND_MEMORY2, .timestamp = now};
    CUpti_ActivityMemoryPool3 pool = {.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL,
                                      .memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL,
                                      .timestamp = now};
    CUpti_ActivityKernel10 last = kernel;
    last.correlationId = 99;
    size_t size;
    pki_cupti_buffer_requested(&data, &size, &most);
    at = put(data, at, &kernel, sizeof kernel);
    at = put(data, at, &copy, sizeof copy);
    at = put(data, at, &between, sizeof between);
    at = put(data, at, &set, sizeof set);
    at = put(data, at, &graph, sizeof graph);
    at = put(data, at, &call, sizeof call);
    at = put(data, at, &wait, sizeof wait);
    at = put(data, at, &overhead, sizeof overhead);
    at = put(data, at, &external, sizeof external);
    at = put(data, at, &memory, sizeof memory);
    at = put(data, at, &pool, sizeof pool);
    at = put(data, at, &last, sizeof last);
    pki_cupti_buffer_completed(NULL, 0, data, size, at);
    pki_cupti_buffers_walk();
    pki_cupti_buffer *b = pki_cupti_buffers_drain();
    pki_cupti_read(b, &(pki_cupti_span){0, INT64_MAX}, &counts, take, NULL, false);
    must(counts.records == 12 && counts.broken == 0 && counts.unknown == 0);
    must(seen[PKI_CUPTI_KERNEL] == 2 && seen[PKI_CUPTI_COPY] == 2 && seen[PKI_CUPTI_SET] == 1 &&
         seen[PKI_CUPTI_GRAPH] == 1 && seen[PKI_CUPTI_RUNTIME] == 1 && seen[PKI_CUPTI_SYNC] == 1 &&
         seen[PKI_CUPTI_OVERHEAD] == 1 && seen[PKI_CUPTI_EXTERNAL] == 1 &&
         seen[PKI_CUPTI_POOL] == 1);
    must(last_correlation == 99);
    pki_cupti_buffer_release(b);
    return pk_stop() == PK_OK ? 0 : __LINE__ & 0xFF;
}

/* ---- sessions ---- */

static int expect_off(const char *why)
{
    pk_backend_info info = {.size = sizeof info};
    must(pk_start(pk_options(.backends = "cupti")) == PK_OK);
    must(pk_backend_status("cupti", &info) == PK_OK && !info.live);
    if (!strstr(info.reason, why)) {
        fprintf(stderr, "'%s' does not say %s\n", info.reason, why);
        return __LINE__ & 0xFF;
    }
    return pk_stop() == PK_OK ? 0 : __LINE__ & 0xFF;
}

static int without_a_driver(void)
{
    unsetenv("PK_CUDA_LIBRARY");
    setenv("PK_CUPTI_LIBRARY", library_path, 1);
    return expect_off("libcuda.so.1");
}

static int with_the_stub(void)
{
    void *library;
    const char *stub = open_first(stubs, 1, &library);
    if (!stub)
        return 77;
    setenv("PK_CUDA_LIBRARY", stub, 1);
    return expect_off("cuInit says 34");
}

/* A driver that we take for one, and CUPTI does not. */
static int with_a_double_of_the_driver(void)
{
    open_fake(double_path);
    setenv("PK_CUPTI_LIBRARY", library_path, 1);
    return expect_off("999");
}

static int the_programs_error_state(void)
{
    void *library;
    int (*count)(int *) = NULL, (*peek)(void) = NULL;
    int devices = 4711;
    if (!open_first(runtimes, 2, &library))
        return 77;
    void *a = dlsym(library, "cudaGetDeviceCount"), *b = dlsym(library, "cudaPeekAtLastError");
    memcpy(&count, &a, sizeof a);
    memcpy(&peek, &b, sizeof b);
    must(count && peek && count(&devices) != 0 && devices == 4711);
    int before = peek();
    int failed = without_a_driver();
    must(!failed && peek() == before);
    return 0;
}

#define in_child(scene)                                                                            \
    static void test_##scene(void **state)                                                         \
    {                                                                                              \
        (void)state;                                                                               \
        expect_in_child(scene);                                                                    \
    }

in_child(what_it_answers) in_child(names_of_its_calls) in_child(records_as_it_walks_them)
    in_child(without_a_driver) in_child(with_the_stub) in_child(with_a_double_of_the_driver)
        in_child(the_programs_error_state)

            int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_answers),
        cmocka_unit_test(test_names_of_its_calls),
        cmocka_unit_test(test_records_as_it_walks_them),
        cmocka_unit_test(test_without_a_driver),
        cmocka_unit_test(test_with_the_stub),
        cmocka_unit_test(test_with_a_double_of_the_driver),
        cmocka_unit_test(test_the_programs_error_state),
    };
    void *library;
    char reason[192];
    if (argc < 2)
        return 2;
    double_path = argv[1];
    library_path = open_first(places, sizeof places / sizeof *places, &library);
    if (!library_path || strstr(SANITIZERS, "thread")) {
        printf("skipped: %s\n", library_path ? "ThreadSanitizer loses a fork's threads"
                                             : "no libcupti.so.13 on this machine");
        return 77;
    }
    unsetenv("PK_CUDA_LIBRARY");
    if (pki_driver_live(reason, sizeof reason)) {
        printf("skipped: there is a driver\n");
        return 77;
    }
    pki_driver_after_fork(); /* the question is the scenes' */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
