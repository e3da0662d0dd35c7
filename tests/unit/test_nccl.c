/* NCCL's backend from inside: when an operation is told, and who counts it. tests/nccl plays NCCL's
 * role in full. */
#include "document.h"
#include "session.h"

#include "backend/nccl/nccl.h"
#include "backend/nccl/calls.h"

static void *context;
static int mask;

static int start_backend(const char *kernels)
{
    setenv("PK_NCCL_KERNEL_CH", kernels, 1);
    setenv(PKI_NCCL_VARIABLE, "none", 1); /* a communicator that is there has found us */
    pki_nccl_init_v5(&context, 1, &mask, "world", 1, 4, 2, NULL);
    return pk_start(pk_options(.trace_path = "run.json", .report_path = "report.json",
                               .backends = "nccl"));
}

static int start_plain(void **state)
{
    return enter_folder(state) || start_backend("0");
}

static int start_with_kernels(void **state)
{
    return enter_folder(state) || start_backend("1");
}

static int stop(void **state)
{
    pki_comms_wrapped = 0;
    pki_nccl_finalize_comm(context);
    pk_stop();
    return leave_folder(state);
}

static void *begin(pki_nccl_description_v5 description)
{
    void *event;
    assert_int_equal(pki_nccl_start_v5(context, &event, &description), PKI_NCCL_SUCCESS);
    assert_non_null(event);
    return event;
}

static void *all_reduce(void)
{
    void *event = begin((pki_nccl_description_v5){
        .type = PKI_NCCL_COLL,
        .u.coll.v4 = {.func = "AllReduce", .type = "ncclFloat16", .count = 100, .channels = 2}});
    pki_nccl_stop_event(event);
    return event;
}

static void kernel(void *parent, uint8_t channel)
{
    void *event = begin((pki_nccl_description_v5){
        .type = PKI_NCCL_KERNEL_CH, .parent = parent, .u.kernel_ch = {channel, 1000}});
    pki_nccl_state_v4 args = {.timer = 51000};
    pki_nccl_change_v4(event, PKI_NCCL_KERNEL_STOP, &args);
    pki_nccl_stop_event(event);
}

static uint64_t told(void)
{
    assert_int_equal(pk_flush(), PK_OK);
    return pki_nccl_operations();
}

static void at_once(void **state)
{
    (void)state;
    assert_int_equal(mask & PKI_NCCL_KERNEL_CH, 0);
    all_reduce();
    assert_int_equal(told(), 1);
}

static void when_all_kernels_are_in(void **state)
{
    (void)state;
    assert_int_not_equal(mask & PKI_NCCL_KERNEL_CH, 0);
    void *event = all_reduce();
    assert_int_equal(told(), 0);
    kernel(event, 0);
    assert_int_equal(told(), 0);
    kernel(event, 1);
    assert_int_equal(told(), 1);
    assert_int_equal(pk_stop(), PK_OK);
    json_t *report = load_document("report.json");
    const json_t *row = json_array_get(member(member(report, "comm"), "collectives"), 0);
    assert_int_equal(json_integer_value(member(row, "bytes")), 200);
    assert_int_equal(json_integer_value(member(member(row, "time"), "max")), 50000);
    assert_non_null(json_object_get(row, "busbw"));
    json_decref(report);
}

static void when_no_child_is_open(void **state)
{
    (void)state;
    void *event = all_reduce();
    void *proxy = begin((pki_nccl_description_v5){.type = PKI_NCCL_PROXY_OP, .parent = event});
    assert_int_equal(told(), 0);
    pki_nccl_stop_event(proxy);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pki_nccl_operations(), 1);
}

static size_t counted(void)
{
    json_t *report = load_document("report.json"), *comm = json_object_get(report, "comm");
    size_t n = json_array_size(json_object_get(comm, "collectives"));
    json_decref(report);
    return n;
}

static void by_the_wrapper_if_there_is_one(void **state)
{
    (void)state;
    pki_comms_wrapped = 1;
    all_reduce();
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(counted(), 0);
    json_t *trace = load_document("run.json");
    const json_t *event = find_event(trace, "NCCL all_reduce");
    assert_string_equal(json_string_value(member(event, "cat")), "user_annotation");
    json_decref(trace);
}

#define plain(test) cmocka_unit_test_setup_teardown(test, start_plain, stop)
#define with_kernels(test) cmocka_unit_test_setup_teardown(test, start_with_kernels, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        plain(at_once),
        with_kernels(when_all_kernels_are_in),
        plain(when_no_child_is_open),
        plain(by_the_wrapper_if_there_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
