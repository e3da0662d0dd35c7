/* What devices and libraries did, as the events that PyTorch's tools read, byte by byte. */
#include "out/chrome/events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "comm/model/operation.h"

static const pki_track stream = {2147488000u, 7, "GPU 0", "stream 7", 3};

static void expect(const pki_activity *a, const char *region, const char *wanted)
{
    char out[PKI_EVENT_BYTES + 1];
    pki_chrome chrome = {0};
    pki_chrome_set_rank(&chrome, 3, 4);
    size_t n = pki_chrome_activity(&chrome, out, &stream, a, region, region ? strlen(region) : 0);
    assert_in_range(n, 1, PKI_EVENT_BYTES);
    out[n] = 0;
    assert_string_equal(out, wanted);
}

static void kernels(void **state)
{
    pki_activity a = {.kind = PKI_ACTIVITY_KERNEL,
                      .name = "void gemm<128, \"x\">(float*)",
                      .name_length = 27,
                      .start = 1500,
                      .end = 4750,
                      .context = 1,
                      .stream = 7,
                      .correlation = 42,
                      .external = 9,
                      .registers = 32,
                      .shared_bytes = 1024,
                      .grid = {4, 5, 6},
                      .block = {128, 1, 1},
                      .flow = 1,
                      .graph = 2,
                      .graph_node = 11};
    (void)state;
    expect(&a, "forward",
           ",\n{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"void gemm<128, \\\"x\\\">(float*)\","
           "\"pid\":2147488000,\"tid\":7,\"ts\":1.500,\"dur\":3.250,\"args\":{\"device\":0,"
           "\"context\":1,\"stream\":7,\"correlation\":42,\"External id\":9,\"queued\":0,"
           "\"registers per thread\":32,\"shared memory\":1024,\"grid\":[4,5,6],"
           "\"block\":[128,1,1],\"graph id\":2,\"graph node id\":11,\"region\":\"forward\"}}"
           ",\n{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":2147488000,"
           "\"tid\":7,\"ts\":1.500,\"id\":12884901930}");
}

static void copies(void **state)
{
    pki_activity a = {.kind = PKI_ACTIVITY_MEMCPY,
                      .name = "Memcpy HtoD (Pinned -> Device)",
                      .name_length = 30,
                      .start = 1000,
                      .end = 3000,
                      .device = 1,
                      .stream = 9,
                      .bytes = 50000,
                      .copy = PKI_COPY_HTOD};
    (void)state;
    expect(&a, NULL,
           ",\n{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD (Pinned -> Device)\","
           "\"pid\":2147488000,\"tid\":7,\"ts\":1.000,\"dur\":2.000,\"args\":{\"device\":1,"
           "\"stream\":9,\"bytes\":50000,\"memory bandwidth (GB/s)\":25}}");
    a.end = 900; /* a reversed one lasts nothing, and has no bandwidth */
    expect(&a, NULL,
           ",\n{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD (Pinned -> Device)\","
           "\"pid\":2147488000,\"tid\":7,\"ts\":1.000,\"dur\":0.000,\"args\":{\"device\":1,"
           "\"stream\":9,\"bytes\":50000}}");
}

static void calls_begin_arrows(void **state)
{
    pki_activity a = {.kind = PKI_ACTIVITY_RUNTIME,
                      .name = "cudaLaunchKernel",
                      .name_length = 16,
                      .start = 5,
                      .end = 6,
                      .device = PKI_NO_DEVICE,
                      .correlation = 1,
                      .flow = 1};
    (void)state;
    expect(&a, NULL,
           ",\n{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","
           "\"pid\":2147488000,\"tid\":7,\"ts\":0.005,\"dur\":0.001,\"args\":{\"correlation\":1}}"
           ",\n{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":2147488000,\"tid\":7,"
           "\"ts\":0.005,\"id\":12884901889}");
}

static void spans_have_no_stream_argument(void **state)
{
    pki_activity a = {.kind = PKI_ACTIVITY_SPAN,
                      .name = "forward",
                      .name_length = 7,
                      .start = 0,
                      .end = 1000,
                      .stream = 7,
                      .stream_hidden = 1};
    (void)state;
    expect(
        &a, NULL,
        ",\n{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"forward\","
        "\"pid\":2147488000,\"tid\":7,\"ts\":0.000,\"dur\":1.000,\"args\":{\"device\":0,\"on_stream\":7}}");
    a.stream = 0; /* not known */
    a.device = PKI_NO_DEVICE;
    expect(&a, NULL,
           ",\n{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"forward\","
           "\"pid\":2147488000,\"tid\":7,\"ts\":0.000,\"dur\":1.000}");
}

/* Where a reader's sums in floating point put its end, from the time of the first event on. */
static double end_of(uint64_t base, uint32_t level, uint64_t start, uint64_t end)
{
    pki_activity a = {.kind = PKI_ACTIVITY_RANGE, .name = "x", .name_length = 1};
    char out[PKI_EVENT_BYTES + 1];
    pki_chrome chrome = {0};
    double ts, dur;
    a.start = start;
    a.end = end;
    a.level = level;
    out[pki_chrome_activity(&chrome, out, &stream, &a, NULL, 0)] = 0;
    assert_int_equal(sscanf(strstr(out, "\"ts\":"), "\"ts\":%lf,\"dur\":%lf", &ts, &dur), 2);
    assert_true((uint64_t)(dur * 1000 + 0.5) == end - start || end == start);
    return ts - (double)base / 1000 + dur;
}

