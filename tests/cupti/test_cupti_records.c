/* Records as they should not be, from libraries older and newer than the header, and too many. */
#include "scene.h"

#include "backend/cupti/control.h"
#include "backend/cupti/join.h"
#include "backend/cupti/records.h"

static pk_region forward = PK_REGION("forward");

static CUpti_ActivityKernel10 kernel_at(uint64_t start, uint64_t end)
{
    CUpti_ActivityKernel10 k;
    memset(&k, 0, sizeof k);
    k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    k.name = "written";
    k.start = start;
    k.end = end;
    k.streamId = 7;
    k.contextId = 1;
    return k;
}

static void write_kernel(uint64_t start, uint64_t end)
{
    CUpti_ActivityKernel10 k = kernel_at(start, end);
    fake->write(&k);
}

static void write_now(void)
{
    uint64_t now = fake->clock();
    write_kernel(now, now + 10);
}

static void impossible_times(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    uint64_t now = fake->clock(), bit = (uint64_t)1 << 63;
    write_kernel(0, 0);
    write_kernel(0, now);
    write_kernel(now, 0);
    write_kernel(now, now - 1);
    write_kernel(bit | now, bit | (now + 5));
    write_kernel(now, bit | (now + 5));
    write_kernel(now, now); /* a short one */
    write_kernel(5, 6);     /* before the session */
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "kernel", NULL), 1);
    assert_true(fate(doc, "bad_time") == 6 && fate(doc, "outside") == 1 &&
                fate(doc, "records") == 8 && fate(doc, "unlinked") == 1);
    json_decref(doc);
}

static void kinds_that_nobody_knows(void **state)
{
    struct {
        CUpti_ActivityKind kind;
        char rest[60];
    } unknown = {(CUpti_ActivityKind)60, "x"};
    (void)state;
    fake->lengths[60] = sizeof unknown;
    fake->lengths[CUPTI_ACTIVITY_KIND_JIT] = 40;
    start_cupti(.rank = 0);
    fake->write(&unknown);
    write_now();
    unknown.kind = CUPTI_ACTIVITY_KIND_JIT;
    fake->write(&unknown);
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "kernel", NULL), 1);
    assert_int_equal(fate(doc, "unknown"), 2);
    assert_int_equal(fate(doc, "broken_buffers"), 0);
    json_decref(doc);
}

/* As a library from tomorrow writes them: what we know is where it was. */
static void longer_records(void **state)
{
    struct {
        CUpti_ActivityKernel10 known;
        uint64_t more[20];
    } longer;
    (void)state;
    fake->lengths[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = sizeof longer;
    start_cupti(.rank = 0);
    for (int i = 0; i < 3; i++) {
        memset(&longer, 0xEE, sizeof longer);
        uint64_t now = fake->clock();
        longer.known = kernel_at(now, now);
        fake->write(&longer);
    }
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "kernel", "written"), 3);
    json_decref(doc);
}

/* What stands at the end of a buffer is no record: not one more is read. */
static void buffers_cut_short(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    write_now();
    fake->lengths[61] = 16;
    uint32_t short_one[4] = {61};
    fake->write(short_one);
    fake->lengths[61] = 4096; /* the reader thinks that it is longer */
    assert_int_equal(pk_flush(), PK_OK);
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "kernel", NULL), 1);
    assert_int_equal(fate(doc, "broken_buffers"), 1);
    json_decref(doc);
}

static void more_than_a_buffer_holds(void **state)
{
    const unsigned buffers = is_slow() ? 2 : 3; /* to read the trace back takes longer than all */
    const int many = is_slow() ? 5000 : 10000;
    (void)state;
    start_cupti(.rank = 0);
    pk_region_begin(&forward);
    for (int i = 0; i < many; i++) {
        launch(.kernel = i % 2 ? "odd" : "even");
        if (i % 1000 == 999)
            fake->finish();
    }
    pk_region_end(&forward);
    json_t *doc = stop_and_load();
    assert_true(fake->buffers >= buffers && fake->misaligned == 0 && fake->nulls == 0);
    assert_int_equal(count_of_cat(doc, "kernel", "odd"), many / 2);
    assert_int_equal(count_of_cat(doc, "kernel", "even"), many / 2);
    assert_int_equal(count_of_cat(doc, "ac2g", NULL), 2 * many);
    json_decref(doc);
}

static void what_cupti_drops(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    fake->dropped = 17;
    assert_int_equal(pk_flush(), PK_OK);
    fake->dropped = 3;
    json_t *doc = stop_and_load();
    assert_int_equal(fate(doc, "dropped_by_cupti"), 20);
    assert_non_null(strstr(status().reason, "missing: 20 dropped by CUPTI"));
    json_decref(doc);
}

static void pools_of_memory(void **state)
{
    CUpti_ActivityMemory4 m;
    (void)state;
    start_cupti(.rank = 0);
    memset(&m, 0, sizeof m);
    m.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    m.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    for (uint64_t i = 1; i <= 3; i++) {
        m.timestamp = fake->clock();
        m.memoryPoolConfig.address = i % 2;
        m.memoryPoolConfig.utilizedSize = i * 1000;
        fake->write(&m);
    }
    m.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID; /* cudaMalloc */
    fake->write(&m);
    json_t *doc = stop_and_load();
    static const double sums[] = {1000, 3000, 5000};
    for (size_t i = 0; i < 3; i++)
        assert_true(json_number_value(arg(nth_event(doc, "counter", "GPU 0 pools", i), "bytes")) ==
                    sums[i]);
    assert_int_equal(count_of_cat(doc, "counter", NULL), 3);
    json_decref(doc);
}

static void overheads(void **state)
{
    CUpti_ActivityOverhead3 o;
    (void)state;
    start_cupti(.rank = 0);
    memset(&o, 0, sizeof o);
    o.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    o.overheadKind = CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL;
    o.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    o.objectId.pt.threadId = 77;
    o.start = fake->clock();
    o.end = o.start + 1000;
    o.overheadData = malloc(24); /* the reader's to free, or a leak */
    fake->write(&o);
    o.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
    o.overheadData = NULL;
    o.start += 500; /* at the same time: beside it */
    fake->write(&o);
    json_t *doc = stop_and_load();
    const json_t *full = the_event(doc, "overhead", "Command Buffer Full");
    const json_t *flush = the_event(doc, "overhead", "Activity Buffer Flush");
    assert_int_equal(number(full, "thread"), 77);
    assert_true(json_integer_value(member(full, "tid")) !=
                json_integer_value(member(flush, "tid")));
    json_decref(doc);
}

/* ---- names ---- */

static void plain_names(void **state)
{
    static const char *const names[][2] = {{"cudaLaunchKernel_v7000", "cudaLaunchKernel"},
                                           {"cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"},
                                           {"__cudaLaunchKernel_ptsz_v13000", "cudaLaunchKernel"},
                                           {"cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC"},
                                           {"cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync"},
                                           {"cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD"},
                                           {"cuLaunchKernel", "cuLaunchKernel"},
                                           {"cuLaunchKernelEx_ptsz", "cuLaunchKernelEx"},
                                           {"cudaMemcpy2DAsync_v3020", "cudaMemcpy2DAsync"},
                                           {"cuMemsetD8", "cuMemsetD8"},
                                           {"_v7", "v7"},
                                           {"", ""}};
    char plain[64];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pki_cupti_plain_name(names[i][0], plain, sizeof plain);
        assert_string_equal(plain, names[i][1]);
    }
    pki_cupti_plain_name("cudaLaunchKernel_v7000", plain, 5);
    assert_string_equal(plain, "cuda");
}