/* A group, a call in it and the launch in that: on a clock of coarse steps they end together. */
static void touching_ones_end_from_the_inside_out(void **state)
{
    uint64_t chance = 88172645463325252u, base = 16543917;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        chance = chance * 6364136223846793005u + 1442695040888963407u;
        uint64_t start = base + 10 * (chance >> 40), end = start + 10 * (chance >> 20 & 255);
        double outer = end_of(base, 1, start, end + 1), call = end_of(base, 2, start, end + 1);
        double launch = end_of(base, 3, end, end + 1), next = (double)(end + 1 - base) / 1000;
        assert_true(launch < call && call < outer && outer < next);
    }
}

static void more_arguments(void **state)
{
    const pki_activity_arg args[] = {
        {"Collective name", "all\"reduce", 0}, {"In msg nelems", NULL, 1024}, {"Seq", NULL, -1}};
    pki_activity a = {.kind = PKI_ACTIVITY_OPERATION,
                      .name = "nccl:all_reduce",
                      .name_length = 15,
                      .start = 1,
                      .end = 2,
                      .device = PKI_NO_DEVICE,
                      .args = args,
                      .arg_count = PKI_COUNT_OF(args)};
    (void)state;
    expect(&a, NULL,
           ",\n{\"ph\":\"X\",\"cat\":\"collective\",\"name\":\"nccl:all_reduce\","
           "\"pid\":2147488000,\"tid\":7,\"ts\":0.001,\"dur\":0.001,\"args\":{"
           "\"Collective name\":\"all\\\"reduce\",\"In msg nelems\":1024,\"Seq\":-1}}");
}

/* All that can be long is, and every figure is the largest. */
static void the_longest_event_fits(void **state)
{
    static char name[8192], out[PKI_EVENT_BYTES + 1];
    pki_activity_arg args[64];
    pki_track longest = {UINT32_MAX, UINT32_MAX, name, name, UINT32_MAX};
    pki_chrome chrome = {.id_base = UINT64_MAX >> 12};
    memset(name, 1, sizeof name - 1); /* six bytes each, escaped */
    const pki_operation operation = {.comm = name,
                                     .library = name,
                                     .comm_length = sizeof name - 1,
                                     .library_length = sizeof name - 1,
                                     .count = UINT64_MAX,
                                     .sequence = UINT64_MAX,
                                     .op = PK_OP_SCATTER,
                                     .in_flight = UINT32_MAX};
    for (size_t i = 0; i < PKI_COUNT_OF(args); i++)
        args[i] = (pki_activity_arg){"a key of some length, as some have", name, 0};
    for (int kind = 0; kind < PKI_ACTIVITY_KINDS; kind++) {
        pki_activity a;
        memset(&a, 0xFF, sizeof a);
        a.kind = (pki_activity_kind)kind;
        a.name = name;
        a.name_length = sizeof name - 1;
        a.start = 0;
        a.operation = &operation;
        a.args = args;
        a.arg_count = PKI_COUNT_OF(args);
        a.device--;
        a.stream_hidden = 0;
        size_t n = pki_chrome_activity(&chrome, out, &longest, &a, name, sizeof name - 1);
        assert_in_range(n, 1, PKI_EVENT_BYTES);
        assert_int_equal(out[n - 1], '}');
    }
    assert_in_range(pki_chrome_track(out, &longest), 1, PKI_EVENT_BYTES);
    (void)state;
}

static void tracks(void **state)
{
    char out[PKI_EVENT_BYTES + 1];
    pki_track beside = {99, 1073741923u, NULL, "CUDA calls of main", 12};
    (void)state;
    out[pki_chrome_track(out, &stream)] = 0;
    assert_string_equal(
        out, ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"process_name\",\"pid\":2147488000,"
             "\"tid\":7,\"ts\":0.000,\"args\":{\"name\":\"GPU 0\"}}"
             ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"process_sort_index\","
             "\"pid\":2147488000,\"tid\":7,\"ts\":0.000,\"args\":{\"sort_index\":2147488000}}"
             ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"thread_name\",\"pid\":2147488000,"
             "\"tid\":7,\"ts\":0.000,\"args\":{\"name\":\"stream 7\"}}"
             ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"thread_sort_index\","
             "\"pid\":2147488000,\"tid\":7,\"ts\":0.000,\"args\":{\"sort_index\":3}}");
    out[pki_chrome_track(out, &beside)] = 0;
    assert_null(strstr(out, "process"));
    assert_non_null(strstr(out, "CUDA calls of main"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels),
        cmocka_unit_test(copies),
        cmocka_unit_test(tracks),
        cmocka_unit_test(spans_have_no_stream_argument),
        cmocka_unit_test(touching_ones_end_from_the_inside_out),
        cmocka_unit_test(more_arguments),
        cmocka_unit_test(calls_begin_arrows),
        cmocka_unit_test(the_longest_event_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