static void identifiers(void **state)
{
    char name[64];
    (void)state;
    assert_true(pki_cupti_identifier("_Z4gemmPf", name, sizeof name));
    assert_string_equal(name, "gemm");
    assert_true(pki_cupti_identifier("_ZN2at6native4fillIfEEvv", name, sizeof name));
    assert_string_equal(name, "fill");
    assert_true(pki_cupti_identifier("_Z13ncclDevKernel24ncclDevKernelArgsStorage", name, 64));
    assert_string_equal(name, "ncclDevKernel");
    assert_true(pki_cupti_identifier("_Z4ge", name, sizeof name) == false); /* cut off */
    assert_false(pki_cupti_identifier("_Z", name, sizeof name));
    assert_false(pki_cupti_identifier("gemm", name, sizeof name));
    assert_false(pki_cupti_identifier("_Z99999999999999999999a", name, sizeof name));
    assert_false(pki_cupti_identifier("_Z0a", name, sizeof name));
}

static void traits(void **state)
{
    const CUpti_CallbackDomain r = CUPTI_CB_DOMAIN_RUNTIME_API, d = CUPTI_CB_DOMAIN_DRIVER_API;
    (void)state;
    assert_int_equal(pki_cupti_traits(r, "cudaLaunchKernelExC"), PKI_CUPTI_LAUNCHES);
    assert_int_equal(pki_cupti_traits(r, "cudaMemcpyToSymbolAsync"), PKI_CUPTI_LAUNCHES);
    assert_int_equal(pki_cupti_traits(d, "cuLaunchCooperativeKernel"), PKI_CUPTI_LAUNCHES);
    assert_int_equal(pki_cupti_traits(d, "cuLaunchHostFunc"), 0);
    assert_int_equal(pki_cupti_traits(r, "cudaDeviceSynchronize"), PKI_CUPTI_WAITS);
    assert_int_equal(pki_cupti_traits(r, "cudaGetDevice"), PKI_CUPTI_QUIET);
    assert_int_equal(pki_cupti_traits(r, "cudaGetDeviceCount"), 0);
    assert_int_equal(pki_cupti_traits(d, "cudaLaunchKernel"), 0);
}

static void versions(void **state)
{
    char text[32];
    (void)state;
    assert_true(pki_cupti_fault_of(16)->refused && pki_cupti_fault_of(130000)->refused);
    assert_false(pki_cupti_fault_of(130100)->refused);
    assert_true(!pki_cupti_fault_of(17) && !pki_cupti_fault_of(28) &&
                pki_cupti_fault_of(130001)->of_nodes && pki_cupti_fault_of(130400)->of_nodes &&
                !pki_cupti_fault_of(130401));
    pki_cupti_version_text(130001, text, sizeof text);
    assert_string_equal(text, "13.0 (130001)");
    pki_cupti_version_text(26, text, sizeof text);
    assert_string_equal(text, "12.8 (26)");
    pki_cupti_version_text(99, text, sizeof text);
    assert_string_equal(text, "99");
    assert_true(pki_cupti_has(18, PKI_CUPTI_HAS_CLUSTER) &&
                !pki_cupti_has(17, PKI_CUPTI_HAS_CLUSTER));
    for (int f = 0; f < PKI_CUPTI_FIELDS; f++) /* append-only: once there, there for good */
        assert_true(pki_cupti_has(UINT32_MAX, (pki_cupti_field)f));
}

int main(int argc, char **argv)
{
#define test(name) cmocka_unit_test_setup_teardown(name, reset_fake, stop_and_leave)
    const struct CMUnitTest tests[] = {
        test(impossible_times),         test(kinds_that_nobody_knows),
        test(longer_records),           test(buffers_cut_short),
        test(more_than_a_buffer_holds), test(what_cupti_drops),
        test(pools_of_memory),          test(overheads),
        cmocka_unit_test(plain_names),  cmocka_unit_test(identifiers),
        cmocka_unit_test(traits),       cmocka_unit_test(versions),
    };
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
